"""The rewards of DESIGN 4.8, against the table of the paper and of the published code."""

import pytest

from sandmle.env import PRESETS, episode_reward, reward_terms, weigh
from sandmle.errors import ConfigError
from sandmle.records import (
    Direction,
    GradeReport,
    GradeStatus,
    Medal,
    ReplyStatus,
    StepRecord,
    Threshold,
    Thresholds,
    TrajectoryStatus,
)

MARKS = Thresholds(
    preset="calibrated",
    median=Threshold(score=0.6),
    bronze=Threshold(score=0.7),
    silver=Threshold(score=0.8),
    gold=Threshold(score=0.9),
)


def report(
    status: GradeStatus = GradeStatus.GRADED, medal: Medal = Medal.NONE, *, above_median: bool = False
) -> GradeReport:
    return GradeReport(
        task_id="t",
        task_hash="h",
        metric="accuracy",
        direction=Direction.MAXIMIZE,
        status=status,
        score=0.5 if status is GradeStatus.GRADED else None,
        medal=medal,
        above_median=above_median,
        thresholds=MARKS,
    )


def step(index: int, status: ReplyStatus = ReplyStatus.ACTION, *, in_form: bool = True) -> StepRecord:
    return StepRecord(index=index, reply="x", reply_status=status, in_form=in_form)


OUTCOMES = {
    "invalid": report(GradeStatus.BAD_IDS),
    "valid": report(),
    "median": report(above_median=True),
    "bronze": report(medal=Medal.BRONZE, above_median=True),
    "silver": report(medal=Medal.SILVER, above_median=True),
    "gold": report(medal=Medal.GOLD, above_median=True),
}


@pytest.mark.parametrize(
    ("preset", "outcome", "reward"),
    [
        *[("paper", name, value) for name, value in zip(OUTCOMES, (0.1, 0.4, 0.5, 0.7, 0.9, 1.0), strict=True)],
        *[("release", name, value) for name, value in zip(OUTCOMES, (0.1, 0.3, 0.4, 0.8, 0.9, 1.0), strict=True)],
        *[("sparse", name, value) for name, value in zip(OUTCOMES, (0.1, 0.1, 0.1, 0.1, 0.1, 1.0), strict=True)],
    ],
)
def test_presets_give_the_published_table(preset: str, outcome: str, reward: float) -> None:
    terms = reward_terms([step(0), step(1)], OUTCOMES[outcome])
    assert weigh(terms, preset) == reward


def test_all_terms_are_there_whatever_the_preset_weighs() -> None:
    terms = reward_terms([step(0)], None)
    for weights in PRESETS.values():
        assert set(weights) <= set(terms)
        assert sum(weights.values()) == pytest.approx(1.0)
    assert "truncated" in terms


def test_format_is_the_share_of_turns_in_form() -> None:
    steps = [step(0), step(1, in_form=False), step(2, ReplyStatus.FORMAT_ERROR, in_form=False), step(3)]
    assert reward_terms(steps, None)["format"] == 0.5
    assert reward_terms([], None)["format"] == 0.0


def test_r05_a_truncated_turn_is_not_bad_form() -> None:
    steps = [step(0), step(1, ReplyStatus.TRUNCATED, in_form=False)]
    terms = reward_terms(steps, None)
    assert (terms["format"], terms["truncated"]) == (1.0, 0.5)


@pytest.mark.parametrize("status", [each for each in TrajectoryStatus if each.is_infrastructure])
def test_faults_that_are_not_the_agents_give_no_reward_but_all_terms(status: TrajectoryStatus) -> None:
    terms = reward_terms([step(0)], OUTCOMES["gold"])
    assert terms["gold"] == 1.0
    assert episode_reward(terms, "paper", status) is None


@pytest.mark.parametrize("status", [each for each in TrajectoryStatus if not each.is_infrastructure])
def test_all_other_endings_give_one(status: TrajectoryStatus) -> None:
    assert episode_reward(reward_terms([step(0)], OUTCOMES["bronze"]), "paper", status) == 0.7


def test_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'sparse'"):
        weigh({}, "spars")
