"""Means, intervals, comparisons and ranks over tasks. Pure functions; ``docs/concepts/statistics.md`` says why.

The unit of chance is the task: attempts at one task resemble each other, so an interval that treats all episodes as
independent is too narrow. Every estimate is the mean over tasks of the mean over attempts, and its bootstrap draws
whole tasks (the cluster bootstrap: Davison and Hinkley 1997, section 3.8).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from scipy import stats

from sandmle.records import Record

CONFIDENCE = 0.95
RESAMPLES = 4000
_SAME = 1e-12

Key = TypeVar("Key", bound=Hashable)


class Estimate(Record):
    """A mean with its uncertainty. What cannot be known is None, and ``reason`` says why."""

    mean: float | None
    standard_error: float | None = None
    low: float | None = None
    """Lower end of the 95 % interval."""
    high: float | None = None
    n: int
    """Values that went in."""
    n_tasks: int
    """Tasks that they came from: the independent units."""
    reason: str = ""
    """Why the mean or the interval is missing; empty when both are there."""


class Difference(Record):
    """One policy against another on the tasks that both have."""

    estimate: Estimate
    """First minus second, in the same tasks."""
    wins: int
    """Tasks on which the first is better."""
    ties: int
    losses: int


class Spread(Record):
    """Mean, median and 95th percentile of measured values such as seconds."""

    n: int
    mean: float | None = None
    median: float | None = None
    p95: float | None = None
    total: float = 0.0


def estimate_mean(values: Mapping[Key, Sequence[float]], *, rng_seed: int = 0) -> Estimate:
    """Estimates a mean over tasks, with standard error and 95 % interval.

    Args:
        values: Values of the attempts, by task. Tasks without a value are left out.
        rng_seed: Seeds the bootstrap.

    Returns:
        The estimate. With one task there is neither error nor interval; if all tasks have the same mean, the bootstrap
        says nothing and there is no interval.

    Raises:
        ValueError: A value is NaN or infinite.
    """
    means = _task_means(values)
    n = sum(len(attempts) for attempts in values.values())
    if not len(means):
        return Estimate(mean=None, n=0, n_tasks=0, reason="no value")
    mean = math.fsum(means) / len(means)
    if len(means) == 1:
        return Estimate(mean=mean, n=n, n_tasks=1, reason="one task gives no interval")
    if np.ptp(means) < _SAME:
        return Estimate(
            mean=mean, standard_error=0.0, n=n, n_tasks=len(means), reason="all tasks have the same value: no interval"
        )
    low, high = _bootstrap_interval(means, rng_seed)
    return Estimate(
        mean=mean,
        standard_error=float(means.std(ddof=1) / math.sqrt(len(means))),
        low=low,
        high=high,
        n=n,
        n_tasks=len(means),
    )


def estimate_share(values: Mapping[Key, Sequence[bool]], *, rng_seed: int = 0) -> Estimate:
    """Estimates a share: like :func:`estimate_mean`, but never sure of 0 or 1.

    Where no attempt (or every attempt) at any task has the property, the interval is the exact binomial one
    (Clopper and Pearson 1934) with the number of tasks as the sample size.
    """
    estimate = estimate_mean({key: [float(value) for value in each] for key, each in values.items()}, rng_seed=rng_seed)
    if estimate.mean not in (0.0, 1.0) or estimate.n_tasks < 2:
        return estimate
    reach = 1 - ((1 - CONFIDENCE) / 2) ** (1 / estimate.n_tasks)
    low, high = (0.0, reach) if estimate.mean == 0.0 else (1 - reach, 1.0)
    return estimate.replace(low=low, high=high, reason="")


def estimate_any_of(values: Mapping[Key, Sequence[bool]], k: int, *, rng_seed: int = 0) -> Estimate:
    """Estimates the share of tasks at which at least one of ``k`` attempts has a property (pass@k).

    The mean over all choices of ``k`` of the attempts made, so that more attempts than ``k`` make it surer and not
    larger (Chen et al. 2021, section 2.1).

    Args:
        values: Whether each attempt has the property, by task.
        k: Attempts that count; tasks with fewer are left out.
        rng_seed: Seeds the bootstrap.

    Raises:
        ValueError: ``k`` is below 1.
    """
    if k < 1:
        raise ValueError(f"k is {k}; at least one attempt is needed")
    enough = {key: attempts for key, attempts in values.items() if len(attempts) >= k}
    shares = {
        key: 1 - math.comb(len(attempts) - sum(attempts), k) / math.comb(len(attempts), k)
        for key, attempts in enough.items()
    }
    if all(share in (0.0, 1.0) for share in shares.values()):
        return estimate_share({key: [share == 1.0] for key, share in shares.items()}, rng_seed=rng_seed)
    return estimate_mean({key: [share] for key, share in shares.items()}, rng_seed=rng_seed)


def paired_difference(
    first: Mapping[Key, Sequence[float]], second: Mapping[Key, Sequence[float]], *, rng_seed: int = 0
) -> Difference:
    """Compares two policies on the tasks that both have; what makes a task hard for both cancels out.

    Args:
        first: Values of the attempts, by task; higher is better.
        second: Likewise.
        rng_seed: Seeds the bootstrap.
    """
    shared = [key for key in first if first[key] and second.get(key)]
    differences = {key: _mean(first[key]) - _mean(second[key]) for key in shared}
    return Difference(
        estimate=estimate_mean({key: [value] for key, value in differences.items()}, rng_seed=rng_seed),
        wins=sum(value > _SAME for value in differences.values()),
        ties=sum(abs(value) <= _SAME for value in differences.values()),
        losses=sum(value < -_SAME for value in differences.values()),
    )


def estimate_attempts(values: Sequence[float | None], *, missing: float = 0.0) -> Estimate:
    """Estimates a mean over repeats of one thing (attempts at one task, or whole-benchmark repeats).

    Args:
        values: One value a repeat; None for a repeat that failed.
        missing: What a failed repeat counts as.

    Returns:
        Mean and standard error over all repeats, failed ones included; no standard error for a single repeat, and no
        interval, since repeats are few.
    """
    filled = np.array([missing if value is None else value for value in values], dtype=float)  # [n_repeats]
    if not len(filled):
        return Estimate(mean=None, n=0, n_tasks=0, reason="no value")
    mean = math.fsum(filled) / len(filled)
    if len(filled) == 1:
        return Estimate(mean=mean, n=1, n_tasks=1, reason="one repeat gives no standard error")
    error = float(filled.std(ddof=1) / math.sqrt(len(filled)))
    return Estimate(mean=mean, standard_error=error, n=len(filled), n_tasks=1, reason="repeats give no interval")


def spread(values: Sequence[float]) -> Spread:
    """Summarises measured values; all None for no value."""
    if not values:
        return Spread(n=0)
    array = np.asarray(values, dtype=float)  # [n_values]
    median, p95 = np.quantile(array, [0.5, 0.95])
    total = math.fsum(values)
    return Spread(n=len(values), mean=total / len(values), median=float(median), p95=float(p95), total=total)


def ranks(scores: Sequence[float | None]) -> list[int | None]:
    """Ranks scores, higher first; equal scores share the better rank: 1, 2, 2, 4.

    Args:
        scores: One score each; None or NaN is unscored.

    Returns:
        One rank each, None for the unscored.
    """
    scored = [score for score in scores if score is not None and math.isfinite(score)]
    result: list[int | None] = []
    for score in scores:
        known = score is not None and math.isfinite(score)
        result.append(1 + sum(other > score + _SAME for other in scored) if known and score is not None else None)
    return result


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _task_means(values: Mapping[Key, Sequence[float]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    means = np.array([_mean(attempts) for attempts in values.values() if attempts], dtype=float)  # [n_tasks]
    if not np.isfinite(means).all():
        raise ValueError("a value is NaN or infinite; leave it out and count it as missing")
    return means


def _bootstrap_interval(means: np.ndarray[tuple[int], np.dtype[np.float64]], rng_seed: int) -> tuple[float, float]:
    """The percentile interval, widened for few tasks ("expanded percentile": Hesterberg 2015)."""
    n_tasks = len(means)
    rng = np.random.default_rng(rng_seed)
    resampled = np.concatenate(  # in pieces, so that thousands of tasks fit into memory
        [means[rng.integers(n_tasks, size=(RESAMPLES // 8, n_tasks))].mean(axis=1) for _ in range(8)]
    )
    quantile = stats.t.ppf((1 - CONFIDENCE) / 2, n_tasks - 1) * math.sqrt(n_tasks / (n_tasks - 1))
    tail = float(stats.norm.cdf(quantile))
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)
