"""Metrics of boxes: average precision by overlap, and located labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sandmle.grading.metrics.base import (
    Boxes,
    Calculation,
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

_BOXES = (PredictionKind.BOXES,)
_BLOCKS = 40


@dataclass(frozen=True, eq=False)
class _Matches:
    """All predicted boxes of one label at one threshold, and the true boxes to be found.

    Attributes:
        row: Row of each predicted box ``# [n_predicted]``.
        confidence: ``# [n_predicted]``
        hit: It overlaps a true box that no surer prediction has taken ``# [n_predicted]``.
        n_true: True boxes by row ``# [n_rows]``.
    """

    row: NDArray[np.intp]
    confidence: Floats
    hit: NDArray[np.bool_]
    n_true: Floats

    def average_precision(self, keep: NDArray[np.bool_]) -> float | None:
        """Returns the area under the precision envelope over recall; None when there is no true box."""
        n_true = self.n_true[keep].sum()
        if not n_true:
            return None
        mine = keep[self.row]
        order = np.argsort(-self.confidence[mine], kind="stable")
        confidence, hit = self.confidence[mine][order], self.hit[mine][order]
        hits = np.cumsum(hit)
        # Predictions of one confidence are taken together, so that the order of rows does not count.
        last = np.append(np.diff(confidence) != 0, True) if len(confidence) else np.zeros(0, dtype=bool)
        precision = (hits / np.arange(1, len(hits) + 1))[last]
        recall = (hits / n_true)[last]
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        return float((np.diff(recall, prepend=0.0) * envelope).sum())


def _iou(first: Floats, second: Floats) -> Floats:
    """Returns the overlap of boxes ``# [n_first, 4]`` and ``# [n_second, 4]`` as ``# [n_first, n_second]``."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = np.maximum(high - low, 0).prod(axis=2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (first, second)]
    return ratio(shared, areas[0][:, None] + areas[1][None, :] - shared)


def _take_best(overlap: Floats, threshold: float) -> NDArray[np.bool_]:
    """Gives every prediction, surest first, the free true box that it overlaps most; returns which found one."""
    free = overlap.copy()  # [n_predicted, n_true]
    hit = np.zeros(len(overlap), dtype=bool)
    for index in range(len(overlap)):
        if not overlap.shape[1]:
            break
        best = int(free[index].argmax())
        if free[index, best] >= threshold:
            hit[index] = True
            free[:, best] = -1.0
    return hit


def _of_label(boxes: Boxes, label: str) -> tuple[Floats, Floats]:
    mine = np.array([own == label for own in boxes.labels], dtype=bool)
    order = np.argsort(-boxes.confidence[mine], kind="stable")
    return boxes.corners[mine][order], boxes.confidence[mine][order]


def _match(truth: Truth, prediction: Values, label: str, thresholds: list[float]) -> list[_Matches]:
    rows, confidences = [], []
    hits: list[list[NDArray[np.bool_]]] = [[] for _ in thresholds]
    n_true = np.zeros(len(truth))
    for row, (true, predicted) in enumerate(zip(truth.values, prediction, strict=True)):
        wanted, _ = _of_label(true, label)
        corners, confidence = _of_label(predicted, label)
        n_true[row] = len(wanted)
        rows.append(np.full(len(corners), row))
        confidences.append(confidence)
        overlap = _iou(corners, wanted)
        for found, threshold in zip(hits, thresholds, strict=True):
            found.append(_take_best(overlap, threshold))
    row_of, confidence_of = np.concatenate(rows), np.concatenate(confidences)
    return [_Matches(row_of, confidence_of, np.concatenate(found), n_true) for found in hits]


def _all_matches(truth: Truth, prediction: Values, params: Params) -> list[_Matches]:
    labels = sorted({label for boxes in truth.values for label in boxes.labels})
    thresholds = [float(threshold) for threshold in params["iou_thresholds"]]
    return [match for label in labels for match in _match(truth, prediction, label, thresholds)]


def _mean_precision(matches: list[_Matches], keep: NDArray[np.bool_]) -> float:
    found = [precision for match in matches if (precision := match.average_precision(keep)) is not None]
    return float(np.mean(found)) if found else 0.0


def _require_box(truth: Truth, params: Params) -> None:
    if not any(boxes.labels for boxes in truth.values):
        raise MetricUndefined("the score of boxes is undefined: there is no true box")


def _box_map(truth: Truth, prediction: Values, params: Params) -> float:
    return _mean_precision(_all_matches(truth, prediction, params), np.ones(len(truth), dtype=bool))


def _box_map_spread(truth: Truth, prediction: Values, params: Params) -> Floats:
    """The influence of blocks of rows ``# [n_blocks]``: the jackknife that leaves out a block at a time.

    Boxes are matched within a row, so that leaving rows out needs no new matching.
    """
    matches = _all_matches(truth, prediction, params)
    n_blocks = min(_BLOCKS, len(truth))
    block = np.arange(len(truth)) % n_blocks
    whole = _mean_precision(matches, np.ones(len(truth), dtype=bool))
    return np.array([(n_blocks - 1) * (whole - _mean_precision(matches, block != out)) for out in range(n_blocks)])


def _located(truth: Truth, prediction: Values, params: Params) -> Floats:
    rows = []
    for true, predicted in zip(truth.values, prediction, strict=True):
        order = np.argsort(-predicted.confidence, kind="stable")
        centres = (predicted.corners[:, :2] + predicted.corners[:, 2:]) / 2
        free = np.ones(len(true.labels), dtype=bool)
        hits = 0
        for index in order:
            same = np.array([label == predicted.labels[index] for label in true.labels], dtype=bool)
            above = (centres[index] >= true.corners[:, :2]).all(axis=1)
            below = (centres[index] <= true.corners[:, 2:]).all(axis=1)
            found = np.flatnonzero(free & same & above & below)
            if len(found):
                free[found[0]] = False
                hits += 1
        rows.append((hits, len(predicted.labels), len(true.labels)))
    return np.array(rows, dtype=float)


BOX_MAP = Metric(
    name="box_map",
    title="mean average precision of boxes (mAP)",
    direction=Direction.MAXIMIZE,
    kinds=_BOXES,
    best=1.0,
    calculation=Calculation(_box_map, _box_map_spread),
    require=_require_box,
    words=(
        "Average precision (area under the precision envelope over recall), averaged over the labels that have a "
        "true box and over the thresholds of intersection over union; by default one threshold, 0.5. Predictions "
        "take true boxes of their label in the order of confidence, each the free one that it overlaps most and by "
        "at least the threshold."
    ),
    formula=r"\frac{1}{K T}\sum_{k,t} \int_0^1 \max_{r' \ge r} P_{k,t}(r')\,dr",
    defaults={"iou_thresholds": (0.5,)},
)
POINT_F1 = Metric(
    name="point_f1",
    title="F1 of located labels",
    direction=Direction.MAXIMIZE,
    kinds=_BOXES,
    best=1.0,
    calculation=OfMeans(_located, f1_of_means),
    require=_require_box,
    words=(
        "F1 over all boxes of all rows: a hit is a predicted box whose centre lies in a true box of its label that "
        "no surer prediction has taken."
    ),
    formula=r"\frac{2\,TP}{2\,TP + FP + FN}",
)
