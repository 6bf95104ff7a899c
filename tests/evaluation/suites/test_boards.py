"""The position rule, exact at the border of every band of team counts."""

import pytest

from sandmle.errors import BundleError
from sandmle.evaluation.suites.boards import board_rank, leaderboard_thresholds
from sandmle.formats.leaderboard import medal_positions
from sandmle.records import Direction

UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE


@pytest.mark.parametrize(
    ("n_teams", "places"),
    [
        (1, (1, 1, 1)),
        (9, (1, 1, 3)),
        (50, (5, 10, 20)),
        (99, (9, 19, 39)),
        (100, (10, 20, 40)),
        (249, (10, 49, 99)),
        (250, (10, 50, 100)),
        (499, (10, 50, 100)),
        (500, (11, 50, 100)),
        (999, (11, 50, 100)),
        (1000, (12, 50, 100)),
        (1001, (12, 50, 100)),
        (1485, (12, 74, 148)),
        (3308, (16, 165, 330)),
    ],
)
def test_medal_places(n_teams: int, places: tuple[int, int, int]) -> None:
    assert medal_positions(n_teams) == places


def published_places(n_teams: int) -> tuple[int, ...]:
    """The rule as published, in floating point."""
    if n_teams < 100:
        return tuple(max(1, int(n_teams * share)) for share in (0.1, 0.2, 0.4))
    if n_teams < 250:
        return (10, int(n_teams * 0.2), int(n_teams * 0.4))
    if n_teams < 1000:
        return (10 + int(n_teams * 0.002), 50, 100)
    return (10 + int(n_teams * 0.002), int(n_teams * 0.05), int(n_teams * 0.1))


def test_places_are_the_published_rule_for_every_count() -> None:
    assert [n for n in range(1, 20_001) if medal_positions(n) != published_places(n)] == []


def test_thresholds_are_the_scores_at_the_places() -> None:
    scores = [1 - index / 1000 for index in range(250)]
    up = leaderboard_thresholds(scores, UP)
    assert up.scores() == (pytest.approx(1 - 124.5 / 1000), scores[99], scores[49], scores[9])
    down = leaderboard_thresholds([-score for score in scores], DOWN)
    assert down.scores() == tuple(-score for score in up.scores())


def test_a_board_in_the_wrong_order_or_without_teams_is_refused() -> None:
    with pytest.raises(BundleError, match="best first"):
        leaderboard_thresholds([0.1, 0.2], UP)
    with pytest.raises(BundleError, match="no medals"):
        leaderboard_thresholds([], UP)
    assert leaderboard_thresholds([0.5, 0.5], DOWN).scores() == (0.5, 0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("score", "position"), [(0.95, 1), (0.9, 1), (0.85, 2), (0.8, 2), (0.75, 4), (0.7, 4), (0.1, 5)]
)
def test_q05_ties_take_the_best_place(score: float, position: int) -> None:
    board = [0.9, 0.8, 0.8, 0.7]
    assert board_rank("private", score, board, UP).position == position
    assert board_rank("private", -score, [-each for each in board], DOWN).position == position


def test_the_place_where_a_board_is_out_of_order_is_named() -> None:
    with pytest.raises(BundleError, match=r"place 3 has 0\.8 after 0\.5; sort it"):
        leaderboard_thresholds([0.9, 0.5, 0.8, 0.1], UP)
