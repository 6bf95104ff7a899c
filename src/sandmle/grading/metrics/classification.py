"""Metrics of labels: accuracy, F1, kappa, Matthews correlation."""

from typing import Any

import numpy as np

from sandmle.grading.metrics.base import (
    Calculation,
    Floats,
    Metric,
    MetricUndefined,
    OfMeans,
    Params,
    Truth,
    Values,
    f1_of_means,
    ignoring,
    ratio,
)
from sandmle.records import Direction, PredictionKind

_LABEL, _SETS, _TEXT = PredictionKind.LABEL, PredictionKind.LABEL_SET, PredictionKind.TEXT
_MANY_LABELS = "The number of unique classes is greater than 50%"


def _accuracy(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import accuracy_score

    with ignoring(_MANY_LABELS):
        return float(accuracy_score(truth.values, prediction))


def _error_rate(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import zero_one_loss

    with ignoring(_MANY_LABELS):
        return float(zero_one_loss(truth.values, prediction))


def _hits(truth: Truth, prediction: Values, params: Params) -> Floats:
    return np.asarray(truth.values == prediction, dtype=float)[:, None]  # [n_rows, 1]


def _misses(truth: Truth, prediction: Values, params: Params) -> Floats:
    return 1.0 - _hits(truth, prediction, params)


def _require_two_labels(truth: Truth, params: Params) -> None:
    if (truth.values == truth.values[0]).all():
        raise MetricUndefined("kappa and Matthews correlation are undefined: all answers have one and the same label")


def _require_positive(truth: Truth, params: Params) -> None:
    labels = truth.target.labels
    if not (truth.values == len(labels) - 1).any():
        raise MetricUndefined(f"F1 is undefined: no answer is {labels[-1]!r}")


def _require_label(truth: Truth, params: Params) -> None:
    if truth.target.kind is _SETS and not any(truth.values):
        raise MetricUndefined("F1 is undefined: no answer holds a label")


def _binary_f1(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import f1_score

    positive = len(truth.target.labels) - 1
    return float(f1_score(truth.values == positive, prediction == positive, zero_division=0.0))


def _binary(truth: Truth, prediction: Values, params: Params) -> Floats:
    positive = len(truth.target.labels) - 1
    true, predicted = truth.values == positive, prediction == positive
    return np.column_stack([true & predicted, predicted, true]).astype(float)


def _indicators(truth: Truth, prediction: Values) -> tuple[Any, Any]:
    """Sets of labels as sparse 0 and 1 ``# [n_rows, n_labels]``, for the labels that occur on either side."""
    from sklearn.preprocessing import MultiLabelBinarizer

    labels = sorted({label for row in (*truth.values, *prediction) for label in row})
    binarizer = MultiLabelBinarizer(classes=labels, sparse_output=True).fit([])
    return binarizer.transform(truth.values), binarizer.transform(prediction)


def _averaged_f1(truth: Truth, prediction: Values, average: str) -> float:
    from sklearn.metrics import f1_score

    if truth.target.kind is _SETS:
        return float(f1_score(*_indicators(truth, prediction), average=average, zero_division=0.0))
    labels = np.union1d(truth.values, prediction)
    with ignoring(_MANY_LABELS):
        return float(f1_score(truth.values, prediction, labels=labels, average=average, zero_division=0.0))


def _micro_f1(truth: Truth, prediction: Values, params: Params) -> float:
    return _averaged_f1(truth, prediction, "micro")


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


def _macro_f1(truth: Truth, prediction: Values, params: Params) -> float:
    return _averaged_f1(truth, prediction, "macro")


def _macro_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    """How far each row moves the mean over labels, to first order."""
    from scipy.sparse import csr_matrix

    if truth.target.kind is _SETS:
        true, given = _indicators(truth, prediction)
    else:
        labels, rows = np.union1d(truth.values, prediction), np.arange(len(truth))
        true, given = (
            csr_matrix((np.ones(len(rows)), (rows, np.searchsorted(labels, side))), (len(rows), len(labels)))
            for side in (truth.values, prediction)
        )
    both = true.multiply(given)
    total = np.asarray(true.sum(axis=0) + given.sum(axis=0)).ravel()  # [n_labels], all above 0
    f1 = 2 * np.asarray(both.sum(axis=0)).ravel() / total
    moved = both @ (2 / total) - (true + given) @ (f1 / total)
    return np.asarray(moved * len(truth) / len(total))


def _qwk_score(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import cohen_kappa_score

    labels = np.arange(len(truth.target.labels))
    with ignoring(_MANY_LABELS):
        return float(cohen_kappa_score(truth.values, prediction, labels=labels, weights="quadratic"))


def _places(truth: Truth, prediction: Values, params: Params) -> Floats:
    true, predicted = truth.values.astype(float), prediction.astype(float)
    return np.column_stack([true, predicted, true**2, predicted**2, true * predicted])


def _qwk(means: Floats, params: Params) -> Floats:
    true, predicted, true_squared, predicted_squared, product = np.moveaxis(means, -1, 0)
    # Squared distances make the expected disagreement a function of five moments; no confusion matrix is needed.
    return 1 - ratio(
        true_squared + predicted_squared - 2 * product, true_squared + predicted_squared - 2 * true * predicted
    )


def _mcc_score(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import matthews_corrcoef

    with ignoring(_MANY_LABELS):
        return float(matthews_corrcoef(truth.values, prediction))


def _one_hot(truth: Truth, prediction: Values, params: Params) -> Floats:
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
    calculation=Calculation(_accuracy, OfMeans(_hits).spread),
    words="The share of rows predicted exactly right.",
    formula=r"\frac{1}{n}\sum_i [\hat y_i = y_i]",
)
ERROR_RATE = Metric(
    name="error_rate",
    title="top-1 error",
    direction=Direction.MINIMIZE,
    kinds=(_LABEL, _TEXT),
    best=0.0,
    calculation=Calculation(_error_rate, OfMeans(_misses).spread),
    words="The share of rows not predicted exactly right.",
    formula=r"\frac{1}{n}\sum_i [\hat y_i \ne y_i]",
)
F1 = Metric(
    name="f1",
    title="F1",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL,),
    best=1.0,
    calculation=Calculation(_binary_f1, OfMeans(_binary, f1_of_means).spread),
    require=_require_positive,
    words="The harmonic mean of precision and recall of the positive label, the last of the label set.",
    formula=r"\frac{2\,TP}{2\,TP + FP + FN}",
)
MACRO_F1 = Metric(
    name="macro_f1",
    title="macro F1",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL, _SETS),
    best=1.0,
    calculation=Calculation(_macro_f1, _macro_spread),
    require=_require_label,
    words="F1 of each label, averaged over the labels that occur in the answers or in the submission.",
    formula=r"\frac{1}{K}\sum_k \frac{2\,TP_k}{2\,TP_k + FP_k + FN_k}",
)
MICRO_F1 = Metric(
    name="micro_f1",
    title="micro F1",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL, _SETS),
    best=1.0,
    calculation=Calculation(_micro_f1, OfMeans(_overlap, f1_of_means).spread),
    require=_require_label,
    words="F1 over all labels of all rows together. With one label a row this is accuracy.",
    formula=r"\frac{2\sum_i |\hat Y_i \cap Y_i|}{\sum_i |\hat Y_i| + \sum_i |Y_i|}",
)
QWK = Metric(
    name="qwk",
    title="quadratic weighted kappa",
    direction=Direction.MAXIMIZE,
    kinds=(_LABEL,),
    best=1.0,
    calculation=Calculation(_qwk_score, OfMeans(_places, _qwk).spread),
    require=_require_two_labels,
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
    calculation=Calculation(_mcc_score, OfMeans(_one_hot, _mcc).spread),
    require=_require_two_labels,
    words="The correlation of predicted and true labels. A constant prediction scores 0.",
    formula=r"\frac{TP\cdot TN - FP\cdot FN}{\sqrt{(TP+FP)(TP+FN)(TN+FP)(TN+FN)}}",
)
