"""Correlations of predicted and true numbers."""

from collections.abc import Callable

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
    ignoring,
    ratio,
)
from sandmle.records import Direction, PredictionKind


def _require_varied(truth: Truth, params: Params) -> None:
    if len(truth) < 2 or (truth.values == truth.values[0]).all(axis=0).any():
        raise MetricUndefined("correlation is undefined: the answers are constant")


def _mean_over_columns(correlate: Callable[[Floats, Floats], float], truth: Truth, prediction: Values) -> float:
    """A column of constant predictions counts 0."""
    columns = zip(truth.values.T, prediction.T, strict=True)
    return float(np.mean([0.0 if (given == given[0]).all() else correlate(true, given) for true, given in columns]))


def _pearson(truth: Truth, prediction: Values, params: Params) -> float:
    from scipy.stats import pearsonr

    with ignoring("An input array is nearly constant"):
        return _mean_over_columns(lambda true, given: float(pearsonr(true, given)[0]), truth, prediction)


def _spearman(truth: Truth, prediction: Values, params: Params) -> float:
    from scipy.stats import spearmanr

    return _mean_over_columns(lambda true, given: float(spearmanr(true, given)[0]), truth, prediction)


def _moments(true: Floats, predicted: Floats) -> Floats:
    """Centred second moments of each column ``# [n_rows, 5 * n_columns]``."""
    scale = np.maximum(np.abs(predicted).max(axis=0), 1e-300)  # correlation does not depend on it
    x, y = true - true.mean(axis=0), predicted / scale
    y = np.where((predicted == predicted[0]).all(axis=0), 0.0, y - y.mean(axis=0))
    return np.hstack([x, y, x * x, y * y, x * y])


def _correlation(means: Floats, params: Params) -> Floats:
    x, y, xx, yy, xy = np.split(means, 5, axis=-1)
    spread = np.sqrt(np.maximum((xx - x * x) * (yy - y * y), 0))
    return np.asarray(ratio(xy - x * y, spread).mean(axis=-1))


def _values(truth: Truth, prediction: Values, params: Params) -> Floats:
    return _moments(truth.values, prediction)


def _ranks(truth: Truth, prediction: Values, params: Params) -> Floats:
    from scipy.stats import rankdata

    return _moments(rankdata(truth.values, axis=0) / len(truth), rankdata(prediction, axis=0) / len(truth))


_CONSTANT = "A constant prediction scores 0."

PEARSON = Metric(
    name="pearson",
    title="Pearson correlation",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.VALUES,),
    best=1.0,
    calculation=Calculation(_pearson, OfMeans(_values, _correlation).spread),
    require=_require_varied,
    words=f"The linear correlation of predictions and answers, averaged over the prediction columns. {_CONSTANT}",
    formula=(
        r"\frac{\sum_i (\hat y_i - \bar{\hat y})(y_i - \bar y)}"
        r"{\sqrt{\sum_i (\hat y_i - \bar{\hat y})^2 \sum_i (y_i - \bar y)^2}}"
    ),
)
MEAN_COLUMN_SPEARMAN = Metric(
    name="mean_column_spearman",
    title="mean column-wise Spearman correlation",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.VALUES,),
    best=1.0,
    calculation=Calculation(_spearman, OfMeans(_ranks, _correlation).spread),
    require=_require_varied,
    words=(
        "The correlation of the ranks of predictions and answers (ties share their mean rank), averaged over the "
        f"prediction columns. {_CONSTANT}"
    ),
    formula=r"\frac{1}{K}\sum_k \rho\left(\mathrm{rank}(\hat y_{\cdot k}), \mathrm{rank}(y_{\cdot k})\right)",
)
