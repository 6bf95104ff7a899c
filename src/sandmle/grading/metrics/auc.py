"""Metrics of the order of scores: areas under the ROC curve, and the concordance index."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sandmle.grading.metrics.base import Calculation, Floats, Metric, MetricUndefined, Params, Role, Truth, Values
from sandmle.records import Direction, PredictionKind

Bools = NDArray[np.bool_]


def _area(positive: Bools, scores: Floats) -> float:
    """Returns the area by the sum of the positives' ranks (Mann and Whitney 1947).

    scikit-learn's roc_auc_score gives the same, but spends ten times as long on looking at its arguments; the tests
    hold this to it.
    """
    from scipy.stats import rankdata

    n_positive = int(positive.sum())
    beaten = rankdata(scores)[positive].sum() - n_positive * (n_positive + 1) / 2
    return float(beaten / (n_positive * (len(scores) - n_positive)))


def _require_both(positive: Bools, where: str = "") -> None:
    if positive.all() or not positive.any():
        raise MetricUndefined(f"AUC is undefined: the answers{where} hold one class only")


def _placements(positive: Bools, scores: Floats) -> Floats:
    """Returns how far each row moves the area ``# [n_rows]`` (DeLong, DeLong and Clarke-Pearson 1988)."""
    from scipy.stats import rankdata

    n, n_positive = len(scores), int(positive.sum())
    overall = rankdata(scores)
    placement = np.empty(n)
    # Share of the other class that a row beats (positives) or loses to (negatives).
    placement[positive] = (overall[positive] - rankdata(scores[positive])) / (n - n_positive)
    placement[~positive] = 1 - (overall[~positive] - rankdata(scores[~positive])) / n_positive
    area = placement[positive].mean()
    return np.asarray((placement - area) * np.where(positive, n / n_positive, n / (n - n_positive)))


def _require_two_classes(truth: Truth, params: Params) -> None:
    _require_both(truth.values == 1)


def _roc_auc(truth: Truth, prediction: Values, params: Params) -> float:
    return _area(truth.values == 1, prediction)


def _roc_auc_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    return _placements(truth.values == 1, prediction)


def _require_two_classes_by_column(truth: Truth, params: Params) -> None:
    for column, name in zip((truth.values == 1).T, truth.target.columns, strict=True):
        _require_both(column, f" in column {name!r}")


def _mean_column_auc(truth: Truth, prediction: Values, params: Params) -> float:
    return float(np.mean([_area(*column) for column in zip((truth.values == 1).T, prediction.T, strict=True)]))


def _mean_column_auc_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    moved = [_placements(*column) for column in zip((truth.values == 1).T, prediction.T, strict=True)]
    return np.asarray(np.mean(moved, axis=0))


def _flattened_auc(truth: Truth, prediction: Values, params: Params) -> float:
    return _area(truth.values.ravel() == 1, prediction.ravel())


def _flattened_auc_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    moved = _placements(truth.values.ravel() == 1, prediction.ravel())
    # Cells of a row stand or fall together.
    return np.asarray(moved.reshape(truth.values.shape).mean(axis=1))


def _weighted_auc(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import auc, roc_curve

    false_rate, true_rate, _ = roc_curve(truth.values == 1, prediction, drop_intermediate=False)
    borders, weights = np.asarray(params["tpr_borders"], dtype=float), np.asarray(params["weights"], dtype=float)
    inner = borders[1:-1]
    xs = np.concatenate([false_rate, np.interp(inner, true_rate, false_rate)])
    ys = np.concatenate([true_rate, inner])
    order = np.lexsort((ys, xs))
    xs, ys = xs[order], ys[order]
    areas = [auc(xs, ys.clip(low, high) - low) for low, high in pairwise(borders)]
    return float(np.dot(areas, weights) / np.dot(np.diff(borders), weights))


def _subgroup_views(truth: Truth) -> list[tuple[Bools, Bools, Bools]]:
    """Rows of each subgroup alone, its negatives with others' positives, its positives with others' negatives."""
    positive = truth.values == 1
    return [
        (inside, (inside & ~positive) | (~inside & positive), (inside & positive) | (~inside & ~positive))
        for inside in truth.extras["subgroups"].T
    ]


def _require_two_classes_by_subgroup(truth: Truth, params: Params) -> None:
    positive = truth.values == 1
    _require_both(positive)
    for number, views in enumerate(_subgroup_views(truth), start=1):
        for rows in views:
            _require_both(positive[rows], f" of subgroup {number}")


def _subgroup_auc(truth: Truth, prediction: Values, params: Params) -> float:
    positive = truth.values == 1
    power, share = float(params["power"]), float(params["overall_weight"])
    areas = [[_area(positive[rows], prediction[rows]) for rows in views] for views in _subgroup_views(truth)]
    means = np.mean(np.maximum(areas, 1e-9) ** power, axis=0) ** (1 / power)  # [n_subgroups, 3] -> [3]
    return float(share * _area(positive, prediction) + (1 - share) * means.mean())


def _require_a_pair(truth: Truth, params: Params) -> None:
    time = truth.values[:, 0]
    if not (time[truth.extras.get("event", np.ones(len(time), dtype=bool))] < time.max()).any():
        raise MetricUndefined("the concordance index is undefined: no two answers can be compared")


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
    calculation=Calculation(_roc_auc, _roc_auc_spread),
    require=_require_two_classes,
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
    calculation=Calculation(_mean_column_auc, _mean_column_auc_spread),
    require=_require_two_classes_by_column,
    words=f"The area under the ROC curve of each prediction column, averaged over all columns. {_SCORE}",
    formula=r"\frac{1}{K}\sum_k \mathrm{AUC}_k",
)
FLATTENED_ROC_AUC = Metric(
    name="flattened_roc_auc",
    title="AUC over all cells",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.LABEL_PROBABILITIES,),
    best=1.0,
    calculation=Calculation(_flattened_auc, _flattened_auc_spread),
    require=_require_two_classes,
    words=f"One area under the ROC curve over the cells of all prediction columns together. {_SCORE}",
    formula=r"\mathrm{AUC}\left(\{(y_{ik}, \hat p_{ik})\}\right)",
)
WEIGHTED_ROC_AUC = Metric(
    name="weighted_roc_auc",
    title="weighted AUC",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.PROBABILITY,),
    best=1.0,
    calculation=Calculation(_weighted_auc),
    require=_require_two_classes,
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
    calculation=Calculation(_subgroup_auc),
    require=_require_two_classes_by_subgroup,
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
    calculation=Calculation(_c_index, _c_index_spread),
    require=_require_a_pair,
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
