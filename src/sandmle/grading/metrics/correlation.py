"""Correlations of predicted and true numbers."""

import numpy as np

from sandmle.grading.metrics.auc import average_ranks
from sandmle.grading.metrics.base import Floats, Metric, MetricUndefined, OfMeans, Params, Truth, Values, ratio
from sandmle.records import Direction, PredictionKind


def _moments(true: Floats, predicted: Floats) -> Floats:
    """Centred second moments of each column ``# [n_rows, 5 * n_columns]``."""
    if len(true) < 2 or (true == true[0]).all(axis=0).any():
        raise MetricUndefined("correlation is undefined: the answers are constant")
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
    def ranked(values: Values) -> Floats:
        return np.column_stack([average_ranks(column) for column in values.T]) / len(values)

    return _moments(ranked(truth.values), ranked(prediction))


_CONSTANT = "A constant prediction scores 0."

PEARSON = Metric(
    name="pearson",
    title="Pearson correlation",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.VALUES,),
    best=1.0,
    calculation=OfMeans(_values, _correlation),
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
    calculation=OfMeans(_ranks, _correlation),
    words=(
        "The correlation of the ranks of predictions and answers (ties share their mean rank), averaged over the "
        f"prediction columns. {_CONSTANT}"
    ),
    formula=r"\frac{1}{K}\sum_k \rho\left(\mathrm{rank}(\hat y_{\cdot k}), \mathrm{rank}(y_{\cdot k})\right)",
)
