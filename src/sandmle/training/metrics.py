"""Numbers of a train_step, from its trajectories. Pure functions."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sandmle.records import Medal, Trajectory
from sandmle.training.engine import RolloutTimes


def mean_of(values: Iterable[float | None]) -> tuple[float | None, int]:
    """Returns the mean of the values that are finite numbers, and how many there are; None for none."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return (math.fsum(known) / len(known) if known else None), len(known)


def episode_metrics(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """Returns what the episodes of a train_step or a validation came to.

    Means and deviations are over the episodes with a reward; shares of endings over all.
    """
    scored = [each for each in trajectories if each.reward is not None]
    reward, n_scored = mean_of(each.reward for each in scored)
    names = sorted({name for each in scored for name in each.terms})
    terms = {name: [each.terms[name] for each in scored if name in each.terms] for name in names}
    statuses = Counter(str(each.status) for each in trajectories)
    medals = Counter(each.grade.medal for each in scored if each.grade is not None and each.grade.is_valid)
    return {
        "n_episodes": len(trajectories),
        "n_scored": n_scored,
        "n_failed": len(trajectories) - n_scored,
        "reward": reward,
        "reward_std": _std([each.reward for each in scored if each.reward is not None]),
        "terms": {name: mean_of(values)[0] for name, values in terms.items()},
        "term_stds": {name: _std(values) for name, values in terms.items()},
        "valid_share": mean_of(float(each.grade is not None and each.grade.is_valid) for each in scored)[0],
        "medals": {str(medal): medals[medal] for medal in (Medal.BRONZE, Medal.SILVER, Medal.GOLD)},
        "statuses": {name: count / len(trajectories) for name, count in sorted(statuses.items())},
        "turns": mean_of(float(len(each.steps)) for each in trajectories)[0],
        "sampled_tokens": mean_of(float(sum(each.loss_mask or ())) for each in trajectories)[0],
        "total_tokens": mean_of(
            float(len(each.prompt_ids or ()) + len(each.completion_ids or ())) for each in trajectories
        )[0],
    }


def time_metrics(times: RolloutTimes, wall_s: float) -> dict[str, Any]:
    """Returns how the seconds of a train_step were spent.

    ``overhead_s`` is what neither generation, code, grading nor the update took. Kinds of work that went on at the same
    time are each counted in full, so the overhead is at least 0.
    """
    update_s = max(0.0, wall_s - times.wall_s)
    busy_s = times.generation_s + times.sandbox_s + times.grading_s + update_s
    return {
        "wall_s": wall_s,
        "generation_s": times.generation_s,
        "sandbox_s": times.sandbox_s,
        "grading_s": times.grading_s,
        "update_s": update_s,
        "overhead_s": max(0.0, wall_s - busy_s),
        "executions_per_s": times.n_executions / times.wall_s if times.wall_s else 0.0,
    }


def _std(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
