"""Rollouts for a trainer: the episodes of a train_step, all at once, with one local model. No trainer in here."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sandmle.errors import SandmleError
from sandmle.policies import SamplingParams
from sandmle.policies.batching import BatchedPolicy
from sandmle.records import Completion, Message, Trajectory, canonical_json
from sandmle.rollouts import Crew, Job, drive, episode_seed, plan
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds import open_scaffold
from sandmle.tasks import Bundle
from sandmle.training.recipe import Recipe
from sandmle.training.stopwatch import Stopwatch, TimedGrader, TimedSandbox

POLICY = "policy"
"""The name of the model in training, in jobs and records."""


class TokenMismatchError(SandmleError):
    """A trajectory does not hold the ids that were sampled: training on it would be wrong."""


@dataclass(frozen=True)
class RolloutTimes:
    """Seconds of one batch of episodes, by what was going on; the kinds may overlap."""

    wall_s: float
    generation_s: float
    sandbox_s: float
    grading_s: float
    n_executions: int


class Engine:
    """Runs episodes with the model in training. One batch of episodes at a time."""

    def __init__(
        self, recipe: Recipe, bundles: Mapping[str, Bundle], *, sandbox: Sandbox, policy: BatchedPolicy
    ) -> None:
        """Takes over the policy; the sandbox stays the caller's.

        Args:
            recipe: Rules of the episodes and of sampling.
            bundles: All tasks, by id.
            sandbox: A started sandbox.
            policy: The model.
        """
        self._recipe, self._bundles, self._policy = recipe, bundles, policy
        self._watch = Stopwatch()
        self._sandbox = TimedSandbox(sandbox, self._watch)
        self._scaffold = open_scaffold("react")
        self.times = RolloutTimes(0.0, 0.0, 0.0, 0.0, 0)

    def run(self, jobs: Sequence[Job], *, rng_seed: int, sampling: SamplingParams | None = None) -> list[Trajectory]:
        """Runs episodes and returns their trajectories in the order of the jobs; ``times`` tells what they took.

        Args:
            jobs: Task and attempt of each; no two alike.
            rng_seed: Seeds the episodes.
            sampling: None for the recipe's.

        Raises:
            TokenMismatchError: The ids of a trajectory are not those that were sampled.
        """
        used = sorted({job.task_id for job in jobs})
        config = plan(
            {task_id: self._bundles[task_id] for task_id in used},
            [POLICY],
            attempts=max(job.attempt for job in jobs) + 1,
            rng_seed=rng_seed,
            sampling=sampling or self._recipe.sampling,
            episode=self._recipe.episode,
            sandbox=self._recipe.sandbox,
        )
        recorder = _Recorder(self._policy)
        crew = Crew(
            sandbox=self._sandbox,
            policies={POLICY: recorder},
            scaffold=self._scaffold,
            bundles=self._bundles,
            wrap_grader=lambda grader: TimedGrader(grader, self._watch),
        )
        before_s = self._policy.times.generate_s

        async def all_of_them() -> list[Trajectory]:
            threads = ThreadPoolExecutor(max(1, self._sandbox.workers) + len(jobs))
            asyncio.get_running_loop().set_default_executor(threads)
            ended: list[Trajectory] = []
            self._policy.expect(len(jobs))
            try:
                async for trajectory in drive(config, jobs, crew, in_flight=len(jobs)):
                    ended.append(trajectory)
                    self._policy.expect(-1)  # a batch no longer waits for it
            finally:
                self._policy.expect(len(ended) - len(jobs))
            return ended

        with self._watch.at("wall"):
            by_key = {each.key: each for each in asyncio.run(all_of_them())}
        trajectories = [by_key[job.key] for job in jobs]
        for job, trajectory in zip(jobs, trajectories, strict=True):
            recorder.check(trajectory, episode_seed(rng_seed, job))
        seconds = self._watch.take()
        self.times = RolloutTimes(
            wall_s=seconds.get("wall", 0.0),
            generation_s=self._policy.times.generate_s - before_s,
            sandbox_s=seconds.get("sandbox", 0.0),
            grading_s=seconds.get("grading", 0.0),
            n_executions=sum(step.exec_status is not None for each in trajectories for step in each.steps),
        )
        return trajectories


def step_seed(rng_seed: int, purpose: str, train_step: int) -> int:
    """Returns the ``rng_seed`` of the episodes of a train_step."""
    text = canonical_json([rng_seed, purpose, train_step])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


class _Recorder:
    """Keeps what was sampled apart from the trajectories, to hold them against it."""

    def __init__(self, policy: BatchedPolicy) -> None:
        self.name = policy.name
        self._policy = policy
        self._sampled: dict[int, list[Completion]] = {}

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the next assistant message."""
        completion = await self._policy.generate(transcript, sampling)
        self._sampled.setdefault(sampling.rng_seed, []).append(completion)
        return completion

    async def aclose(self) -> None:
        """Does nothing: the policy goes on."""

    def check(self, trajectory: Trajectory, seed: int) -> None:
        """Compares the trained ids of a trajectory with what was sampled.

        Raises:
            TokenMismatchError: They differ.
        """
        if trajectory.completion_ids is None or trajectory.loss_mask is None:
            return
        replies = self._sampled.get(seed, [])
        position, ids = 0, trajectory.completion_ids
        for completion in replies:
            sampled = completion.token_ids or ()
            start = len(completion.prompt_ids or ()) - len(trajectory.prompt_ids or ())
            n_kept = 0
            while n_kept < len(sampled) and start + n_kept < len(ids) and trajectory.loss_mask[start + n_kept]:
                n_kept += 1
            if (
                start < position
                or 1 in trajectory.loss_mask[position:start]
                or ids[start : start + n_kept] != sampled[:n_kept]
            ):
                raise TokenMismatchError(f"episode {trajectory.key}: trained ids are not those that were sampled")
            position = start + n_kept
        if 1 in trajectory.loss_mask[position:]:
            raise TokenMismatchError(f"episode {trajectory.key}: ids are trained that were never sampled")
