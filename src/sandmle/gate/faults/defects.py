"""Faults that are no leak of rows: wrong milestones, labels, rules and texts."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from sandmle.errors import BundleError
from sandmle.gate.base import RULE_FILE, GateContext
from sandmle.gate.checks.degenerate import MOST_OF_ONE_VALUE
from sandmle.gate.faults.base import ANSWERS, TEST, TRAIN, Injection, csv_bytes
from sandmle.gate.submissions import constant_submissions
from sandmle.grading import get_metric, metric_names
from sandmle.records import (
    CollectedFile,
    Direction,
    ExecResult,
    ExecStatus,
    PredictionKind,
    Threshold,
    Thresholds,
)
from sandmle.sandbox.base import Capability, ExecRequest

_CERTAIN = 0.75
_PREDICTED_ONCE = (PredictionKind.LABEL, PredictionKind.PROBABILITY)


def thresholds_close(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Milestones drawn together towards the median."""
    return _moved(context, 1 - strength, must_find=strength >= 1.0)


def thresholds_reversed(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Milestones on the other side of the median."""
    return _moved(context, -strength, must_find=True)


def _moved(context: GateContext, share: float, *, must_find: bool) -> Injection:
    old = context.spec.thresholds
    start = old.median.score
    new = {
        name: Threshold(
            score=start + share * (getattr(old, name).score - start), standard_error=getattr(old, name).standard_error
        )
        for name in ("bronze", "silver", "gold")
    }
    return Injection(spec=context.spec.replace(thresholds=old.replace(**new)), must_find=must_find)


def bronze_without_work(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A bronze that lies between its place and the best constant submission's score, or is worse."""
    scores = [context.private_key.score(context.sample)]
    for name, data in constant_submissions(context).items():
        try:
            scores.append(context.private_key.score(context.predictions(data, name)))
        except BundleError:  # a constant that the task does not allow
            continue
    best = max(scores, key=lambda score: context.spec.direction.gain(score, 0.0))
    old: Thresholds = context.spec.thresholds
    bronze = old.bronze.score + strength * (best - old.bronze.score)
    moved = old.replace(bronze=old.bronze.replace(score=bronze))
    return Injection(spec=context.spec.replace(thresholds=moved), must_find=strength >= 1.0)


def wrong_direction(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A direction that is not the metric's."""
    other = Direction.MINIMIZE if context.spec.direction is Direction.MAXIMIZE else Direction.MAXIMIZE
    return Injection(spec=context.spec.replace(direction=other), must_find=True)


def another_metric(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """An evaluator that computes another metric than the one the milestones and the description are of."""
    spec = context.spec
    for name in metric_names():
        metric = get_metric(name)
        if name == spec.metric or metric.direction is not spec.direction or spec.target.kind not in metric.kinds:
            continue
        if not any(role.required for role in metric.roles):
            return Injection(spec=spec.replace(metric=name, metric_params={}), must_find=True)
    return None


def one_class(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Answers of which a share became the commonest one."""
    if context.spec.target.kind not in _PREDICTED_ONCE:
        return None
    name = context.spec.target.columns[0]
    commonest = context.answers[name].value_counts().index[0]
    turned = rng.random(len(context.answers)) < strength
    cells = context.answers[name].where(~turned, commonest)
    share = float((cells == commonest).mean())
    return Injection({ANSWERS: csv_bytes(context.answers.assign(**{name: cells}))}, must_find=share > MOST_OF_ONE_VALUE)


def duplicate_rows(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Training rows that stand in the test again, with their answers."""
    targets = [name for name in context.answer_targets if name in context.train]
    if len(targets) < len(context.answer_targets) or context.media_columns:
        return None
    n_rows = round(strength * len(context.train))
    rows = rng.choice(len(context.test), n_rows, replace=False)
    sources = rng.choice(len(context.train), n_rows, replace=False)

    def mixed(own: pd.DataFrame, names: Sequence[str]) -> bytes:
        cells = {name: own[name].to_numpy(dtype=object, copy=True) for name in names}
        for name, column in cells.items():
            column[rows] = context.train[name].to_numpy(dtype=object)[sources]
        return csv_bytes(own.assign(**cells))

    inputs = [name for name in context.test.columns if name != context.spec.id_column]
    files = {TEST: mixed(context.test, inputs), ANSWERS: mixed(context.answers, targets)}
    return Injection(files, must_find=strength >= 0.25)


def shifted_test(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Number columns of the test moved by a share of their spread."""
    if context.spec.dna.groups or context.spec.dna.time_ordered:
        return None
    numbers = [column for column in context.inputs if column.is_number]
    types = {column.name: column.type for column in context.spec.columns}
    moved = {
        column.name: [
            "" if np.isnan(value) else f"{value + 2 * strength * np.nanstd(column.train):.4f}" for value in column.test
        ]
        for column in numbers
        if types.get(column.name) == "number"
    }
    if not moved:
        return None
    return Injection({TEST: csv_bytes(context.test.assign(**moved))}, must_find=strength >= _CERTAIN)


def shared_entities(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Entities of the test that are in the training rows too, though the task is about new ones."""
    if not context.group_columns:
        return None
    name = context.group_columns[0]
    known = sorted(set(context.train[name]))
    turned = rng.random(len(context.test)) < strength
    cells = np.where(turned, rng.choice(known, len(context.test)), context.test[name])
    return Injection({TEST: csv_bytes(context.test.assign(**{name: cells}))}, must_find=True)


def target_in_test(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """The target's own column in test.csv."""
    name = context.answer_targets[0]
    return Injection({TEST: csv_bytes(context.test.assign(**{name: context.answers[name]}))}, must_find=True)


def unlearnt_label(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A label that no training row has."""
    if context.spec.target.kind is not PredictionKind.LABEL or context.spec.target.columns[0] not in context.train:
        return None
    name = context.spec.target.columns[0]
    rarest = context.train[name].value_counts().index[-1]
    other = context.train[name].value_counts().index[0]
    cells = context.train[name].where(context.train[name] != rarest, other)
    return Injection({TRAIN: csv_bytes(context.train.assign(**{name: cells}))}, must_find=True)


def rule_in_description(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A description that quotes the rule: from eight words in a row on, more with the strength."""
    if not (context.bundle.root / RULE_FILE).is_file():
        return None
    words = re.sub(r"[#*`|]+", " ", context.read(RULE_FILE).decode()).split()
    n_words = round(8 + 32 * strength)
    if len(words) < n_words + 10:
        return None
    return _said(context, " ".join(words[10 : 10 + n_words]))


def answers_in_text(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A public text with the answers of the first rows of the test."""
    name = context.answer_targets[0]
    n_rows = round(strength * len(context.answers))
    text = "\n".join(context.answers[name][:n_rows])
    return Injection({"public/notes.txt": text.encode()}, must_find=n_rows >= 24)


def milestone_in_description(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A description that tells a milestone's score, with more digits at more strength."""
    gold = context.spec.thresholds.gold.score
    written = f"{gold:.{round(2 + 2 * strength)}f}"
    n_digits = len(written.replace(".", "").lstrip("-").strip("0"))
    return _said(context, f"Earlier entries reached {written}.", must_find=n_digits >= 3)


def _said(context: GateContext, words: str, *, must_find: bool = True) -> Injection:
    text = f"{context.bundle.description()}\n{words}\n"
    return Injection({"description.md": text.encode()}, must_find=must_find)


def other_bytes_again(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """An author that makes other bytes the second time."""
    same = {path: context.read(path) for path in context.spec.files if path.startswith(("public/", ANSWERS))}
    again: Mapping[str, bytes] = {**same, TRAIN: same[TRAIN].replace(b"1", b"2", 1)}
    return Injection(must_find=True, regenerate=lambda: again)


def slow_reference(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A solver that uses up this share of a step's time."""
    cpu_s = strength * context.spec.limits.step_wall_s
    return Injection(must_find=strength > 0.5, sandbox=_Slow(cpu_s, context.read("public/sample_submission.csv")))


class _Slow:
    """Stands in for a sandbox: says how long the solver took, and returns the sample submission."""

    name = "slow"
    capabilities: frozenset[Capability] = frozenset()
    workers = 1

    def __init__(self, cpu_s: float, submission: bytes) -> None:
        self._cpu_s, self._submission = cpu_s, submission

    def start(self) -> "_Slow":
        """Does nothing."""
        return self

    def execute(self, request: ExecRequest) -> ExecResult:
        """Returns at once, with the seconds it was made with."""
        files = tuple(CollectedFile(name=name, data=self._submission) for name in request.collect)
        return ExecResult(status=ExecStatus.OK, exit_code=0, cpu_s=self._cpu_s, wall_s=self._cpu_s, files=files)

    def close(self) -> None:
        """Does nothing."""

    def __enter__(self) -> "_Slow":
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None
