"""Which registered metric a foreign evaluator computes, told by the scores that it gives to probe submissions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sandmle.grading import (
    AnswerKey,
    ScoringRule,
    SubmissionProblem,
    Table,
    get_metric,
    metric_names,
    read_submission,
    write_table,
)
from sandmle.records import Direction, PredictionKind, TargetSpec

_TOLERANCE = 1e-4
"""Relative above 1; evaluators round to four decimals or more."""
_MOST_LABELS = 200
_SHARES_DEALT = (0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Probe:
    """A submission made to learn what an evaluator does."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Match:
    """A rule that gave the evaluator's score on every probe."""

    rule: ScoringRule


def probes_for(answers: Table, sample: Table) -> list[Probe]:
    """Returns the sample submission, the answers, answers dealt to other rows, and numbers with noise."""
    id_column, *targets = answers.header
    ids = answers.column(id_column)
    columns = {name: answers.column(name) for name in targets}
    rng = np.random.default_rng(20)

    def submission(name: str, cells: dict[str, list[str]]) -> Probe:
        return Probe(name, write_table({id_column: ids, **cells}))

    order = {name: sample.column(name) for name in sample.header}
    probes = [Probe("the sample", write_table(order)), submission("the answers", columns)]
    for share in _SHARES_DEALT:
        rows = np.flatnonzero(rng.random(len(ids)) < share)
        dealt = np.arange(len(ids))
        dealt[rows] = rng.permutation(rows)
        probes.append(
            submission(f"dealt {share}", {name: [cells[at] for at in dealt] for name, cells in columns.items()})
        )
    numbers = _numbers(columns)
    if numbers is not None:
        for scale in (0.3, 1.0):
            noisy = numbers + rng.normal(0, scale * (numbers.std(axis=0) + 1e-9), numbers.shape)
            probes.append(submission(f"noise {scale}", _texts(targets, noisy)))
        if ((numbers >= 0) & (numbers <= 1)).all():
            soft = np.clip(0.1 + 0.8 * numbers + rng.uniform(-0.35, 0.35, numbers.shape), 0.01, 0.99)
            probes.append(submission("soft", _texts(targets, soft)))
            if len(targets) > 1:
                probes.append(submission("soft shares", _texts(targets, soft / soft.sum(axis=1, keepdims=True))))
    return probes


def matching(answers: Table, train: Table, scored: Sequence[tuple[Probe, float]], direction: Direction) -> list[Match]:
    """Returns the rules that agree with all scores, the plainest metric first.

    Args:
        answers: Id and target columns.
        train: Training rows, for labels that the answers lack.
        scored: Probes and what the evaluator said.
        direction: Which way the evaluator calls better.
    """
    found = []
    for target in _targets(answers, train):
        data = write_table({name: answers.column(name) for name in answers.header})
        for name in sorted(metric_names(), key=lambda name: (len(name), name)):
            metric = get_metric(name)
            if metric.direction is not direction or target.kind not in metric.kinds:
                continue
            if any(role.required for role in metric.roles):
                continue
            rule = ScoringRule(metric=name, direction=direction, id_column=answers.header[0], target=target)
            if _agrees(rule, data, scored):
                found.append(Match(rule))
    return found


def _agrees(rule: ScoringRule, answers: bytes, scored: Sequence[tuple[Probe, float]]) -> bool:
    try:
        key = AnswerKey.parse(rule, answers)
        for probe, wanted in scored:
            outcome = read_submission(key, probe.data)
            if isinstance(outcome, SubmissionProblem):
                return False
            if abs(key.score(outcome) - wanted) > _TOLERANCE * max(1.0, abs(wanted)):
                return False
    except Exception:  # whatever a metric raises on answers that it cannot be of: it is not this one
        return False
    return True


def _targets(answers: Table, train: Table) -> Iterator[TargetSpec]:
    """Yields the forms that the answers may have."""
    columns = tuple(answers.header[1:])
    numbers = _numbers({name: answers.column(name) for name in columns})
    is_binary = numbers is not None and bool(np.isin(numbers, (0, 1)).all())
    if len(columns) > 1:
        if numbers is None:
            return
        if (numbers >= 0).all() and np.allclose(numbers.sum(axis=1), 1):
            yield TargetSpec(kind=PredictionKind.CLASS_PROBABILITIES, columns=columns, labels=columns)
        if is_binary:
            yield TargetSpec(kind=PredictionKind.LABEL_PROBABILITIES, columns=columns, labels=columns)
        yield TargetSpec(kind=PredictionKind.VALUES, columns=columns)
        return
    cells = answers.column(columns[0])
    known = train.column(columns[0]) if columns[0] in train.header else []
    labels = tuple(sorted({*cells, *known}))
    if is_binary:
        yield TargetSpec(kind=PredictionKind.PROBABILITY, columns=columns, labels=("0", "1"))
    if len(labels) <= _MOST_LABELS and "" not in labels:
        ordered = (
            tuple(sorted(labels, key=float)) if numbers is not None and _numbers({"": known}) is not None else labels
        )
        yield TargetSpec(kind=PredictionKind.LABEL, columns=columns, labels=ordered)
    if numbers is not None:
        yield TargetSpec(kind=PredictionKind.VALUES, columns=columns)
        return
    items = tuple(sorted({item for cell in (*cells, *known) for item in cell.split()}))
    if 1 < len(items) <= _MOST_LABELS:
        yield TargetSpec(kind=PredictionKind.LABEL_SET, columns=columns, labels=items)
    yield TargetSpec(kind=PredictionKind.TEXT, columns=columns)


def _numbers(columns: dict[str, list[str]]) -> np.ndarray | None:  # [n_rows, n_columns]
    try:
        values = np.column_stack([np.array([float(cell) for cell in cells]) for cells in columns.values()])
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _texts(names: Sequence[str], values: np.ndarray) -> dict[str, list[str]]:
    return {name: [f"{value:.6f}" for value in column] for name, column in zip(names, values.T, strict=True)}
