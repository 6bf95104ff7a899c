"""Metrics of probabilities: log losses, KL divergence, probabilistic F1, label-ranking average precision."""

import numpy as np

from sandmle.grading.metrics.base import (
    Calculation,
    Floats,
    Metric,
    MetricUndefined,
    OfMeans,
    Params,
    Role,
    Truth,
    Values,
    f1_of_means,
    ignoring,
    ratio_of_means,
)
from sandmle.records import Direction, PredictionKind

CLIP = 1e-15
_RANK_CELLS = 4_000_000
_PROBABILITY, _CLASSES, _LABELS = (
    PredictionKind.PROBABILITY,
    PredictionKind.CLASS_PROBABILITIES,
    PredictionKind.LABEL_PROBABILITIES,
)


def _clipped(predicted: Floats, clip: float = CLIP) -> Floats:
    return predicted.clip(clip, 1 - clip)


def _binary_loss(true: Floats, predicted: Floats, clip: float = CLIP) -> Floats:
    kept = _clipped(predicted, clip)
    loss: Floats = -(true * np.log(kept) + (1 - true) * np.log1p(-kept))
    return loss


def _log_loss(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import log_loss

    clip = float(params["clip"])
    if truth.target.kind is _PROBABILITY:
        return float(log_loss(truth.values, _clipped(prediction, clip), labels=[0, 1]))
    # Answers may be shares: each label that has one is a row that weighs as much.
    rows, labels = np.nonzero(truth.values)
    with ignoring("The y_(pred|prob) values do not sum to one"):
        total = log_loss(
            labels,
            _clipped(prediction[rows], clip),
            normalize=False,
            sample_weight=truth.values[rows, labels],
            labels=np.arange(truth.values.shape[1]),
        )
    return float(total) / len(truth)


def _losses(truth: Truth, prediction: Values, params: Params) -> Floats:
    clip = float(params["clip"])
    if truth.target.kind is _PROBABILITY:
        return _binary_loss(truth.values, prediction, clip)[:, None]
    return np.asarray(-(truth.values * np.log(_clipped(prediction, clip))).sum(axis=1))[:, None]


def _weights(truth: Truth, params: Params) -> Floats:
    """Weight of each cell ``# [n_rows, n_columns]``."""
    true = truth.values.reshape(len(truth), -1)
    weights = np.where(true == 1, float(params["positive_weight"]), 1.0)
    if params["column_weights"] is not None:
        weights = weights * np.asarray(params["column_weights"], dtype=float)
    if "weight" in truth.extras:
        weights = weights * truth.extras["weight"][:, None]
    return weights


def _require_weight(truth: Truth, params: Params) -> None:
    if not _weights(truth, params).sum() > 0:
        raise MetricUndefined("the weighted log loss is undefined: the weights sum to 0")


def _weighted_log_loss(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import log_loss

    weights = _weights(truth, params).ravel()
    return float(log_loss(truth.values.ravel(), _clipped(prediction.ravel()), sample_weight=weights, labels=[0, 1]))


def _weighted_losses(truth: Truth, prediction: Values, params: Params) -> Floats:
    true, predicted = (values.reshape(len(truth), -1) for values in (truth.values, prediction))
    weights = _weights(truth, params)
    return np.column_stack([(weights * _binary_loss(true, predicted)).sum(axis=1), weights.sum(axis=1)])


def _kl(truth: Truth, prediction: Values, params: Params) -> Floats:
    from scipy.special import rel_entr  # scipy.stats.entropy would rescale the rows

    return np.asarray(rel_entr(truth.values, prediction.clip(CLIP, 1.0)).sum(axis=1))[:, None]


def _require_positive(truth: Truth, params: Params) -> None:
    if not truth.values.any():
        raise MetricUndefined("the metric is undefined: no answer is positive")


def _soft_counts(truth: Truth, prediction: Values, params: Params) -> Floats:
    return np.column_stack([truth.values * prediction, prediction, truth.values])


def _label_precisions(truth: Truth, prediction: Values, params: Params) -> Floats:
    """Sum over each row's labels of their precision, and their number ``# [n_rows, 2]``."""
    true = truth.values == 1
    n_rows, n_labels = true.shape
    sums = np.zeros(n_rows)
    step = max(1, _RANK_CELLS // n_labels**2)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        at_least = prediction[rows, None, :] >= prediction[rows, :, None]  # [step, n_labels, n_labels]
        hits = (at_least & true[rows, None, :]).sum(axis=2)
        sums[rows] = (hits / at_least.sum(axis=2) * true[rows]).sum(axis=1)
    return np.column_stack([sums, true.sum(axis=1)]).astype(float)


LOG_LOSS = Metric(
    name="log_loss",
    title="log loss",
    direction=Direction.MINIMIZE,
    kinds=(_PROBABILITY, _CLASSES),
    best=0.0,
    calculation=Calculation(_log_loss, OfMeans(_losses).spread),
    words=(
        "The mean of minus the natural logarithm of the probability given to the true class. Probabilities are "
        "clipped to [1e-15, 1 - 1e-15]; rows are never rescaled."
    ),
    formula=r"-\frac{1}{n}\sum_i \sum_k y_{ik} \ln \hat p_{ik}",
    numbers="unit",
    rows_sum_to_one=True,
    defaults={"clip": CLIP},
)
WEIGHTED_LOG_LOSS = Metric(
    name="weighted_log_loss",
    title="weighted log loss",
    direction=Direction.MINIMIZE,
    kinds=(_PROBABILITY, _LABELS),
    best=0.0,
    calculation=Calculation(_weighted_log_loss, OfMeans(_weighted_losses, ratio_of_means).spread),
    require=_require_weight,
    words=(
        "The binary log loss of every predicted probability, averaged with weights: of the row, of the column, and "
        "of positive answers. Probabilities are clipped to [1e-15, 1 - 1e-15]."
    ),
    formula=(
        r"-\frac{\sum_{ik} w_{ik} \left(y_{ik} \ln \hat p_{ik} + (1 - y_{ik}) \ln(1 - \hat p_{ik})\right)}"
        r"{\sum_{ik} w_{ik}}"
    ),
    numbers="unit",
    defaults={"positive_weight": 1.0, "column_weights": None},
    roles=(Role("weight", "number", required=False),),
)
KL_DIVERGENCE = Metric(
    name="kl_divergence",
    title="Kullback-Leibler divergence",
    direction=Direction.MINIMIZE,
    kinds=(_CLASSES,),
    best=0.0,
    calculation=OfMeans(_kl),
    words=(
        "How far the predicted shares are from the true shares, averaged over rows (natural logarithm). Predictions"
        " are clipped to at least 1e-15; rows are never rescaled."
    ),
    formula=r"\frac{1}{n}\sum_i \sum_k y_{ik} \ln \frac{y_{ik}}{\hat p_{ik}}",
    numbers="unit",
    rows_sum_to_one=True,
)
PROBABILISTIC_F1 = Metric(
    name="probabilistic_f1",
    title="probabilistic F1",
    direction=Direction.MAXIMIZE,
    kinds=(_PROBABILITY,),
    best=1.0,
    calculation=OfMeans(_soft_counts, f1_of_means),
    require=_require_positive,
    words="F1 of the positive label, with probabilities in the place of counts: no cut is needed.",
    formula=r"\frac{2\sum_i y_i \hat p_i}{\sum_i \hat p_i + \sum_i y_i}",
    numbers="unit",
)
LWLRAP = Metric(
    name="lwlrap",
    title="label-weighted label-ranking average precision",
    direction=Direction.MAXIMIZE,
    kinds=(_LABELS,),
    best=1.0,
    # scikit-learn's loop over rows takes a hundred times longer; the tests hold this to it.
    calculation=OfMeans(_label_precisions, ratio_of_means),
    require=_require_positive,
    words=(
        "For every true label: the share of true ones among the labels that its row ranks at least as high; "
        "averaged over all true labels. Any finite numbers are accepted; only their order within a row counts, and "
        "ties count as ranked higher."
    ),
    formula=(
        r"\frac{1}{\sum_i |Y_i|}\sum_i \sum_{k \in Y_i} "
        r"\frac{|\{j \in Y_i: \hat p_{ij} \ge \hat p_{ik}\}|}{|\{j: \hat p_{ij} \ge \hat p_{ik}\}|}"
    ),
)
