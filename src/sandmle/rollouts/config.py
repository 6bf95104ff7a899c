"""What a run is: everything that its results depend on. It stands in ``run.json`` and may not change on resume."""

import hashlib
from typing import Any, Literal

from pydantic import Field

from sandmle.env import EpisodeConfig
from sandmle.policies import PolicyOptions, SamplingParams
from sandmle.records import Record, canonical_json


class SuiteInfo(Record):
    """The benchmark that a run is a measurement on."""

    name: str
    grader: str = "own"
    """``own``, or ``official`` for the benchmark's own code."""
    notes: tuple[str, ...] = ()
    """What every report on the run must say: known leaks, a list of tasks that is not the published one."""
    task_notes: dict[str, str] = Field(default_factory=dict)
    """The same for single tasks."""


class RolloutConfig(Record):
    """The full configuration of a run."""

    schema_version: Literal[1] = 1
    kind: Literal["rollout"] = "rollout"
    tasks: tuple[str, ...] = Field(min_length=1)
    """Task ids, sorted."""
    """Also those that cannot be run: their episodes end as ``task_error``, so that they count."""
    task_hashes: dict[str, str]
    """By task id; none for a task that could not be read."""
    policies: tuple[str, ...] = Field(min_length=1)
    """Policies as they are opened: ``scripted:linear``, ``chat:MODEL``."""
    policy_options: PolicyOptions = PolicyOptions()
    scaffold: str = "react"
    scaffold_options: dict[str, Any] = Field(default_factory=dict)
    """Fields of the scaffold's ``Options`` that are not at their defaults."""
    attempts: int = Field(default=1, gt=0)
    """Episodes of each policy at each task, numbered from 0."""
    rng_seed: int = 0
    sampling: SamplingParams = SamplingParams()
    episode: EpisodeConfig = EpisodeConfig()
    sandbox: str = "forkserver"
    """Backend that runs the code."""
    suite: SuiteInfo | None = None
    """None for a plain set of tasks."""


class Job(Record):
    """One episode that a run is to have."""

    task_id: str
    policy: str
    attempt: int

    @property
    def key(self) -> tuple[str, str, int]:
        """Task, policy and attempt: the key of its trajectory."""
        return (self.task_id, self.policy, self.attempt)


def jobs_of(config: RolloutConfig) -> list[Job]:
    """Returns all episodes of a run, those of one task together."""
    return [
        Job(task_id=task_id, policy=policy, attempt=attempt)
        for task_id in config.tasks
        for policy in config.policies
        for attempt in range(config.attempts)
    ]


def episode_seed(run_seed: int, job: Job) -> int:
    """Returns the ``rng_seed`` of an episode: the same in any process and order, below 2**31 for servers' sake."""
    text = canonical_json([run_seed, job.task_id, job.policy, job.attempt])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) & 0x7FFF_FFFF
