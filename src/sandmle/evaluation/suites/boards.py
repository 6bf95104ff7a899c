"""Human leaderboards: the milestones that they give, and where a score would stand. Pure functions."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from sandmle.errors import BundleError
from sandmle.formats.leaderboard import medal_positions
from sandmle.records import BoardRank, Direction, Threshold, Thresholds


def leaderboard_thresholds(scores: Sequence[float], direction: Direction) -> Thresholds:
    """Returns the milestones of a leaderboard: the scores at the medal places, and the median of all.

    Args:
        scores: Best first, as the file lists them.
        direction: Which way the metric is better.

    Raises:
        BundleError: There are no scores, or they are not listed from best to worst.
    """
    if not scores:
        raise BundleError("a leaderboard without teams has no medals")
    for place, (before, score) in enumerate(pairwise(scores), start=2):
        if direction.better(score, before):
            raise BundleError(
                f"the leaderboard is not listed best first: place {place} has {score:g} after {before:g}; sort it"
            )
    gold, silver, bronze = (scores[place - 1] for place in medal_positions(len(scores)))
    return place_thresholds(median=median(scores), bronze=bronze, silver=silver, gold=gold)


def place_thresholds(*, median: float, bronze: float, silver: float, gold: float) -> Thresholds:
    """Returns milestones that stand for places on a human leaderboard; they have no standard error."""
    return Thresholds(
        preset="leaderboard",
        median=Threshold(score=median),
        bronze=Threshold(score=bronze),
        silver=Threshold(score=silver),
        gold=Threshold(score=gold),
    )


def board_rank(board: str, score: float, scores: Sequence[float], direction: Direction) -> BoardRank:
    """Returns where a score would stand: after all that are strictly better.

    A score worse than all of N teams has place N + 1.
    """
    return BoardRank(
        board=board, position=1 + sum(direction.better(each, score) for each in scores), n_teams=len(scores)
    )
