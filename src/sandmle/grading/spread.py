"""How much a score would differ on other rows of the same kind: its standard error."""

import numpy as np
from numpy.typing import NDArray

from sandmle.grading.metrics.base import Floats, Metric, MetricUndefined, Params, Truth, Values


def standard_error(
    metric: Metric, truth: Truth, prediction: Values, params: Params, *, rng_seed: int, resamples: int
) -> float:
    """Returns the standard error of a metric's value on as many rows as these.

    Raises:
        MetricUndefined: The answers, or more than half of the resamples, give no number.
    """
    if len(truth) < 2:
        raise MetricUndefined("one row has no spread")
    groups = truth.extras.get(metric.unit) if metric.unit else None
    metric.check(truth, params)
    if metric.calculation.spread is None:
        return _bootstrap(metric, truth, prediction, params, groups, np.random.default_rng(rng_seed), resamples)
    influence = metric.calculation.spread(truth, prediction, params)
    if groups is not None and len(influence) == len(groups):
        influence = _sum_by_group(influence, groups)
    return float(influence.std() / np.sqrt(max(len(influence) - 1, 1)))


def _sum_by_group(influence: Floats, groups: NDArray[np.intp]) -> Floats:
    sums = np.bincount(groups, influence)
    present = np.bincount(groups) > 0
    return np.asarray(sums[present] * present.sum() / len(groups))


def _bootstrap(
    metric: Metric,
    truth: Truth,
    prediction: Values,
    params: Params,
    groups: NDArray[np.intp] | None,
    rng: np.random.Generator,
    resamples: int,
) -> float:
    units = np.arange(len(truth)) if groups is None else np.unique(groups, return_inverse=True)[1]
    n_units = int(units.max()) + 1
    by_unit = np.argsort(units, kind="stable")
    starts = np.searchsorted(units[by_unit], np.arange(n_units + 1))
    scores = []
    for _ in range(resamples):
        drawn = rng.integers(0, n_units, n_units)
        rows = drawn if groups is None else np.concatenate([by_unit[starts[unit] : starts[unit + 1]] for unit in drawn])
        sample = truth.take(rows)
        if groups is not None and metric.unit:
            # A group that is drawn twice counts as two groups.
            sizes = starts[drawn + 1] - starts[drawn]
            fresh = {**sample.extras, metric.unit: np.repeat(np.arange(n_units), sizes)}
            sample = Truth(sample.values, sample.target, fresh)
        try:
            scores.append(metric.score(sample, prediction[rows], params))
        except MetricUndefined:
            continue  # a resample may miss a class; the original did not
    if len(scores) < max(2, resamples // 2):
        raise MetricUndefined(f"metric {metric.name!r} is undefined on most resamples of these answers")
    return float(np.std(scores, ddof=1))
