"""Metrics of ranked lists and orders: MAP@k, NDCG@k, Kendall tau."""

from bisect import bisect, insort

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
)
from sandmle.records import Direction, PredictionKind


def _average_precision(wanted: tuple[str, ...], ranked: tuple[str, ...], k: int) -> float:
    relevant, credited, total = {*wanted}, set[str](), 0.0
    for place, label in enumerate(ranked[:k], start=1):
        if label in relevant and label not in credited:
            credited.add(label)
            total += len(credited) / place
    return total / min(len(relevant), k)


def _precisions(truth: Truth, prediction: Values, params: Params) -> Floats:
    k = params["k"] or truth.target.max_items or 5
    rows = [_average_precision(wanted, ranked, int(k)) for wanted, ranked in zip(truth.values, prediction, strict=True)]
    return np.array(rows, dtype=float)[:, None]


def _queries(truth: Truth) -> list[NDArray[np.intp]]:
    """Rows of each query that has a relevant one."""
    groups = truth.extras["group"]
    order = np.argsort(groups, kind="stable")
    queries = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return [rows for rows in queries if truth.values[rows, 0].any()]


def _require_relevant(truth: Truth, params: Params) -> None:
    if (truth.values < 0).any():
        raise MetricUndefined("NDCG is undefined: a relevance is negative")
    if not truth.values.any():
        raise MetricUndefined("NDCG is undefined: no query has a relevant row")


def _ndcg(truth: Truth, prediction: Values, params: Params) -> float:
    from sklearn.metrics import ndcg_score

    by_size: dict[int, list[NDArray[np.intp]]] = {}
    for rows in _queries(truth):
        by_size.setdefault(len(rows), []).append(rows)
    total, n_queries = 0.0, 0
    for size, queries in by_size.items():
        rows = np.array(queries)  # [n_queries, size]
        # scikit-learn refuses queries of one row, which any prediction ranks right.
        mean = 1.0 if size == 1 else ndcg_score(truth.values[rows, 0], prediction[rows, 0], k=int(params["k"]))
        total += len(queries) * float(mean)
        n_queries += len(queries)
    return total / n_queries


def _query_gain(relevance: Floats, scores: Floats, discounts: Floats) -> float:
    """Discounted gain of one query, averaged over all orders of tied scores (McSherry and Najork 2008)."""
    _, inverse, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    mean_gain = np.bincount(inverse, relevance) / counts
    ends = np.cumsum(counts)
    sums = np.concatenate([[0.0], np.cumsum(discounts)])
    return float((mean_gain * (sums[ends] - sums[ends - counts])).sum())


def _query_ndcg(truth: Truth, prediction: Values, params: Params) -> Floats:
    found = []
    for rows in _queries(truth):
        relevance = truth.values[rows, 0]
        discounts = 1 / np.log2(np.arange(2, len(rows) + 2))
        discounts[int(params["k"]) :] = 0.0
        ideal = float((np.sort(relevance)[::-1] * discounts).sum())
        found.append(_query_gain(relevance, prediction[rows, 0], discounts) / ideal)
    return np.array(found)[:, None]  # [n_queries, 1]


def _inversions(items: list[int]) -> int:
    """Returns the number of pairs in the wrong order, which Kendall tau pools over rows; scipy gives tau row by row."""
    before: list[int] = []
    count = 0
    for item in items:
        count += len(before) - bisect(before, item)
        insort(before, item)
    return count


def _require_two_items(truth: Truth, params: Params) -> None:
    if all(len(items) < 2 for items in truth.values):
        raise MetricUndefined("Kendall tau is undefined: no row has two items")


def _swaps(truth: Truth, prediction: Values, params: Params) -> Floats:
    rows = []
    for wanted, ordered in zip(truth.values, prediction, strict=True):
        place = {item: index for index, item in enumerate(wanted)}
        rows.append((_inversions([place[item] for item in ordered]), len(wanted) * (len(wanted) - 1)))
    return np.array(rows, dtype=float)


def _tau(means: Floats, params: Params) -> Floats:
    return 1 - 4 * ratio(means[..., 0], means[..., 1])


MAP_AT_K = Metric(
    name="map_at_k",
    title="mean average precision at k (MAP@k)",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.RANKED_LABELS,),
    best=1.0,
    calculation=OfMeans(_precisions),
    words=(
        "For each row: the sum of the precisions at the places of right labels among the first k, over the smaller "
        "of k and the number of right labels; averaged over rows. A label given again earns nothing; an empty cell "
        "scores 0. k is the task's largest number of labels in a cell, unless the parameter k says otherwise."
    ),
    formula=r"\frac{1}{n}\sum_i \frac{1}{\min(|Y_i|, k)} \sum_{r=1}^{k} P_i(r)\,[\hat y_{ir} \in Y_i]",
    defaults={"k": None},
)
NDCG_AT_K = Metric(
    name="ndcg_at_k",
    title="NDCG@k",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.VALUES,),
    best=1.0,
    calculation=Calculation(_ndcg, OfMeans(_query_ndcg).spread),
    require=_require_relevant,
    words=(
        "Rows of one query are ranked by their predictions; the relevance of the first k, discounted by the "
        "logarithm of the place, over the best possible; averaged over queries that have a relevant row. Ties are "
        "averaged over all their orders."
    ),
    formula=(
        r"\frac{1}{Q}\sum_q \frac{\sum_{r=1}^{k} y_{q,r} / \log_2(r + 1)}"
        r"{\sum_{r=1}^{k} y^*_{q,r} / \log_2(r + 1)}"
    ),
    defaults={"k": 5},
    roles=(Role("group", "group"),),
)
KENDALL_TAU = Metric(
    name="kendall_tau",
    title="Kendall tau",
    direction=Direction.MAXIMIZE,
    kinds=(PredictionKind.PERMUTATION,),
    best=1.0,
    calculation=OfMeans(_swaps, _tau),
    require=_require_two_items,
    words=(
        "One minus four times the number of swaps of neighbours that turn the predicted orders into the true ones, "
        "over the sum of m(m - 1) for rows of m items. 1 is the right order, -1 its reverse."
    ),
    formula=r"1 - 4\,\frac{\sum_i S_i}{\sum_i m_i (m_i - 1)}",
)
