"""Metrics of binary masks given as run lengths."""

import math
from collections.abc import Callable
from typing import Any

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
    f1_of_means,
    ratio,
)
from sandmle.records import Direction, PredictionKind

_MASK = (PredictionKind.MASK,)
Runs = NDArray[np.int64]


def mask_pixels(runs: Runs, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Returns a mask ``# [height, width]``; pixels are counted down the columns."""
    edges = np.zeros(shape[0] * shape[1] + 1, dtype=np.int8)
    # Runs may touch, so that one ends where the next begins: add, do not assign.
    np.add.at(edges, runs[:, 0], 1)
    np.add.at(edges, runs.sum(axis=1), -1)
    return np.cumsum(edges[:-1], dtype=np.int8).astype(bool).reshape(shape, order="F")


def _shared_pixels(first: Runs, second: Runs) -> int:
    if not len(first) or not len(second):
        return 0
    # Pixels of the first mask up to each edge; between edges the count grows evenly, so interpolation is exact.
    edges = np.column_stack([first[:, 0], first.sum(axis=1)]).ravel()
    covered = np.column_stack([np.cumsum(first[:, 1]) - first[:, 1], np.cumsum(first[:, 1])]).ravel()
    upto_end, upto_start = (np.interp(places, edges, covered) for places in (second.sum(axis=1), second[:, 0]))
    return int(np.rint(upto_end - upto_start).sum())


def _by_row(truth: Truth, prediction: Values, measure: Callable[[Runs, Runs], Any]) -> Floats:
    """Measures each row's true and predicted mask; small masks repeat, and a pair is measured once."""
    known: dict[tuple[bytes, bytes], Any] = {}
    rows = []
    for true, predicted in zip(truth.values, prediction, strict=True):
        pair = (true.tobytes(), predicted.tobytes())
        if pair not in known:
            known[pair] = measure(true, predicted)
        rows.append(known[pair])
    return np.array(rows, dtype=float)


def _counts(truth: Truth, prediction: Values, params: Params) -> Floats:
    """Pixels shared, predicted and true ``# [n_rows, 3]``."""
    return _by_row(
        truth,
        prediction,
        lambda true, predicted: (_shared_pixels(true, predicted), predicted[:, 1].sum(), true[:, 1].sum()),
    )


def _dice(counts: Floats) -> Floats:
    shared, predicted, true = counts.T
    return np.where(predicted + true > 0, ratio(2 * shared, predicted + true), 1.0)


def _iou(counts: Floats) -> Floats:
    shared, predicted, true = counts.T
    either = predicted + true - shared
    return np.where(either > 0, ratio(shared, either), 1.0)


def _mean_dice(truth: Truth, prediction: Values, params: Params) -> Floats:
    return _dice(_counts(truth, prediction, params))[:, None]


def _require_pixels(truth: Truth, params: Params) -> None:
    if not any(len(runs) for runs in truth.values):
        raise MetricUndefined("the score over all pixels is undefined: all true masks are empty")


def _f_beta(means: Floats, params: Params) -> Floats:
    shared, predicted, true = np.moveaxis(means, -1, 0)
    square = float(params["beta"]) ** 2
    return ratio((1 + square) * shared, square * true + predicted)


def _precisions(truth: Truth, prediction: Values, params: Params) -> Floats:
    iou = _iou(_counts(truth, prediction, params))
    return np.asarray((iou[:, None] > np.asarray(params["iou_thresholds"])).mean(axis=1))[:, None]


def _hausdorff_share(true: Runs, predicted: Runs, shape: tuple[int, int]) -> float:
    """One minus the Hausdorff distance of two sets of pixels over the diagonal."""
    # Not scipy.spatial's directed_hausdorff: its worst case, which a submission can choose, is every pair of pixels.
    from scipy.ndimage import distance_transform_edt

    if not len(true) or not len(predicted):
        return float(len(true) == len(predicted))
    first, second = mask_pixels(true, shape), mask_pixels(predicted, shape)
    farthest = max(distance_transform_edt(~second)[first].max(), distance_transform_edt(~first)[second].max())
    diagonal = math.hypot(shape[0] - 1, shape[1] - 1)
    return 1 - float(farthest) / diagonal if diagonal else 1.0


def _dice_hausdorff(truth: Truth, prediction: Values, params: Params) -> Floats:
    shape = truth.target.mask_shape or (0, 0)
    near = _by_row(truth, prediction, lambda true, predicted: _hausdorff_share(true, predicted, shape))
    share = float(params["dice_weight"])
    return (share * _dice(_counts(truth, prediction, params)) + (1 - share) * near)[:, None]


MEAN_DICE = Metric(
    name="mean_dice",
    title="mean Dice coefficient",
    direction=Direction.MAXIMIZE,
    kinds=_MASK,
    best=1.0,
    calculation=OfMeans(_mean_dice),
    words="Twice the shared pixels over the pixels of both masks, averaged over rows. Two empty masks count 1.",
    formula=r"\frac{1}{n}\sum_i \frac{2 |\hat M_i \cap M_i|}{|\hat M_i| + |M_i|}",
)
GLOBAL_DICE = Metric(
    name="global_dice",
    title="global Dice coefficient",
    direction=Direction.MAXIMIZE,
    kinds=_MASK,
    best=1.0,
    calculation=OfMeans(_counts, f1_of_means),
    require=_require_pixels,
    words=("Twice the shared pixels over the pixels of both masks, with the pixels of all rows counted together."),
    formula=r"\frac{2 \sum_i |\hat M_i \cap M_i|}{\sum_i |\hat M_i| + \sum_i |M_i|}",
)
MASK_F_BETA = Metric(
    name="mask_f_beta",
    title="F-beta over pixels",
    direction=Direction.MAXIMIZE,
    kinds=_MASK,
    best=1.0,
    calculation=OfMeans(_counts, _f_beta),
    require=_require_pixels,
    words=(
        "F-beta over the pixels of all rows together; beta is 0.5 unless the task says otherwise: precision counts "
        "more."
    ),
    formula=r"\frac{(1 + \beta^2) \sum_i |\hat M_i \cap M_i|}{\beta^2 \sum_i |M_i| + \sum_i |\hat M_i|}",
    defaults={"beta": 0.5},
)
MASK_PRECISION = Metric(
    name="mask_precision",
    title="mean precision over IoU thresholds",
    direction=Direction.MAXIMIZE,
    kinds=_MASK,
    best=1.0,
    calculation=OfMeans(_precisions),
    words=(
        "For each row: the share of the thresholds 0.5, 0.55, ..., 0.95 that the intersection over union exceeds; "
        "averaged over rows. Two empty masks count 1."
    ),
    formula=r"\frac{1}{n}\sum_i \frac{1}{T}\sum_t [\mathrm{IoU}_i > t]",
    defaults={"iou_thresholds": tuple(round(0.5 + 0.05 * step, 2) for step in range(10))},
)
DICE_HAUSDORFF = Metric(
    name="dice_hausdorff",
    title="0.4 Dice + 0.6 Hausdorff score",
    direction=Direction.MAXIMIZE,
    kinds=_MASK,
    best=1.0,
    calculation=OfMeans(_dice_hausdorff),
    words=(
        "For each row 0.4 times the Dice coefficient plus 0.6 times one minus the Hausdorff distance of the two "
        "sets of pixels over the image's diagonal; averaged over rows. Two empty masks count 1, one empty mask "
        "counts 0."
    ),
    formula=r"\frac{1}{n}\sum_i \left(0.4\,D_i + 0.6\,(1 - h_i / d)\right)",
    defaults={"dice_weight": 0.4},
)
