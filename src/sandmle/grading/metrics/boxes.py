"""Metrics of boxes: average precision by overlap, and located labels."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    ratio,
)
from sandmle.records import Direction, PredictionKind

_BOXES = (PredictionKind.BOXES,)
_BLOCKS = 40
_CELLS = 1_000_000
"""Pairs of boxes that are compared at once."""


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
    """Returns the overlap of boxes ``# [n_rows, n_first, 4]`` and ``# [n_rows, n_second, 4]`` of the same rows.

    Returns:
        ``# [n_rows, n_first, n_second]``; -1 where a box is missing.
    """
    one, other = first[:, :, None], second[:, None, :]
    shared = np.maximum(np.minimum(one[..., 2:], other[..., 2:]) - np.maximum(one[..., :2], other[..., :2]), 0)
    areas = [(boxes[..., 2:] - boxes[..., :2]).prod(axis=-1) for boxes in (one, other)]
    overlap = shared.prod(axis=-1)
    return np.nan_to_num(ratio(overlap, areas[0] + areas[1] - overlap), nan=-1.0)


@dataclass(frozen=True, eq=False)
class _Boxes:
    """The boxes of one label in all rows, by row and then the surest first.

    Attributes:
        row: ``# [n_boxes]``
        corners: ``# [n_boxes, 4]``
        confidence: ``# [n_boxes]``
        place: How many boxes of its row come before it ``# [n_boxes]``.
        n_of: Boxes of each row ``# [n_rows]``.
    """

    row: NDArray[np.intp]
    corners: Floats
    confidence: Floats
    place: NDArray[np.intp]
    n_of: NDArray[np.intp]

    def padded(self, rows: NDArray[np.intp]) -> Floats:
        """Returns the corners of some rows as ``# [n_chosen, n_most, 4]``; missing boxes are NaN."""
        found = np.full((len(rows), int(self.n_of[rows].max()), 4), np.nan)
        at = np.full(len(self.n_of), -1)
        at[rows] = np.arange(len(rows))
        mine = at[self.row] >= 0
        found[at[self.row[mine]], self.place[mine]] = self.corners[mine]
        return found


def _by_label(values: Values, labels: list[str]) -> list[_Boxes]:
    """Sorts the boxes of all rows by label."""
    counts = np.array([len(boxes.labels) for boxes in values], dtype=np.intp)
    row = np.repeat(np.arange(len(counts)), counts)
    code_of = {label: code for code, label in enumerate(labels)}
    code = np.array([code_of.get(label, -1) for boxes in values for label in boxes.labels], dtype=np.intp)
    corners = np.concatenate([boxes.corners.reshape(-1, 4) for boxes in values])
    confidence = np.concatenate([boxes.confidence for boxes in values])
    order = np.lexsort((-confidence, row))  # stable: boxes of one confidence stay as they stand
    row, code, corners, confidence = row[order], code[order], corners[order], confidence[order]
    found = []
    for at in range(len(labels)):
        mine = code == at
        n_of = np.bincount(row[mine], minlength=len(counts))
        place = np.arange(mine.sum()) - np.repeat(np.cumsum(n_of) - n_of, n_of)
        found.append(_Boxes(row[mine], corners[mine], confidence[mine], place, n_of))
    return found


def _groups(predicted: _Boxes, wanted: _Boxes) -> Iterator[NDArray[np.intp]]:
    """Yields rows where something can match, those of like size together, so that little is padded."""
    rows = np.flatnonzero((predicted.n_of > 0) & (wanted.n_of > 0))
    cells = predicted.n_of[rows] * wanted.n_of[rows]
    rows = rows[np.argsort(cells, kind="stable")]
    while len(rows):
        n_most = np.maximum.accumulate(predicted.n_of[rows]) * np.maximum.accumulate(wanted.n_of[rows])
        is_small = n_most * np.arange(1, len(rows) + 1) <= _CELLS
        n_taken = max(1, int(is_small.argmin()) if not is_small.all() else len(rows))
        yield rows[:n_taken]
        rows = rows[n_taken:]


def _match(predicted: _Boxes, wanted: _Boxes, thresholds: list[float]) -> list[_Matches]:
    """Gives every prediction of a row, surest first, the free true box that it overlaps most."""
    hits = [np.zeros(len(predicted.row), dtype=bool) for _ in thresholds]
    for rows in _groups(predicted, wanted):
        overlap = _iou(predicted.padded(rows), wanted.padded(rows))  # [n_rows, n_predicted, n_true]
        starts = (np.cumsum(predicted.n_of) - predicted.n_of)[rows]
        for hit, threshold in zip(hits, thresholds, strict=True):
            free = overlap.copy()
            for place in range(free.shape[1]):
                best = free[:, place].argmax(axis=1)
                found = np.flatnonzero(free[np.arange(len(rows)), place, best] >= threshold)
                hit[starts[found] + place] = True
                free[found, :, best[found]] = -1.0
    n_true = wanted.n_of.astype(float)
    return [_Matches(predicted.row, predicted.confidence, hit, n_true) for hit in hits]


def _all_matches(truth: Truth, prediction: Values, params: Params) -> list[_Matches]:
    labels = sorted({label for boxes in truth.values for label in boxes.labels})
    thresholds = [float(threshold) for threshold in params["iou_thresholds"]]
    pairs = zip(_by_label(prediction, labels), _by_label(truth.values, labels), strict=True)
    return [match for predicted, wanted in pairs for match in _match(predicted, wanted, thresholds)]


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
