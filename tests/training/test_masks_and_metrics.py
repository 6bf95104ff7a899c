"""What is trained on, and the numbers of a train_step."""

from typing import Any

import pytest

from sandmle.records import ExecStatus, ReplyStatus, StepRecord, Trajectory, TrajectoryStatus
from sandmle.training.engine import RolloutTimes
from sandmle.training.masks import MaskPolicy, is_trained
from sandmle.training.metrics import episode_metrics, mean_of, time_metrics


def episode(
    status: TrajectoryStatus = TrajectoryStatus.SUBMITTED, reward: float | None = 0.5, **more: Any
) -> Trajectory:
    values: dict[str, Any] = {
        "task_id": "task",
        "task_hash": "0",
        "policy": "policy",
        "scaffold": "react",
        "grammar": "fenced",
        "feedback": "public",
        "reward_preset": "paper",
        "attempt": 0,
        "rng_seed": 0,
        "status": status,
        "reward": reward,
        "prompt_ids": (1,),
        "completion_ids": (2, 3),
        "loss_mask": (1, 0),
        "logprobs": (-1.0, 0.0),
    }
    return Trajectory.model_validate({**values, **more})


def ran(*statuses: ExecStatus) -> tuple[StepRecord, ...]:
    return tuple(
        StepRecord(index=at, reply="x", reply_status=ReplyStatus.ACTION, in_form=True, exec_status=status)
        for at, status in enumerate(statuses)
    )


@pytest.mark.parametrize("status", list(TrajectoryStatus))
def test_t16_the_papers_mask_is_the_default(status: TrajectoryStatus) -> None:
    reward = None if status.is_infrastructure else 0.5
    masked = status is TrajectoryStatus.TIME_BUDGET or status.is_infrastructure
    assert is_trained(episode(status, reward), MaskPolicy()) is not masked


def test_t16_all_masked_leaves_the_rewards_visible() -> None:
    policy = MaskPolicy(statuses=(TrajectoryStatus.MAX_TURNS,))
    batch = [episode(TrajectoryStatus.MAX_TURNS, reward) for reward in (0.2, 0.6)]
    assert not any(is_trained(each, policy) for each in batch)
    assert episode_metrics(batch)["reward"] == pytest.approx(0.4)


def test_many_timeouts_mask_a_trajectory() -> None:
    ok, late = ExecStatus.OK, ExecStatus.TIMEOUT
    assert is_trained(episode(steps=ran(ok, ok, ok, ok, late)), MaskPolicy())
    assert not is_trained(episode(steps=ran(ok, ok, ok, late)), MaskPolicy())
    assert is_trained(episode(steps=ran(ok, late)), MaskPolicy(timeout_share=None))


def test_without_ids_nothing_is_trained() -> None:
    bare = episode(prompt_ids=None, completion_ids=None, loss_mask=None, logprobs=None)
    assert not is_trained(bare, MaskPolicy())


def test_t04_a_mean_leaves_out_what_is_no_number() -> None:
    assert mean_of([0.5, float("nan"), 0.8]) == (pytest.approx(0.65), 2)
    assert mean_of([None]) == (None, 0)


def test_t19_parts_that_cancel_are_seen() -> None:
    batch = [episode(terms={"a": 0.0 + d, "b": 1.0 - d}, reward=0.5) for d in (0.0, 1.0)]
    numbers = episode_metrics(batch)
    assert numbers["reward_std"] == 0.0
    assert numbers["term_stds"]["a"] == numbers["term_stds"]["b"] > 0.5


def test_t17_failures_are_counted_and_left_out() -> None:
    batch = [episode(reward=1.0), episode(TrajectoryStatus.SANDBOX_ERROR, None)]
    numbers = episode_metrics(batch)
    assert (numbers["n_episodes"], numbers["n_scored"], numbers["n_failed"], numbers["reward"]) == (2, 1, 1, 1.0)
    assert numbers["statuses"] == {"sandbox_error": 0.5, "submitted": 0.5}


def test_the_time_of_a_step_is_split() -> None:
    numbers = time_metrics(RolloutTimes(6.0, 3.0, 2.0, 0.5, 12), 10.0)
    assert numbers["update_s"] == 4.0
    assert numbers["overhead_s"] == 0.5
    assert numbers["executions_per_s"] == 2.0
