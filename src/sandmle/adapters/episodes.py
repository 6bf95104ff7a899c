"""What the adapters share: one episode for one row of a trainer's data, whatever happens to it."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sandmle.env import EpisodeConfig, checked
from sandmle.errors import ConfigError
from sandmle.policies import Policy, SamplingParams
from sandmle.records import Trajectory
from sandmle.rollouts import Crew, Job, drive, plan
from sandmle.sandbox import open_backend
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds import open_scaffold
from sandmle.tasks import Bundle
from sandmle.tasks.bundle import load_bundle


@dataclass(frozen=True)
class EpisodeRunner:
    """Runs single episodes. One a process: it holds the process's sandbox."""

    sandbox: Sandbox
    episode: EpisodeConfig
    scaffold: str = "react"

    async def run(
        self, bundle: Bundle, policy: Policy, sampling: SamplingParams, *, attempt: int = 0, rng_seed: int = 0
    ) -> Trajectory:
        """Returns the trajectory of one episode. Every ending, also a fault, is a status in it; nothing is raised.

        Args:
            bundle: The task.
            policy: The model; stays open.
            sampling: How it samples.
            attempt: The number of this episode in its group.
            rng_seed: Seeds the episode, together with task and attempt.
        """
        config = plan(
            {bundle.task_id: bundle},
            [policy.name],
            attempts=attempt + 1,
            rng_seed=rng_seed,
            sampling=sampling,
            episode=self.episode,
            scaffold=self.scaffold,
        )
        crew = Crew(self.sandbox, {policy.name: policy}, open_scaffold(self.scaffold), {bundle.task_id: bundle})
        job = Job(task_id=bundle.task_id, policy=policy.name, attempt=attempt)
        trajectories = [each async for each in drive(config, [job], crew, in_flight=1)]
        return trajectories[0]


@lru_cache(maxsize=256)
def cached_bundle(path: str) -> Bundle:
    """Returns a task that is read once a process.

    Raises:
        BundleError: There is none, or it was changed.
    """
    return load_bundle(Path(path))


@lru_cache(maxsize=4)
def process_sandbox(name: str, workers: int | None) -> Sandbox:
    """Returns the sandbox of this process, started the first time; it ends with the process.

    Raises:
        SandboxUnavailableError: This machine lacks something.
    """
    return open_backend(name, workers=workers)


def episode_config(values: dict[str, Any]) -> EpisodeConfig:
    """Returns the rules of an episode from a trainer's configuration.

    Raises:
        ConfigError: A value is not allowed.
    """
    unknown = sorted(set(values) - set(EpisodeConfig.model_fields))
    if unknown:
        raise ConfigError(f"unknown episode setting {unknown[0]!r}; known: {', '.join(EpisodeConfig.model_fields)}")
    return checked(EpisodeConfig, values)
