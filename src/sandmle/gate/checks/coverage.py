"""All labels that the task names are there to be learnt and to be predicted (cases N04, N17)."""

from collections.abc import Iterable

import pandas as pd

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.records import PredictionKind

_ONE_LABEL = (PredictionKind.LABEL, PredictionKind.PROBABILITY)
_MANY_LABELS = (PredictionKind.LABEL_SET, PredictionKind.RANKED_LABELS)
_INDICATORS = (PredictionKind.CLASS_PROBABILITIES, PredictionKind.LABEL_PROBABILITIES)


def run(context: GateContext) -> Finding:
    """Counts labels that are named but absent, or present but not named."""
    target = context.spec.target
    if target.kind not in (*_ONE_LABEL, *_MANY_LABELS, *_INDICATORS):
        return Finding(True, "the target has no labels")
    named = set(target.columns if target.kind in _INDICATORS else target.labels)
    if not named:
        return Finding(True, "the label set is open")
    problems: list[str] = []
    for where, frame in (
        ("train.csv", context.train[context.train_targets]),
        ("the private rows of answers.csv", context.answers[context.is_private]),
    ):
        found = _labels_in(context, frame)
        problems += [f"{where} has the label {name!r}, which the task does not name" for name in sorted(found - named)]
        problems += [f"{where} has no row of the label {name!r}" for name in sorted(named - found)]
    return Finding(not problems, problems[0] if problems else "", float(len(problems)), 0.0)


def _labels_in(context: GateContext, frame: pd.DataFrame) -> set[str]:
    target = context.spec.target
    if target.kind in _INDICATORS and set(target.columns) <= set(frame.columns):
        return {name for name in target.columns if (pd.to_numeric(frame[name], errors="coerce") > 0).any()}
    names = [name for name in target.columns if name in frame.columns] or list(frame.columns[:1])
    cells: Iterable[str] = pd.unique(frame[names].to_numpy().ravel())
    if target.kind in _MANY_LABELS:
        return {label for cell in cells for label in cell.split()}
    return {_plain(cell, target.labels) for cell in cells}


def _plain(cell: str, labels: tuple[str, ...]) -> str:
    """Returns the label that a cell stands for: 1.0 stands for 1."""
    if cell in labels:
        return cell
    try:
        return next((label for label in labels if float(label) == float(cell)), cell)
    except ValueError:
        return cell


CHECK = Check("label_coverage", run)
