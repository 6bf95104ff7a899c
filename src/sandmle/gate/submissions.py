"""Submissions that the gate makes itself: perfect ones, and those that must win nothing."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sandmle.grading import write_table
from sandmle.records import PredictionKind

if TYPE_CHECKING:
    from sandmle.gate.base import GateContext

_MOST_CONSTANTS = 12


def perfect_submission(context: "GateContext") -> bytes:
    """Returns the answers in the form of a submission; a column without answers holds its smallest value."""
    target = context.spec.target
    truth = context.grader.key.truth.values
    raw = context.table("private/answers.csv")
    columns: dict[str, Sequence[str] | np.ndarray] = {context.spec.id_column: list(raw[context.spec.id_column])}
    for name in target.columns:
        if target.kind is PredictionKind.PROBABILITY:
            columns[name] = truth
        elif name in raw:
            columns[name] = list(raw[name])
        else:
            columns[name] = np.full(len(raw), 0.0 if target.low is None else target.low)
    return write_table(columns)


def constant_submissions(context: "GateContext") -> dict[str, bytes]:
    """Returns submissions that say the same of every row, by what they say."""
    spec = context.spec
    train = context.train
    target = spec.target
    known = [name for name in target.columns if name in train.columns]
    if target.kind is PredictionKind.LABEL:
        return {
            f"always {label!r}": _same(context, {target.columns[0]: label}) for label in target.labels[:_MOST_CONSTANTS]
        }
    if target.kind is PredictionKind.PROBABILITY:
        return {f"always {value}": _same(context, {target.columns[0]: value}) for value in (0.0, 0.5, 1.0)}
    if target.kind is PredictionKind.CLASS_PROBABILITIES:
        share = 1 / len(target.columns)
        made = {"equal shares": _same(context, dict.fromkeys(target.columns, share))}
        if known == list(target.columns):
            made["the training shares"] = _same(context, _summary(train[known], "mean"))
        return made
    if target.kind in (PredictionKind.VALUES, PredictionKind.LABEL_PROBABILITIES) and known:
        usual = {name: 0.0 for name in target.columns}
        return {
            f"the training {how}": _same(context, {**usual, **_summary(train[known], how)})
            for how in ("mean", "median", "max")
        }
    if known:
        commonest = {name: train[name].value_counts().index[0] for name in known}
        return {"the commonest training answer": _same(context, commonest)}
    return {}


def shuffled(values: np.ndarray, rng_seed: int) -> np.ndarray:
    """Returns answers dealt to other rows."""
    return np.asarray(values[np.random.default_rng([rng_seed, 7919]).permutation(len(values))])


def _summary(frame: pd.DataFrame, how: str) -> dict[str, float]:
    numbers = frame.apply(pd.to_numeric, errors="coerce")
    return {str(name): float(value) for name, value in numbers.agg(how).items()}


def _same(context: "GateContext", cells: Mapping[str, float | str]) -> bytes:
    ids = list(context.test[context.spec.id_column])
    columns: dict[str, Sequence[str]] = {context.spec.id_column: ids}
    columns.update({name: [str(value)] * len(ids) for name, value in cells.items()})
    return write_table(columns)
