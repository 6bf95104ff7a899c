"""Metrics of numbers: errors, explained variance, likelihood, angles and distances."""

import numpy as np
from numpy.typing import NDArray

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
    ratio,
    ratio_of_means,
)
from sandmle.records import Direction, PredictionKind

_VALUES = (PredictionKind.VALUES,)
_EARTH_RADIUS_M = 6_371_000.0
_SMALLEST_ERROR = 1e-9


def _per_row(errors: Floats) -> Floats:
    return np.asarray(errors.mean(axis=1))[:, None]  # [n_rows, 1]


def _rmse(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import root_mean_squared_error

    return float(root_mean_squared_error(truth.values.ravel(), prediction.ravel()))


def _squares(truth: Truth, prediction: Values, params: Params) -> Floats:
    return _per_row((prediction - truth.values) ** 2)


def _root(means: Floats, params: Params) -> Floats:
    return np.asarray(np.sqrt(np.maximum(means[..., 0], 0)))


def _absolute_error(true: Floats, predicted: Floats) -> float:
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(true, predicted))


def _mae(truth: Truth, prediction: Values, params: Params) -> float:
    return _absolute_error(truth.values, prediction)


def _distances(truth: Truth, prediction: Values, params: Params) -> Floats:
    return _per_row(np.abs(prediction - truth.values))


def _rounded_mae(truth: Truth, prediction: Values, params: Params) -> float:
    return _absolute_error(np.rint(truth.values), np.rint(prediction))


def _rounded(truth: Truth, prediction: Values, params: Params) -> Floats:
    return _per_row(np.abs(np.rint(prediction) - np.rint(truth.values)))


def _require_scored(truth: Truth, params: Params) -> None:
    if not truth.extras["scored"].any():
        raise MetricUndefined("the MAE of scored rows is undefined: no row is scored")


def _masked_mae(truth: Truth, prediction: Values, params: Params) -> float:
    scored = truth.extras["scored"]
    return _absolute_error(truth.values[scored], prediction[scored])


def _scored_only(truth: Truth, prediction: Values, params: Params) -> Floats:
    scored = truth.extras["scored"]
    return np.column_stack([scored * _distances(truth, prediction, params)[:, 0], scored]).astype(float)


def _group_means(truth: Truth, prediction: Values) -> tuple[NDArray[np.intp], Floats]:
    """Group of each row ``# [n_rows]``, and the mean absolute error of each group ``# [n_groups]``."""
    codes = np.unique(truth.extras["group"], return_inverse=True)[1]
    errors = np.abs(prediction - truth.values).mean(axis=1)
    return codes, np.bincount(codes, errors) / np.bincount(codes)


def _group_log_mae(truth: Truth, prediction: Values, params: Params) -> float:
    return float(np.log(np.maximum(_group_means(truth, prediction)[1], _SMALLEST_ERROR)).mean())


def _group_log_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    codes, means = _group_means(truth, prediction)
    moved = _distances(truth, prediction, params)[:, 0] / np.maximum(means, _SMALLEST_ERROR)[codes] - 1
    return np.asarray(
        np.where(means[codes] > _SMALLEST_ERROR, moved, 0.0) * len(codes) / (np.bincount(codes)[codes] * len(means))
    )


def _scored_columns(truth: Truth, params: Params) -> list[int]:
    names = truth.target.columns
    return [names.index(name) for name in (params["scored_columns"] or names)]


def _mcrmse(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import root_mean_squared_error

    scored = _scored_columns(truth, params)
    return float(root_mean_squared_error(truth.values[:, scored], prediction[:, scored]))


def _column_squares(truth: Truth, prediction: Values, params: Params) -> Floats:
    return np.asarray((prediction - truth.values)[:, _scored_columns(truth, params)] ** 2)


def _mean_root(means: Floats, params: Params) -> Floats:
    return np.asarray(np.sqrt(np.maximum(means, 0)).mean(axis=-1))


def _require_no_negative(truth: Truth, params: Params) -> None:
    if (truth.values < 0).any():
        raise MetricUndefined("RMSLE is undefined: an answer is negative")


def _rmsle(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import root_mean_squared_log_error

    return float(root_mean_squared_log_error(truth.values, prediction))


def _log_squares(truth: Truth, prediction: Values, params: Params) -> Floats:
    return np.asarray((np.log1p(prediction) - np.log1p(truth.values)) ** 2)


def _require_varied(truth: Truth, params: Params) -> None:
    if len(truth) < 2 or (truth.values == truth.values[0]).all(axis=0).any():
        raise MetricUndefined("R2 is undefined: the answers are constant")


def _r2(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import r2_score

    return float(r2_score(truth.values, prediction))


def _variances(truth: Truth, prediction: Values, params: Params) -> Floats:
    centred = truth.values - truth.values.mean(axis=0)
    return np.hstack([(prediction - truth.values) ** 2, centred**2, centred])  # [n_rows, 3 * n_columns]


def _explained(means: Floats, params: Params) -> Floats:
    errors, squares, firsts = np.split(means, 3, axis=-1)
    return np.asarray((1 - ratio(errors, squares - firsts**2)).mean(axis=-1))


def _require_no_zero(truth: Truth, params: Params) -> None:
    if (truth.values == 0).any():
        raise MetricUndefined("MAPE is undefined: an answer is 0")


def _mape(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import mean_absolute_percentage_error

    return float(mean_absolute_percentage_error(truth.values, prediction))


def _relative(truth: Truth, prediction: Values, params: Params) -> Floats:
    return _per_row(np.abs((prediction - truth.values) / truth.values))


def _symmetric(truth: Truth, prediction: Values, params: Params) -> Floats:
    size = np.abs(prediction) + np.abs(truth.values)
    return _per_row(200 * ratio(np.abs(prediction - truth.values), size))


def _laplace(truth: Truth, prediction: Values, params: Params) -> Floats:
    sigma = np.maximum(prediction[:, 1], float(params["sigma_min"]))
    error = np.minimum(np.abs(truth.values[:, 0] - prediction[:, 0]), float(params["error_max"]))
    return np.asarray(-np.sqrt(2) * error / sigma - np.log(np.sqrt(2) * sigma))[:, None]


def _angles(truth: Truth, prediction: Values, params: Params) -> Floats:
    def unit(angles: Floats) -> Floats:  # [n_rows, 2] (azimuth, zenith) -> [n_rows, 3]
        azimuth, zenith = angles[:, 0], angles[:, 1]
        return np.column_stack([np.cos(azimuth) * np.sin(zenith), np.sin(azimuth) * np.sin(zenith), np.cos(zenith)])

    cosine = (unit(truth.values) * unit(prediction)).sum(axis=1)
    return np.asarray(np.arccos(cosine.clip(-1, 1)))[:, None]


def _haversine_m(first: Floats, second: Floats) -> Floats:
    """Returns distances on the Earth between rows of latitude and longitude in degrees ``# [n_rows]``."""
    (latitude, longitude), (other_latitude, other_longitude) = np.radians(first).T, np.radians(second).T
    half = (
        np.sin((other_latitude - latitude) / 2) ** 2
        + np.cos(latitude) * np.cos(other_latitude) * np.sin((other_longitude - longitude) / 2) ** 2
    )
    return np.asarray(2 * _EARTH_RADIUS_M * np.arcsin(np.sqrt(half.clip(0, 1))))


def _distance_percentiles(truth: Truth, prediction: Values, params: Params) -> float:
    metres = _haversine_m(truth.values, prediction)
    groups = truth.extras.get("group", np.zeros(len(metres), dtype=int))
    return float(
        np.mean([np.percentile(metres[groups == group], params["percentiles"]).mean() for group in np.unique(groups)])
    )


RMSE = Metric(
    name="rmse",
    title="root mean squared error (RMSE)",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=Calculation(_rmse, OfMeans(_squares, _root).spread),
    words="The root of the mean squared error over all rows and prediction columns.",
    formula=r"\sqrt{\frac{1}{n}\sum_i (\hat y_i - y_i)^2}",
)
MAE = Metric(
    name="mae",
    title="mean absolute error (MAE)",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=Calculation(_mae, OfMeans(_distances).spread),
    words="The mean absolute error over all rows and prediction columns.",
    formula=r"\frac{1}{n}\sum_i |\hat y_i - y_i|",
)
ROUNDED_MAE = Metric(
    name="rounded_mae",
    title="mean absolute error of rounded values",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=Calculation(_rounded_mae, OfMeans(_rounded).spread),
    words=("The mean absolute error after answers and predictions are rounded to whole numbers (halves to even)."),
    formula=r"\frac{1}{n}\sum_i |\mathrm{round}(\hat y_i) - \mathrm{round}(y_i)|",
)
MASKED_MAE = Metric(
    name="masked_mae",
    title="mean absolute error of scored rows",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=Calculation(_masked_mae, OfMeans(_scored_only, ratio_of_means).spread),
    require=_require_scored,
    words="The mean absolute error over those rows only that the task marks as scored.",
    formula=r"\frac{\sum_i s_i |\hat y_i - y_i|}{\sum_i s_i}",
    roles=(Role("scored", "flag"), Role("group", "group", required=False)),
    unit="group",
)
GROUP_LOG_MAE = Metric(
    name="group_log_mae",
    title="log of the MAE, averaged over groups",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=float(np.log(_SMALLEST_ERROR)),
    calculation=Calculation(_group_log_mae, _group_log_spread),
    words=(
        "The natural logarithm of the mean absolute error within each group of rows, averaged over groups. An error"
        " below 1e-9 counts as 1e-9."
    ),
    formula=r"\frac{1}{G}\sum_g \ln\left(\frac{1}{n_g}\sum_{i \in g} |\hat y_i - y_i|\right)",
    roles=(Role("group", "group"),),
)
MCRMSE = Metric(
    name="mcrmse",
    title="mean column-wise RMSE",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=Calculation(_mcrmse, OfMeans(_column_squares, _mean_root).spread),
    words="The root mean squared error of each scored prediction column, averaged over those columns.",
    formula=r"\frac{1}{K}\sum_k \sqrt{\frac{1}{n}\sum_i (\hat y_{ik} - y_{ik})^2}",
    defaults={"scored_columns": None},
    roles=(Role("group", "group", required=False),),
    unit="group",
)
MEAN_COLUMN_RMSLE = Metric(
    name="mean_column_rmsle",
    title="mean column-wise RMSLE",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=Calculation(_rmsle, OfMeans(_log_squares, _mean_root).spread),
    require=_require_no_negative,
    words=(
        "The root mean squared error of the logarithm of one plus the value, averaged over the prediction columns. "
        "Negative predictions are refused."
    ),
    formula=r"\frac{1}{K}\sum_k \sqrt{\frac{1}{n}\sum_i \left(\ln(1 + \hat y_{ik}) - \ln(1 + y_{ik})\right)^2}",
    numbers="non_negative",
)
R2 = Metric(
    name="r2",
    title="coefficient of determination (R2)",
    direction=Direction.MAXIMIZE,
    kinds=_VALUES,
    best=1.0,
    calculation=Calculation(_r2, OfMeans(_variances, _explained).spread),
    require=_require_varied,
    words=("The explained share of the answers' variance, averaged over the prediction columns; their mean scores 0."),
    formula=r"1 - \frac{\sum_i (\hat y_i - y_i)^2}{\sum_i (y_i - \bar y)^2}",
)
MAPE = Metric(
    name="mape",
    title="mean absolute percentage error (MAPE)",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=Calculation(_mape, OfMeans(_relative).spread),
    require=_require_no_zero,
    words="The mean of the absolute error over the size of the answer, as a fraction (0.1 is ten percent).",
    formula=r"\frac{1}{n}\sum_i \left|\frac{\hat y_i - y_i}{y_i}\right|",
)
SMAPE = Metric(
    name="smape",
    title="symmetric mean absolute percentage error (SMAPE)",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=OfMeans(_symmetric),
    words=(
        "The mean of the absolute error over the mean size of answer and prediction, in percent from 0 to 200. A "
        "row where both are 0 counts 0."
    ),
    formula=r"\frac{200}{n}\sum_i \frac{|\hat y_i - y_i|}{|\hat y_i| + |y_i|}",
)
LAPLACE_LOG_LIKELIHOOD = Metric(
    name="laplace_log_likelihood",
    title="Laplace log likelihood",
    direction=Direction.MAXIMIZE,
    kinds=_VALUES,
    best=float(-np.log(np.sqrt(2) * 70)),
    calculation=OfMeans(_laplace),
    words=(
        "The log likelihood of the answers under a Laplace distribution around the first prediction column with the"
        " second as standard deviation. The deviation counts as at least 70 and the error as at most 1000, unless "
        "the task sets other bounds."
    ),
    formula=r"-\frac{1}{n}\sum_i \left(\frac{\sqrt2 \min(|\hat y_i - y_i|, e)}{\sigma_i} + \ln(\sqrt2 \sigma_i)\right)",
    defaults={"sigma_min": 70.0, "error_max": 1000.0},
    roles=(Role("group", "group", required=False),),
    unit="group",
    n_answer_columns=1,
)
ANGULAR_ERROR = Metric(
    name="angular_error",
    title="mean angular error",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=OfMeans(_angles),
    words=(
        "The mean angle in radians between the predicted and the true direction; the two prediction columns are "
        "azimuth and zenith in radians."
    ),
    formula=r"\frac{1}{n}\sum_i \arccos(\hat u_i \cdot u_i)",
)
DISTANCE_PERCENTILES = Metric(
    name="distance_percentiles",
    title="mean of distance percentiles",
    direction=Direction.MINIMIZE,
    kinds=_VALUES,
    best=0.0,
    calculation=Calculation(_distance_percentiles),
    words=(
        "The mean of the 50th and the 95th percentile (linear interpolation) of the distance in metres on a sphere "
        "of 6371 km between predicted and true positions, within each group and then over groups. The two "
        "prediction columns are latitude and longitude in degrees."
    ),
    formula=r"\frac{1}{G}\sum_g \frac{P_{50}(d_g) + P_{95}(d_g)}{2}",
    defaults={"percentiles": (50.0, 95.0)},
    roles=(Role("group", "group", required=False),),
)
