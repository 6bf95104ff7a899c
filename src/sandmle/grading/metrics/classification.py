"""Metrics of labels: accuracy, F1, kappa, Matthews correlation."""

import numpy as np
from numpy.typing import NDArray

from sandmle.grading.metrics.base import (
    Floats,
    Metric,
    MetricUndefined,
    OfMeans,
    Params,
    Truth,
    Values,
    Whole,
    f1_of_means,
    ratio,
)
from sandmle.records import Direction, PredictionKind

_LABEL, _SETS, _TEXT = PredictionKind.LABEL, PredictionKind.LABEL_SET, PredictionKind.TEXT


def _hits(truth: Truth, prediction: Values, params: Params) -> Floats:
    return np.asarray(truth.values == prediction, dtype=float)[:, None]  # [n_rows, 1]


def _misses(truth: Truth, prediction: Values, params: Params) -> Floats:
    return 1.0 - _hits(truth, prediction, params)


def _require_two_labels(truth: Truth, name: str) -> None:
    if (truth.values == truth.values[0]).all():
        raise MetricUndefined(f"{name} is undefined: all answers have one and the same label")


def _overlap(truth: Truth, prediction: Values, params: Params) -> Floats:
    """Counts of hits, predicted and true labels ``# [n_rows, 3]``."""
    if truth.target.kind is _LABEL:
        hits = truth.values == prediction
        return np.column_stack([hits, np.ones_like(hits), np.ones_like(hits)]).astype(float)
    rows = [
        (len({*true} & {*predicted}), len({*predicted}), len({*true}))
        for true, predicted in zip(truth.values, prediction, strict=True)
    ]
    return np.array(rows, dtype=float)


def _micro_f1(truth: Truth, prediction: Values, params: Params) -> Floats:
    rows = _overlap(truth, prediction, params)
    if not rows[:, 2].any():
        raise MetricUndefined("F1 is undefined: no answer holds a label")
    return rows


def _binary(truth: Truth, prediction: Values, params: Params) -> Floats:
    positive = len(truth.target.labels) - 1
    true, predicted = truth.values == positive, prediction == positive
    if not true.any():
        raise MetricUndefined(f"F1 is undefined: no answer is {truth.target.labels[positive]!r}")
    return np.column_stack([true & predicted, predicted, true]).astype(float)


def _label_set(truth: Truth, prediction: Values) -> tuple[str, ...]:
    """Returns the task's labels, or where it has an open set all labels given."""
    return truth.target.labels or tuple(sorted({label for row in (*truth.values, *prediction) for label in row}))


def _pairs(truth: Truth, values: Values, labels: tuple[str, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and label of every label given ``# [n_pairs]`` each, without repeats within a row."""
    if truth.target.kind is _LABEL:
        return np.arange(len(values)), values.astype(np.intp)
    codes = {label: code for code, label in enumerate(labels)}
    pairs = sorted({(row, codes[label]) for row, labels in enumerate(values) for label in labels})
    flat = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return flat[:, 0], flat[:, 1]


def _macro_parts(truth: Truth, prediction: Values) -> tuple[Floats, Floats, Floats]:
    """F1 by label and its denominator ``# [n_labels]`` each, and how far each row moves their sum ``# [n_rows]``."""
    labels = _label_set(truth, prediction)
    n, n_labels = len(truth), len(labels)
    true_row, true_label = _pairs(truth, truth.values, labels)
    row, label = _pairs(truth, prediction, labels)
    hit = np.isin(row * n_labels + label, true_row * n_labels + true_label)
    hits: Floats = np.bincount(label[hit], minlength=n_labels).astype(float)
    total: Floats = np.bincount(np.concatenate([label, true_label]), minlength=n_labels).astype(float)
    f1 = ratio(2 * hits, total)
    per_hit, per_label = ratio(np.full(n_labels, 2.0), total), ratio(f1, total)
    moved: Floats = np.asarray(
        np.bincount(row[hit], per_hit[label[hit]], minlength=n)
        - np.bincount(row, per_label[label], minlength=n)
        - np.bincount(true_row, per_label[true_label], minlength=n)
    )
    return f1, total, moved


def _macro_f1(truth: Truth, prediction: Values, params: Params) -> float:
    f1, total, _ = _macro_parts(truth, prediction)
    if not total.any():
        raise MetricUndefined("F1 is undefined: no answer holds a label")
    return float(f1[total > 0].mean())


def _macro_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    _, total, moved = _macro_parts(truth, prediction)
    return moved * len(truth) / max(int((total > 0).sum()), 1)


def _places(truth: Truth, prediction: Values, params: Params) -> Floats:
    _require_two_labels(truth, "kappa")
    true, predicted = truth.values.astype(float), prediction.astype(float)
    return np.column_stack([true, predicted, true**2, predicted**2, true * predicted])


def _qwk(means: Floats, params: Params) -> Floats:
    true, predicted, true_squared, predicted_squared, product = np.moveaxis(means, -1, 0)
    # Squared distances make the expected disagreement a function of five moments; no confusion matrix is needed.
    return 1 - ratio(
        true_squared + predicted_squared - 2 * product, true_squared + predicted_squared - 2 * true * predicted
    )


def _one_hot(truth: Truth, prediction: Values, params: Params) -> Floats:
    _require_two_labels(truth, "Matthews correlation")
    labels = np.arange(len(truth.target.labels))
    true, predicted = truth.values[:, None] == labels, prediction[:, None] == labels  # [n_rows, n_labels]
    return np.column_stack([truth.values == prediction, predicted, true]).astype(float)


def _mcc(means: Floats, params: Params) -> Floats:
    hits, predicted, true = means[..., 0], *np.split(means[..., 1:], 2, axis=-1)
    spread = np.sqrt(np.maximum((1 - (predicted**2).sum(-1)) * (1 - (true**2).sum(-1)), 0))
    return ratio(hits - (predicted * true).sum(-1), np.asarray(spread))


ACCURACY = Metric(
    name="accuracy",
    title="accuracy",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL, _TEXT),
    best=1.0,
    calculation=OfMeans(_hits),
    words="The share of rows predicted exactly right.",
    formula=r"\frac{1}{n}\sum_i [\hat y_i = y_i]",
)
ERROR_RATE = Metric(
    name="error_rate",
    title="top-1 error",
    direction=Direction.MINIMIZE,
    kinds=(_LABEL, _TEXT),
    best=0.0,
    calculation=OfMeans(_misses),
    words="The share of rows not predicted exactly right.",
    formula=r"\frac{1}{n}\sum_i [\hat y_i \ne y_i]",
)
F1 = Metric(
    name="f1",
    title="F1",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL,),
    best=1.0,
    calculation=OfMeans(_binary, f1_of_means),
    words="The harmonic mean of precision and recall of the positive label, the last of the label set.",
    formula=r"\frac{2\,TP}{2\,TP + FP + FN}",
)
MACRO_F1 = Metric(
    name="macro_f1",
    title="macro F1",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL, _SETS),
    best=1.0,
    calculation=Whole(_macro_f1, _macro_spread),
    words="F1 of each label, averaged over the labels that occur in the answers or in the submission.",
    formula=r"\frac{1}{K}\sum_k \frac{2\,TP_k}{2\,TP_k + FP_k + FN_k}",
)
MICRO_F1 = Metric(
    name="micro_f1",
    title="micro F1",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL, _SETS),
    best=1.0,
    calculation=OfMeans(_micro_f1, f1_of_means),
    words="F1 over all labels of all rows together. With one label a row this is accuracy.",
    formula=r"\frac{2\sum_i |\hat Y_i \cap Y_i|}{\sum_i |\hat Y_i| + \sum_i |Y_i|}",
)
QWK = Metric(
    name="qwk",
    title="quadratic weighted kappa",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL,),
    best=1.0,
    calculation=OfMeans(_places, _qwk),
    words=(
        "Agreement beyond chance between ordered labels; a miss costs the square of its distance in the order of "
        "the label set. 0 is chance."
    ),
    formula=r"1 - \frac{\sum_{ij} (i-j)^2 O_{ij}}{\sum_{ij} (i-j)^2 E_{ij}}",
)
MCC = Metric(
    name="mcc",
    title="Matthews correlation coefficient",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL,),
    best=1.0,
    calculation=OfMeans(_one_hot, _mcc),
    words="The correlation of predicted and true labels. A constant prediction scores 0.",
    formula=r"\frac{TP\cdot TN - FP\cdot FN}{\sqrt{(TP+FP)(TP+FN)(TN+FP)(TN+FN)}}",
)
