"""No single input column does the whole job (case N02)."""

from collections.abc import Iterator

import numpy as np

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.gate.tables import Column
from sandmle.grading import MetricUndefined, Predictions
from sandmle.grading.cells import CellError, Form, parse_cells
from sandmle.records import PredictionKind

MOST_SHARE = 0.9
"""Part of the way from the sample submission to the oracle that a single column may go."""
_BINS = 12
_NEARLY_EQUAL = 0.999
_MATRIX = (PredictionKind.CLASS_PROBABILITIES, PredictionKind.LABEL_PROBABILITIES, PredictionKind.VALUES)
_KINDS = (PredictionKind.LABEL, PredictionKind.PROBABILITY, *_MATRIX)


def run(context: GateContext) -> Finding:
    """Predicts from each column alone, by the mean answer of training rows with like values, and scores it.

    It may neither do nearly all that the oracle does nor win bronze, which nobody should who looks at one column only.

    Numbers are also used as they are: a column equal to the target, or to a shifted or turned target, is found even
    where training rows are few.
    """
    if context.spec.target.kind not in _KINDS or not set(context.answer_targets) <= set(context.train.columns):
        return Finding(True, "columns are not tried alone for this kind of target")
    form = Form(context.spec.target, context.grader.key.metric, is_answer=True)
    try:
        train_truth = parse_cells(form, {name: list(context.train[name]) for name in form.columns})
    except CellError as error:
        return Finding(False, f"train.csv: row {error.row + 1}: column {error.column!r} {error.reason}")
    key, direction = context.private_key, context.spec.direction
    low = key.score(context.sample)
    high = key.score(context.oracle or context.perfect)
    span = direction.gain(high, low)
    worst, worst_name, best = 0.0, "", low
    for column in [*context.inputs, *_file_sizes(context)]:
        for predicted in _candidates(context, column, train_truth):
            try:
                score = key.score(Predictions(_in_answer_order(context, predicted)))
                share = direction.gain(score, low) / span
            except (MetricUndefined, ZeroDivisionError):
                continue
            if share > worst:
                worst, worst_name, best = share, column.name, score
    equal = _nearly_equal(context)
    if equal:
        return Finding(
            False, f"the column {equal!r} is the target but for scale and shift", round(worst, 6), MOST_SHARE
        )
    message = f"the column {worst_name!r} alone does {worst:.0%} of what the oracle does" if worst > MOST_SHARE else ""
    bronze = context.spec.thresholds.bronze.score
    if not message and worst_name and context.preset == "calibrated" and direction.at_least(best, bronze):
        message = f"the column {worst_name!r} alone scores {best:.6g}; bronze is {bronze:.6g}"
    return Finding(not message, message, round(worst, 6), MOST_SHARE)


def _file_sizes(context: GateContext) -> list[Column]:
    """Returns the sizes of media files, the cheapest thing to know about them."""
    found = []
    for name in context.media_columns:
        train, test = (
            np.array([float(context.media[cell].stat().st_size) for cell in frame[name]])
            for frame in (context.train, context.test)
        )
        found.append(Column(f"file size of {name}", True, train, test))
    return found


def _candidates(context: GateContext, column: Column, truth: np.ndarray) -> Iterator[np.ndarray]:
    """Yields predictions for the rows of test.csv from one column."""
    kind = context.spec.target.kind
    n_labels = len(context.spec.target.labels)
    outcomes = np.eye(n_labels)[truth] if kind is PredictionKind.LABEL else truth.reshape(len(truth), -1)
    means = _binned_means(column, outcomes)
    n_columns = len(context.spec.target.columns)
    if kind is PredictionKind.LABEL:
        yield means.argmax(axis=1)
    elif kind is PredictionKind.PROBABILITY:
        yield means[:, 0]
        filled = np.nan_to_num(
            column.test, nan=float(np.nanmedian(column.train)) if np.isfinite(column.train).any() else 0.0
        )
        ranks = np.argsort(np.argsort(filled, kind="stable"), kind="stable") / max(1, len(filled) - 1)
        yield ranks
        yield 1 - ranks
    else:
        padded = np.hstack([means, np.tile(outcomes.std(axis=0)[:1], (len(means), n_columns - means.shape[1]))])
        yield padded
        if kind is PredictionKind.VALUES and column.is_number:
            yield np.hstack([_line(column, outcomes), padded[:, means.shape[1] :]])


def _binned_means(column: Column, outcomes: np.ndarray) -> np.ndarray:  # [n_test, n_outcomes]
    edges = (
        np.unique(np.nanquantile(column.train, np.linspace(0, 1, _BINS + 1)[1:-1]))
        if np.isfinite(column.train).any()
        else np.array([])
    )
    n_bins = len(edges) + 2  # the last one is for empty cells
    places = [
        np.where(np.isfinite(values), np.searchsorted(edges, np.nan_to_num(values), side="left"), n_bins - 1)
        for values in (column.train, column.test)
    ]
    prior = outcomes.mean(axis=0)
    sums = np.zeros((n_bins, outcomes.shape[1]))
    np.add.at(sums, places[0], outcomes)
    counts = np.bincount(places[0], minlength=n_bins)[:, None]
    means = (sums + prior) / (counts + 1)
    return np.asarray(means[places[1]])


def _line(column: Column, outcomes: np.ndarray) -> np.ndarray:
    middle = float(np.nanmedian(column.train))
    known, fresh = (np.nan_to_num(values, nan=middle) for values in (column.train, column.test))
    if np.ptp(known) == 0:
        return np.tile(outcomes.mean(axis=0), (len(fresh), 1))
    return np.column_stack([np.polyval(np.polyfit(known, goal, 1), fresh) for goal in outcomes.T])


def _in_answer_order(context: GateContext, predicted: np.ndarray) -> np.ndarray:
    """Turns the order of test.csv into that of answers.csv."""
    place = {row_id: at for at, row_id in enumerate(context.test[context.spec.id_column])}
    return np.asarray(predicted[[place[row_id] for row_id in context.grader.key.ids]])


def _nearly_equal(context: GateContext) -> str:
    """Returns a column that goes with an answer column in a straight line, or splits two labels cleanly."""
    for column in context.inputs:
        there = np.isfinite(column.test)
        if there.mean() < 0.5:
            continue
        values = column.test[there]
        for view in context.answer_views.values():
            answers = view[there]
            if np.ptp(values) == 0 or np.ptp(answers) == 0:
                continue
            if abs(np.corrcoef(values, answers)[0, 1]) > _NEARLY_EQUAL or _splits_cleanly(values, answers):
                return column.name
    return ""


def _splits_cleanly(values: np.ndarray, answers: np.ndarray) -> bool:
    levels = np.unique(answers)
    if len(levels) != 2:
        return False
    first, second = (values[answers == level] for level in levels)
    return bool(first.max() < second.min() or second.max() < first.min())


CHECK = Check("single_column", run)
