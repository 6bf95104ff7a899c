"""Human leaderboards: which place earns which medal, and where a score would stand. Pure functions.

The rule is Kaggle's as MLE-bench states it (MLE-bench, table 1): places by the number of teams, rounded down.
"""

from collections.abc import Sequence
from statistics import median

from sandmle.errors import BundleError
from sandmle.records import BoardRank, Direction, Threshold, Thresholds


def medal_places(n_teams: int) -> tuple[int, int, int]:
    """Returns the last places, counted from 1, that earn gold, silver and bronze.

    Raises:
        BundleError: There are no teams.
    """
    if n_teams < 1:
        raise BundleError("a leaderboard without teams has no medals")
    tenth, fifth = max(1, n_teams // 10), max(1, n_teams // 5)
    if n_teams < 100:
        return tenth, fifth, max(1, n_teams * 2 // 5)
    if n_teams < 250:
        return 10, fifth, n_teams * 2 // 5
    gold = 10 + n_teams // 500
    return (gold, 50, 100) if n_teams < 1000 else (gold, n_teams // 20, tenth)


def leaderboard_thresholds(scores: Sequence[float], direction: Direction) -> Thresholds:
    """Returns the milestones of a leaderboard: the scores at the medal places, and the median of all.

    Args:
        scores: Best first, as the file lists them.
        direction: Which way the metric is better.

    Raises:
        BundleError: There are no scores, or they run from worse to better.
    """
    if scores and direction.better(scores[-1], scores[0]):
        raise BundleError(f"the leaderboard is not listed best first: {scores[0]:g} ... {scores[-1]:g}")
    gold, silver, bronze = (scores[place - 1] for place in medal_places(len(scores)))
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
