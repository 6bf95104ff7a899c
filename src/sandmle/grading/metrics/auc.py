"""Metrics of the order of scores: areas under the ROC curve, and the concordance index."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sandmle.grading.metrics.base import Floats, Metric, MetricUndefined, Params, Role, Truth, Values, Whole
from sandmle.records import Direction, PredictionKind

Bools = NDArray[np.bool_]


def average_ranks(values: Floats) -> Floats:
    """Returns ranks from 1, ties sharing their mean rank ``# [n]``."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def roc_auc(positive: Bools, scores: Floats, where: str = "") -> tuple[float, Floats]:
    """Returns the area under the ROC curve and the influence of each row ``# [n_rows]``.

    Ties count one half. The influence comes from placement values (DeLong, DeLong and Clarke-Pearson 1988).

    Raises:
        MetricUndefined: The answers hold one class only.
    """
    n, n_positive = len(scores), int(positive.sum())
    if n_positive in (0, n):
        raise MetricUndefined(f"AUC is undefined: the answers{where} hold one class only")
    overall = average_ranks(scores)
    placement = np.empty(n)
    # Share of the other class that a row beats (positives) or loses to (negatives).
    placement[positive] = (overall[positive] - average_ranks(scores[positive])) / (n - n_positive)
    placement[~positive] = 1 - (overall[~positive] - average_ranks(scores[~positive])) / n_positive
    area = float(placement[positive].mean())
    return area, (placement - area) * np.where(positive, n / n_positive, n / (n - n_positive))


def roc_points(positive: Bools, scores: Floats) -> tuple[Floats, Floats]:
    """Returns false and true positive rates at every distinct score, from (0, 0) to (1, 1)."""
    order = np.argsort(-scores, kind="stable")
    hits = np.concatenate([[0], np.cumsum(positive[order])])
    last_of_ties = np.concatenate([[True], np.diff(scores[order]) != 0, [True]])
    counts = np.arange(len(hits))[last_of_ties]
    true_rate: Floats = hits[last_of_ties] / hits[-1]
    false_rate: Floats = (counts - hits[last_of_ties]) / (len(scores) - hits[-1])
    return false_rate, true_rate


def _roc_auc(truth: Truth, prediction: Values, params: Params) -> float:
    return roc_auc(truth.values == 1, prediction)[0]


def _roc_auc_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    return roc_auc(truth.values == 1, prediction)[1]


def _columns(truth: Truth, prediction: Values) -> list[tuple[float, Floats]]:
    return [
        roc_auc(truth.values[:, column] == 1, prediction[:, column], f" in column {name!r}")
        for column, name in enumerate(truth.target.columns)
    ]


def _mean_column_auc(truth: Truth, prediction: Values, params: Params) -> float:
    return float(np.mean([area for area, _ in _columns(truth, prediction)]))


def _mean_column_auc_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    return np.asarray(np.mean([moved for _, moved in _columns(truth, prediction)], axis=0))


def _flattened_auc(truth: Truth, prediction: Values, params: Params) -> float:
    return roc_auc(truth.values.ravel() == 1, prediction.ravel())[0]


def _flattened_auc_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    moved = roc_auc(truth.values.ravel() == 1, prediction.ravel())[1]
    # Cells of a row stand or fall together.
    return np.asarray(moved.reshape(truth.values.shape).mean(axis=1))


def _weighted_auc(truth: Truth, prediction: Values, params: Params) -> float:
    positive = truth.values == 1
    if positive.all() or not positive.any():
        raise MetricUndefined("AUC is undefined: the answers hold one class only")
    false_rate, true_rate = roc_points(positive, prediction)
    borders, weights = np.asarray(params["tpr_borders"], dtype=float), np.asarray(params["weights"], dtype=float)
    inner = borders[1:-1]
    xs = np.concatenate([false_rate, np.interp(inner, true_rate, false_rate)])
    ys = np.concatenate([true_rate, inner])
    order = np.lexsort((ys, xs))
    xs, ys = xs[order], ys[order]
    areas = [np.trapezoid(ys.clip(low, high) - low, xs) for low, high in pairwise(borders)]
    return float(np.dot(areas, weights) / np.dot(np.diff(borders), weights))


def _subgroup_auc(truth: Truth, prediction: Values, params: Params) -> float:
    positive = truth.values == 1
    power = float(params["power"])
    areas = []  # [n_subgroups, 3]
    for number in range(truth.extras["subgroups"].shape[1]):
        inside = truth.extras["subgroups"][:, number]
        views = (inside, (inside & ~positive) | (~inside & positive), (inside & positive) | (~inside & ~positive))
        where = f" of subgroup {number + 1}"
        areas.append([roc_auc(positive[rows], prediction[rows], where)[0] for rows in views])
    means = np.mean(np.maximum(areas, 1e-9) ** power, axis=0) ** (1 / power)  # [3]
    share = float(params["overall_weight"])
    return float(share * roc_auc(positive, prediction)[0] + (1 - share) * means.mean())


def _concordance(truth: Truth, prediction: Values) -> tuple[Floats, Floats]:
    """Concordant and comparable pairs that each row is in ``# [n_rows]`` each; tied predictions count one half."""
    time, predicted = truth.values[:, 0], prediction[:, 0]
    event = truth.extras.get("event", np.ones(len(time), dtype=bool))
    good, pairs = np.zeros(len(time)), np.zeros(len(time))
    for start in range(0, len(time), 512):
        rows = slice(start, start + 512)
        comparable = (time[rows, None] < time) & event[rows, None]  # [512, n_rows]: the row's event came first
        won = comparable * ((predicted[rows, None] < predicted) + 0.5 * (predicted[rows, None] == predicted))
        pairs[rows] += comparable.sum(axis=1)
        pairs += comparable.sum(axis=0)
        good[rows] += won.sum(axis=1)
        good += won.sum(axis=0)
    if not pairs.any():
        raise MetricUndefined("the concordance index is undefined: no two answers can be compared")
    return good, pairs


def _c_index(truth: Truth, prediction: Values, params: Params) -> float:
    good, pairs = _concordance(truth, prediction)
    return float(good.sum() / pairs.sum())


def _c_index_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    good, pairs = _concordance(truth, prediction)
    # Twice the projection of a statistic over pairs (Hoeffding 1948), for a ratio of two of them.
    return np.asarray(2 * (good - pairs * (good.sum() / pairs.sum())) / pairs.mean())


_SCORE = "Any finite numbers are accepted; only their order counts."

ROC_AUC = Metric(
    name="roc_auc",
    title="area under the ROC curve (AUC)",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.PROBABILITY,),
    best=1.0,
    calculation=Whole(_roc_auc, _roc_auc_spread),
    words=f"The chance that a positive row gets a higher prediction than a negative one; ties count one half. {_SCORE}",
    formula=(
        r"\frac{1}{n_+ n_-}\sum_{i \in +}\sum_{j \in -} "
        r"\left([\hat p_i > \hat p_j] + \tfrac12 [\hat p_i = \hat p_j]\right)"
    ),
)
MEAN_COLUMN_ROC_AUC = Metric(
    name="mean_column_roc_auc",
    title="mean column-wise AUC",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.LABEL_PROBABILITIES, PredictionKind.CLASS_PROBABILITIES),
    best=1.0,
    calculation=Whole(_mean_column_auc, _mean_column_auc_spread),
    words=f"The area under the ROC curve of each prediction column, averaged over all columns. {_SCORE}",
    formula=r"\frac{1}{K}\sum_k \mathrm{AUC}_k",
)
FLATTENED_ROC_AUC = Metric(
    name="flattened_roc_auc",
    title="AUC over all cells",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.LABEL_PROBABILITIES,),
    best=1.0,
    calculation=Whole(_flattened_auc, _flattened_auc_spread),
    words=f"One area under the ROC curve over the cells of all prediction columns together. {_SCORE}",
    formula=r"\mathrm{AUC}\left(\{(y_{ik}, \hat p_{ik})\}\right)",
)
WEIGHTED_ROC_AUC = Metric(
    name="weighted_roc_auc",
    title="weighted AUC",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.PROBABILITY,),
    best=1.0,
    calculation=Whole(_weighted_auc),
    words=(
        "The area under the ROC curve, cut into bands of the true positive rate that have weights of their own; by "
        f"default the band from 0 to 0.4 counts twice. {_SCORE}"
    ),
    formula=r"\frac{\sum_b w_b \int \left(\min(\max(TPR, l_b), u_b) - l_b\right) dFPR}{\sum_b w_b (u_b - l_b)}",
    defaults={"tpr_borders": (0.0, 0.4, 1.0), "weights": (2.0, 1.0)},
)
SUBGROUP_AUC = Metric(
    name="subgroup_auc",
    title="bias-weighted AUC",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.PROBABILITY,),
    best=1.0,
    calculation=Whole(_subgroup_auc),
    words=(
        "A quarter is the AUC over all rows. Three quarters are means over subgroups of rows, with a power of -5 that "
        "stresses the worst subgroup, of three AUCs: within the subgroup; its negatives against the other rows' "
        f"positives; its positives against the other rows' negatives. {_SCORE}"
    ),
    formula=(
        r"\tfrac14 \mathrm{AUC} + \tfrac14 \sum_{v=1}^{3} "
        r"\left(\frac{1}{G}\sum_g \mathrm{AUC}_{g,v}^{-5}\right)^{-1/5}"
    ),
    defaults={"power": -5.0, "overall_weight": 0.25},
    roles=(Role("subgroups", "flag", many=True),),
)
C_INDEX = Metric(
    name="c_index",
    title="concordance index",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.VALUES,),
    best=1.0,
    calculation=Whole(_c_index, _c_index_spread),
    words=(
        "The share of comparable pairs of rows that the prediction puts in the right order: a larger prediction "
        "means a later event. A pair is comparable when the earlier of its two times is an observed event; ties of "
        "the prediction count one half."
    ),
    formula=(
        r"\frac{\sum_{t_i < t_j, \delta_i = 1} \left([\hat t_i < \hat t_j] + \tfrac12[\hat t_i = \hat t_j]\right)}"
        r"{|\{(i, j): t_i < t_j, \delta_i = 1\}|}"
    ),
    roles=(Role("event", "flag", required=False),),
)
