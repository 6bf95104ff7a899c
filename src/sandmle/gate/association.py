"""Tests of association whose false-alarm rate is known: rank correlations, and neighbours alike in an order."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr
from scipy.stats import norm, rankdata

FALSE_ALARM_RATE = 1e-4
"""Chance that a sound task fails one check of this kind, all its tests together."""
_FEWEST_MEETINGS = 10
_FEWEST_UNUSUAL = 5  # below this many minority rows, the t distribution is no model of a rank correlation


@dataclass(frozen=True)
class Association:
    """The strongest association found: between which two, how likely by chance, and in how many tests."""

    cue: str
    view: str
    p_value: float
    n_tests: int

    @property
    def corrected(self) -> float:
        """The p-value after Bonferroni's correction, at most 1."""
        return min(1.0, self.p_value * max(1, self.n_tests))


NONE = Association("", "", 1.0, 0)


def within(values: np.ndarray, blocks: np.ndarray | None) -> np.ndarray:
    """Returns ranks, as deviations from the mean of each block where there are blocks ``# [n]``."""
    ranks = rankdata(values)
    if blocks is None:
        return np.asarray(ranks - ranks.mean())
    totals = np.bincount(blocks, weights=ranks)
    return np.asarray(ranks - (totals / np.bincount(blocks))[blocks])


def strongest_correlation(
    cues: Mapping[str, np.ndarray], views: Mapping[str, np.ndarray], blocks: np.ndarray | None = None
) -> Association:
    """Finds the cue that ranks a view best.

    Args:
        cues: Numbers that should say nothing.  # name -> [n]
        views: Numbers that stand for the target.  # name -> [n]
        blocks: Block of each row; given, only the order within blocks counts.  # [n]
    """
    left = {name: within(values, blocks) for name, values in cues.items() if _is_lively(values)}
    right = {name: within(values, blocks) for name, values in views.items() if _is_lively(values)}
    if not left or not right:
        return NONE
    first, second = np.array(list(left.values())), np.array(list(right.values()))  # [n_cues, n], [n_views, n]
    scale = np.sqrt((first**2).sum(axis=1))[:, None] * np.sqrt((second**2).sum(axis=1))[None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = np.where(scale > 0, first @ second.T / scale, 0.0)
    n = first.shape[1]
    freedom = n - 2 if blocks is None else n - 1 - len(np.unique(blocks))
    p_values = _p_of_correlation(correlations, freedom)
    cue, view = np.unravel_index(int(p_values.argmin()), p_values.shape)
    return Association(list(left)[cue], list(right)[view], float(p_values[cue, view]), p_values.size)


def strongest_neighbours(
    orders: Mapping[str, np.ndarray], views: Mapping[str, np.ndarray], blocks: np.ndarray | None = None
) -> Association:
    """Finds the order in which neighbours are most alike: blocks of one label, sorted stretches.

    Args:
        orders: Numbers that give an order of the rows.  # name -> [n]
        views: Numbers that stand for the target.  # name -> [n]
        blocks: As above.
    """
    best, n_tests = NONE, 0
    for order_name, order in orders.items():
        places = np.argsort(order, kind="stable")
        for view_name, values in views.items():
            if not _meets_itself(values):
                continue
            ranks = within(values, blocks)[places]
            total = float((ranks**2).sum())
            n_tests += 1
            # lag-1 autocorrelation of an exchangeable series: mean -1/n, standard deviation about 1/sqrt(n)
            excess = (float((ranks[1:] * ranks[:-1]).sum()) / total if total > 0 else 0.0) + 1 / len(ranks)
            p_value = float(2 * norm.sf(abs(excess) * np.sqrt(len(ranks))))
            if p_value < best.p_value:
                best = Association(order_name, view_name, p_value, 0)
    return Association(best.cue, best.view, best.p_value, n_tests)


def _is_lively(values: np.ndarray) -> bool:
    _, counts = np.unique(values, return_counts=True)
    return len(values) - int(counts.max()) >= _FEWEST_UNUSUAL


def _meets_itself(values: np.ndarray) -> bool:
    """Tells whether neighbours with unusual values are common enough by chance for a normal distribution."""
    _, counts = np.unique(values, return_counts=True)
    n_unusual = len(values) - int(counts.max())
    return n_unusual**2 / len(values) >= _FEWEST_MEETINGS


def _p_of_correlation(correlations: np.ndarray, freedom: int) -> np.ndarray:
    if freedom < 3:
        return np.ones_like(correlations)
    bounded = np.clip(np.abs(correlations), 0.0, 1 - 1e-12)
    t = bounded * np.sqrt(freedom / (1 - bounded**2))
    return np.asarray(2 * stdtr(freedom, -t))
