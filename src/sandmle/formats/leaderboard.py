"""MLE-bench's medal lines: positions on a leaderboard, and boards that give exactly a task's thresholds.

The rule is MLE-bench's own (``mlebench/grade_helpers.py``): positions are counted from 1 and rounded down, the median
is that of all scores, and lower is better when the first score is below the last.
"""

from collections.abc import Sequence

import numpy as np

from sandmle.errors import BundleError
from sandmle.records import Direction, Thresholds

FEWEST_TEAMS = 10
"""With fewer, gold and silver fall on the same position."""
DEFAULT_TEAMS = 100
DECIMALS = 5
"""MLE-bench rounds every score to so many decimals before it ranks it."""


def medal_positions(n_teams: int) -> tuple[int, int, int]:
    """Returns the positions of gold, silver and bronze on a board of ``n_teams`` rows."""
    if n_teams < 100:
        return max(1, n_teams // 10), max(1, n_teams // 5), max(1, int(n_teams * 0.4))
    if n_teams < 250:
        return 10, n_teams // 5, int(n_teams * 0.4)
    if n_teams < 1000:
        return 10 + int(n_teams * 0.002), 50, 100
    return 10 + int(n_teams * 0.002), int(n_teams * 0.05), int(n_teams * 0.1)


def board_for(thresholds: Thresholds, direction: Direction, n_teams: int = DEFAULT_TEAMS) -> list[float]:
    """Returns the scores of a board, best first, whose medal lines and median are the thresholds ``# [n_teams]``.

    Raises:
        BundleError: No board of this size can say them under MLE-bench's rule.
    """
    median, bronze, silver, gold = thresholds.scores()
    if n_teams < FEWEST_TEAMS:
        raise BundleError(
            f"a leaderboard of {n_teams} teams gives gold and silver one line; MLE-bench needs {FEWEST_TEAMS} teams"
        )
    for (name, better), (below, worse) in zip(
        (("gold", gold), ("silver", silver), ("bronze", bronze)),
        (("silver", silver), ("bronze", bronze), ("median", median)),
        strict=True,
    ):
        if not direction.better(better, worse):
            raise BundleError(
                f"{name} ({better:g}) is not better than {below} ({worse:g}), which no leaderboard can say"
            )
        if round(better, DECIMALS) == round(worse, DECIMALS):
            raise BundleError(
                f"{name} ({better:g}) and {below} ({worse:g}) are equal at the {DECIMALS} decimals that MLE-bench keeps"
            )
    positions = medal_positions(n_teams)
    board: list[float] = []
    for score, last in zip((gold, silver, bronze, median), (*positions, n_teams), strict=True):
        board += [score] * (last - len(board))
    if lines_of(board) != (gold, silver, bronze, median, direction):
        raise BundleError(f"a leaderboard of {n_teams} teams cannot say these thresholds under MLE-bench's rule")
    return board


def lines_of(board: Sequence[float]) -> tuple[float, float, float, float, Direction]:
    """Returns gold, silver, bronze, median and direction as MLE-bench reads them from a board."""
    gold, silver, bronze = (board[position - 1] for position in medal_positions(len(board)))
    direction = Direction.MINIMIZE if board[0] < board[-1] else Direction.MAXIMIZE
    return gold, silver, bronze, float(np.median(board)), direction
