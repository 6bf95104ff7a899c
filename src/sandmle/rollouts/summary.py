"""Counts and means of a run, gathered one trajectory at a time; the report with intervals is ``evaluation``'s."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sandmle.records import Failure, Trajectory, Usage


@dataclass
class PolicySummary:
    """What one policy did."""

    n_episodes: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    medals: Counter[str] = field(default_factory=Counter)
    n_valid: int = 0
    n_above_median: int = 0
    rewards: list[float] = field(default_factory=list)
    n_executions: int = 0
    exec_s: float = 0.0
    usage: Usage = field(default_factory=Usage)

    def add(self, trajectory: Trajectory) -> None:
        """Counts an episode."""
        self.n_episodes += 1
        self.statuses[str(trajectory.status)] += 1
        if trajectory.grade is not None and trajectory.grade.is_valid:
            self.n_valid += 1
            self.n_above_median += trajectory.grade.above_median
            self.medals[str(trajectory.grade.medal)] += 1
        if trajectory.reward is not None:
            self.rewards.append(trajectory.reward)
        self.n_executions += sum(step.exec_status is not None for step in trajectory.steps)
        self.exec_s += trajectory.exec_s
        self.usage = self.usage + trajectory.usage

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON; means of nothing are null."""
        return {
            "n_episodes": self.n_episodes,
            "n_rewards": len(self.rewards),
            "mean_reward": _mean(math.fsum(self.rewards), len(self.rewards)),
            "n_valid": self.n_valid,
            "n_above_median": self.n_above_median,
            "medals": {medal: self.medals[medal] for medal in ("bronze", "silver", "gold")},
            "statuses": dict(sorted(self.statuses.items())),
            "n_executions": self.n_executions,
            "mean_execution_s": _mean(self.exec_s, self.n_executions),
            "usage": self.usage.to_dict(),
        }


def summarize(trajectories: Iterable[Trajectory]) -> dict[str, Any]:
    """Returns the summary of a run; of two records of one episode the last one counts."""
    last: dict[tuple[str, str, int], int] = {}
    policies: dict[str, PolicySummary] = {}
    failures: list[dict[str, Any]] = []
    kept: list[tuple[int, Trajectory]] = []
    for index, trajectory in enumerate(trajectories):
        last[trajectory.key] = index
        # Messages and steps' texts are large, and nothing here needs them.
        kept.append((index, _slim(trajectory)))
    for index, trajectory in kept:
        if last[trajectory.key] != index:
            continue
        policies.setdefault(trajectory.policy, PolicySummary()).add(trajectory)
        if trajectory.status.is_infrastructure:
            failures.append(_failure_line(trajectory))
    return {
        "schema_version": 1,
        "n_episodes": sum(policy.n_episodes for policy in policies.values()),
        "policies": {name: policies[name].to_dict() for name in sorted(policies)},
        "failures": sorted(failures, key=lambda line: (line["task_id"], line["policy"], line["attempt"])),
    }


def _slim(trajectory: Trajectory) -> Trajectory:
    steps = tuple(step.model_copy(update={"reply": "", "code": None, "observation": ""}) for step in trajectory.steps)
    return trajectory.model_copy(update={"messages": (), "steps": steps})


def _failure_line(trajectory: Trajectory) -> dict[str, Any]:
    failure = trajectory.failure or Failure(boundary="rollout", message="no reason was recorded")
    return {
        "task_id": trajectory.task_id,
        "policy": trajectory.policy,
        "attempt": trajectory.attempt,
        "status": str(trajectory.status),
        "boundary": failure.boundary,
        "message": failure.message,
    }


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None
