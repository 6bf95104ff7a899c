"""How submissions are scored, and what score reaches which milestone: measured here, never taken from a script."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sandmle.authoring.randomness import digest_of
from sandmle.authoring.roles.outputs import TaskIdea
from sandmle.authoring.roles.reading import Complaint
from sandmle.grading import (
    AnswerKey,
    MetricUndefined,
    Predictions,
    ScoringRule,
    SubmissionProblem,
    read_submission,
    write_table,
)
from sandmle.grading.metrics import Metric
from sandmle.records import Direction, PredictionKind, Rung, Tier

Cells = Mapping[str, list[str]]
Sample = dict[str, str]
"""One cell for each target column, the same in every row."""
_MOST_CONSTANTS = 12


@dataclass(frozen=True)
class Scoring:
    """A metric with its parameters; ``metric`` and ``source`` are set where it is the task's own script."""

    name: str
    direction: Direction
    params: dict[str, Any] = field(default_factory=dict)
    metric: Metric | None = None
    source: str = ""

    def rule(self, idea: TaskIdea) -> ScoringRule:
        """Returns what the grader needs to know."""
        return ScoringRule(
            metric=self.name,
            metric_params=self.params,
            direction=self.direction,
            id_column=idea.id_column,
            target=idea.target,
        )

    def key(self, idea: TaskIdea, answers: Cells) -> AnswerKey:
        """Returns the answers of some rows; ids are plain numbers.

        Raises:
            BundleError: A cell is not what the target asks for.
            ConfigError: The metric does not fit the target.
        """
        n_rows = len(next(iter(answers.values())))
        columns: dict[str, list[Any]] = {idea.id_column: list(range(n_rows)), **answers}
        columns["leaderboard"] = ["private"] * n_rows
        return AnswerKey.parse(self.rule(idea), write_table(columns), self.metric)


def bare(idea: TaskIdea, cells: Cells) -> bytes:
    """Returns a submission whose ids are plain numbers."""
    n_rows = len(next(iter(cells.values())))
    return write_table({idea.id_column: list(range(n_rows)), **{name: cells[name] for name in idea.target.columns}})


def same_everywhere(sample: Sample, n_rows: int) -> dict[str, list[str]]:
    """Returns a sample's cells for every row."""
    return {name: [cell] * n_rows for name, cell in sample.items()}


def read_scored(key: AnswerKey, submission: bytes, file: str) -> Predictions:
    """Reads a baseline's submission as an agent's would be read.

    Raises:
        Complaint: It is refused.
    """
    found = read_submission(key, submission)
    if isinstance(found, SubmissionProblem):
        raise Complaint("baseline", f"the submission of {file} is refused: {found.message}")
    return found


def rung_of(
    key: AnswerKey, name: str, tier: Tier, predictions: Predictions, *, n_rows: int, score: float | None = None
) -> Rung:
    """Returns a rung: the score, and the standard error that it would have on ``n_rows`` rows."""
    seed = int.from_bytes(digest_of("error", name)[:4], "big")
    return Rung(
        name=name,
        tier=tier,
        score=key.score(predictions) if score is None else score,
        standard_error=key.standard_error(predictions, n_rows=n_rows, rng_seed=seed),
    )


def best_constant(idea: TaskIdea, scoring: Scoring, train: Cells) -> Sample:
    """Returns the constant that scores best on the training rows: the sample submission, and the ladder's dummy.

    Raises:
        Complaint: No constant is a valid submission.
    """
    targets = {name: train[name] for name in idea.target.columns}
    key = scoring.key(idea, targets)
    n_rows = len(next(iter(targets.values())))
    best: tuple[float, Sample] | None = None
    for sample in _constants(idea, targets):
        found = read_submission(key, bare(idea, same_everywhere(sample, n_rows)))
        if isinstance(found, SubmissionProblem):
            continue
        try:
            gain = scoring.direction.gain(key.score(found), 0.0)
        except MetricUndefined:
            gain = -math.inf
        if best is None or gain > best[0]:
            best = (gain, sample)
    if best is None:
        raise Complaint("data_script", "no constant is a valid submission for this target")
    return best[1]


def _constants(idea: TaskIdea, train: Cells) -> list[Sample]:
    target, kind = idea.target, idea.target.kind
    name = target.columns[0]
    if kind is PredictionKind.PROBABILITY:
        positive = target.labels[-1] if target.labels else "1"
        share = float(np.mean([_is_same(cell, positive) for cell in train[name]]))
        return [{name: f"{share:.4f}"}]
    if kind in (PredictionKind.CLASS_PROBABILITIES, PredictionKind.LABEL_PROBABILITIES):
        means = {column: float(np.mean([float(cell) for cell in train[column]])) for column in target.columns}
        return [{column: f"{mean:.6f}" for column, mean in means.items()}]
    if kind is PredictionKind.VALUES:
        numbers = {column: np.array([float(cell) for cell in train[column]]) for column in target.columns}
        return [
            {column: f"{float(summary(values)):.6g}" for column, values in numbers.items()}
            for summary in (np.mean, np.median)
        ]
    counts = Counter(train[name])
    if kind is PredictionKind.RANKED_LABELS:
        words = Counter(word for cell in train[name] for word in cell.split())
        return [{name: " ".join(word for word, _ in words.most_common(target.max_items or 5))}]
    if kind is PredictionKind.LABEL_SET:
        words = Counter(word for cell in train[name] for word in cell.split())
        common = [word for word, _ in words.most_common()]
        return [{name: " ".join(common[:many])} for many in range(1, min(len(common), 4) + 1)]
    return [{name: cell} for cell, _ in counts.most_common(_MOST_CONSTANTS)]


def _is_same(cell: str, label: str) -> bool:
    if cell == label:
        return True
    try:
        return float(cell) == float(label)
    except ValueError:
        return False
