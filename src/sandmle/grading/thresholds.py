"""Milestones from a ladder of baselines, and medals from milestones. Pure functions."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sandmle.errors import AuthoringError
from sandmle.records import MILESTONES, Direction, Ladder, Medal, Threshold, ThresholdPreset, Thresholds, Tier

FLOOR_SHARE = 0.2
"""The median is at least this far from the dummy towards the best baseline."""
GOLD_SHARE = 0.9
"""Gold is this far from the median towards the best baseline."""
MARGIN = 2.0
"""Standard errors that neighbouring milestones must be apart."""
_SOLVERS = (Tier.WEAK, Tier.STANDARD, Tier.TUNED, Tier.RULE_AWARE)


def calibrated(ladder: Ladder) -> Thresholds:
    """Returns evenly spaced milestones between weak solvers and the best known one.

    Median: the better of the weak solvers' median and a fifth of the way from dummy to best. Gold: nine tenths of the
    way from the median to the best. Bronze and silver: at one and two thirds between median and gold.

    Raises:
        AuthoringError: The ladder lacks a dummy or a weak rung.
    """
    direction = ladder.direction
    weak = ladder.of(Tier.WEAK)
    dummies = ladder.of(Tier.DUMMY)
    if not weak or not dummies:
        raise AuthoringError(f"the ladder has no {'weak' if dummies else 'dummy'} rung, so it gives no thresholds")
    dummy = ladder.best(Tier.DUMMY).score
    best = ladder.best(Tier.DUMMY, *_SOLVERS).score
    weak_median = float(np.median([rung.score for rung in weak]))
    floor = dummy + FLOOR_SHARE * (best - dummy)
    median = weak_median if direction.better(weak_median, floor) else floor
    gold = median + GOLD_SHARE * (best - median)
    scores = (median, median + (gold - median) / 3, median + (gold - median) * 2 / 3, gold)
    return _thresholds("calibrated", scores, ladder)


def paper(ladder: Ladder) -> Thresholds:
    """Returns the scores of four progressively better baselines (SandMLE, section 3: thresholds from baselines).

    The paper does not say which baselines; these are the distinct scores of all solvers, from the weakest to the best,
    at even steps.

    Raises:
        AuthoringError: Fewer than four solvers differ in score.
    """
    distinct = sorted({rung.score for rung in ladder.of(*_SOLVERS)}, reverse=ladder.direction is Direction.MINIMIZE)
    if len(distinct) < len(MILESTONES):
        raise AuthoringError(f"the ladder has {len(distinct)} distinct scores of solvers; four thresholds need four")
    steps = np.linspace(0, len(distinct) - 1, len(MILESTONES)).round().astype(int)
    return _thresholds("paper", [distinct[step] for step in steps], ladder)


def threshold_problems(thresholds: Thresholds, ladder: Ladder, direction: Direction) -> list[str]:
    """Returns what is wrong with thresholds, one sentence each; an empty list means nothing is.

    Calibrated: dummy, median, bronze, silver, gold and oracle rise strictly, each by more than two standard errors
    of a score on the private rows (the larger error of the two neighbours). Paper: the four rise strictly and the
    hardest beats the dummy.
    """
    named = [(name, threshold.score) for name, threshold in zip(MILESTONES, _four(thresholds), strict=True)]
    problems = [
        f"{name} ({score:.6g}) is not better than {before} ({lower:.6g})"
        for (before, lower), (name, score) in pairwise(named)
        if not direction.better(score, lower)
    ]
    dummies = ladder.of(Tier.DUMMY)
    if not dummies:
        return [*problems, "the ladder has no dummy rung"]
    dummy = ladder.best(Tier.DUMMY)
    if thresholds.preset == "paper":
        if not direction.better(thresholds.gold.score, dummy.score):
            problems.append(f"gold ({thresholds.gold.score:.6g}) is not better than the dummy ({dummy.score:.6g})")
        return problems
    if not ladder.of(Tier.ORACLE):
        return [*problems, "the ladder has no oracle rung"]
    oracle = ladder.best(Tier.ORACLE)
    chain = [
        ("dummy", dummy.score, dummy.standard_error),
        *((name, own.score, own.standard_error) for name, own in zip(MILESTONES, _four(thresholds), strict=True)),
        ("oracle", oracle.score, oracle.standard_error),
    ]
    for (before, lower, lower_error), (name, score, error) in pairwise(chain):
        if error is None or lower_error is None:
            problems.append(f"{name if error is None else before} has no standard error")
            continue
        gap, needed = direction.gain(score, lower), MARGIN * max(error, lower_error)
        if gap <= needed:
            problems.append(f"{name} is {gap:.4g} better than {before}, which is not more than {needed:.4g}")
    return problems


def medal_of(score: float, thresholds: Thresholds, direction: Direction) -> Medal:
    """Returns the highest medal that a score reaches; the border itself counts, and nothing is rounded."""
    for medal, border in (
        (Medal.GOLD, thresholds.gold),
        (Medal.SILVER, thresholds.silver),
        (Medal.BRONZE, thresholds.bronze),
    ):
        if direction.at_least(score, border.score):
            return medal
    return Medal.NONE


def above_median(score: float, thresholds: Thresholds, direction: Direction) -> bool:
    """Tells whether a score is strictly better than the median."""
    return direction.better(score, thresholds.median.score)


def _four(thresholds: Thresholds) -> tuple[Threshold, Threshold, Threshold, Threshold]:
    return (thresholds.median, thresholds.bronze, thresholds.silver, thresholds.gold)


def _thresholds(preset: ThresholdPreset, scores: Sequence[float], ladder: Ladder) -> Thresholds:
    median, bronze, silver, gold = (Threshold(score=score, standard_error=_error_at(score, ladder)) for score in scores)
    return Thresholds(preset=preset, median=median, bronze=bronze, silver=silver, gold=gold)


def _error_at(score: float, ladder: Ladder) -> float | None:
    """Standard error at a score: between the two nearest rungs in proportion, beyond them that of the last rung."""
    known: dict[float, list[float]] = {}
    for rung in ladder.rungs:
        if rung.standard_error is not None:
            known.setdefault(rung.score, []).append(rung.standard_error)
    if not known:
        return None
    places = sorted(known)
    return float(np.interp(score, places, [float(np.mean(known[place])) for place in places]))
