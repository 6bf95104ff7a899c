import pytest

from sandmle.evaluation.milestones import REACH, position
from sandmle.records import Direction, Threshold, Thresholds
from tests.evaluation.run_builder import THRESHOLDS


def _thresholds(*scores: float) -> Thresholds:
    names = ("median", "bronze", "silver", "gold")
    return Thresholds(
        preset="paper", **{name: Threshold(score=score) for name, score in zip(names, scores, strict=True)}
    )


@pytest.mark.parametrize(
    ("score", "expected"), [(0.6, 0), (0.7, 1), (0.75, 1.5), (0.8, 2), (0.9, 3), (0.5, -1), (0.95, 3.5), (0.55, -0.5)]
)
def test_thresholds_are_at_whole_numbers(score: float, expected: float) -> None:
    assert position(score, THRESHOLDS, Direction.MAXIMIZE) == pytest.approx(expected)


def test_direction_turns_the_scale_and_not_the_order() -> None:
    thresholds = _thresholds(2.0, 1.5, 1.0, 0.2)
    assert position(1.25, thresholds, Direction.MINIMIZE) == pytest.approx(1.5)
    assert position(0.6, thresholds, Direction.MINIMIZE) == pytest.approx(2.5)
    assert position(2.6, thresholds, Direction.MINIMIZE) == pytest.approx(-1.0)


def test_far_scores_are_cut() -> None:
    assert position(-1e9, THRESHOLDS, Direction.MAXIMIZE) == -REACH
    assert position(1e9, THRESHOLDS, Direction.MAXIMIZE) == 3 + REACH


def test_thresholds_that_do_not_rise_have_no_scale() -> None:
    assert position(0.5, _thresholds(0.5, 0.5, 0.6, 0.7), Direction.MAXIMIZE) is None
    assert position(0.5, THRESHOLDS, Direction.MINIMIZE) is None
