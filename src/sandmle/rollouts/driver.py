"""Keeps many episodes in flight in one process: while some wait for a model, the sandbox works for others.

Every episode ends as a trajectory, whatever happens to it. The order in which they end may differ from run to run; what
is in them, times apart, does not.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import sandmle
from sandmle.env import Episode, SubmissionGrader
from sandmle.errors import BundleError, ConfigError, SandmleError
from sandmle.grading import Grader
from sandmle.grading.metrics import load_libraries
from sandmle.grammars.scan import clean_text
from sandmle.policies import Policy
from sandmle.records import Failure, Trajectory, TrajectoryStatus
from sandmle.rollouts.config import Job, RolloutConfig, episode_seed
from sandmle.rollouts.run_dir import journal_path
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds import Scaffold
from sandmle.tasks import Bundle

# Every part of an episode has a limit of its own; this one only catches a scaffold that never comes to an end.
_GUARD_FACTOR, _GUARD_EXTRA_S = 4.0, 300.0


OpenGrader = Callable[[Bundle], SubmissionGrader]


@dataclass(frozen=True)
class Crew:
    """What the episodes of a run share; the caller opens and closes it."""

    sandbox: Sandbox
    policies: Mapping[str, Policy]
    """By the name in the configuration."""
    scaffold: Scaffold
    bundles: Mapping[str, Bundle]
    """By task id."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why a task of the run cannot be run, one sentence by task id."""
    open_grader: OpenGrader = Grader
    """Returns the grader of a task; called in a thread, once for the episodes of a task."""
    run_folder: Path | None = None
    """The run directory, for the journals of episodes under way; None for no journals."""
    wrap_grader: Callable[[SubmissionGrader], SubmissionGrader] | None = None
    """Put round every grader, for measurements."""


async def drive(
    config: RolloutConfig, jobs: Sequence[Job], crew: Crew, *, in_flight: int | None = None
) -> AsyncGenerator[Trajectory]:
    """Runs episodes and yields their trajectories as they end.

    Args:
        config: The run.
        jobs: The episodes to run.
        crew: Sandbox, policies, scaffold and tasks.
        in_flight: Episodes at once; None for enough to keep the sandbox and the policies busy.

    Raises:
        ConfigError: ``in_flight`` is below 1.
    """
    workers = max(1, crew.sandbox.workers)
    wanted = config.policy_options.concurrency + workers if in_flight is None else in_flight
    if wanted < 1:
        raise ConfigError(f"in_flight is {wanted}; give 1 or more")
    waiting = iter(jobs)
    ended: asyncio.Queue[Trajectory | Exception] = asyncio.Queue()
    graders = _Graders(crew.open_grader, capacity=wanted)
    slots = asyncio.Semaphore(workers)

    async def work() -> None:
        for job in waiting:
            try:
                await ended.put(await _run_job(config, job, crew, graders, slots))
            except Exception as error:  # no fault of an episode comes here: it stops the run instead of hanging it
                await ended.put(error)

    runners = [asyncio.create_task(work()) for _ in range(min(wanted, len(jobs)))]
    try:
        for _ in jobs:
            outcome = await ended.get()
            if isinstance(outcome, Exception):
                raise outcome
            yield outcome
    finally:
        for runner in runners:
            runner.cancel()
        await asyncio.gather(*runners, return_exceptions=True)


async def _run_job(
    config: RolloutConfig, job: Job, crew: Crew, graders: "_Graders", slots: asyncio.Semaphore
) -> Trajectory:
    """Returns the trajectory of one episode; a fault anywhere in it becomes a status."""
    bundle = crew.bundles.get(job.task_id)
    if bundle is None:
        why = Failure(boundary="task", message=crew.missing.get(job.task_id, f"there is no task {job.task_id}"))
        return _failed(config, job, None, TrajectoryStatus.TASK_ERROR, why)
    guard_s = _GUARD_FACTOR * config.episode.episode_s + _GUARD_EXTRA_S
    try:
        grader = await graders.of(bundle)
    except SandmleError as error:
        return _failed(config, job, bundle, TrajectoryStatus.TASK_ERROR, Failure(boundary="task", message=str(error)))
    seed = episode_seed(config.rng_seed, job)
    judge = grader if crew.wrap_grader is None else crew.wrap_grader(grader)
    journal = None if crew.run_folder is None else journal_path(crew.run_folder, job.key)
    episode = Episode(
        bundle,
        sandbox=crew.sandbox,
        grader=judge,
        config=config.episode,
        rng_seed=seed,
        slots=slots,
        journal=journal,
    )
    try:
        sampling = config.sampling.replace(rng_seed=seed)
        run = crew.scaffold.run(episode, crew.policies[job.policy], sampling, attempt=job.attempt)
        trajectory = await asyncio.wait_for(run, guard_s)
        return trajectory.replace(policy=job.policy, attempt=job.attempt)
    except TimeoutError:
        message = f"the {config.scaffold} scaffold did not end within {guard_s:g} s"
    except Exception as error:  # a bug in one episode must not cost the others
        message = clean_text(f"{type(error).__name__}: {error}")
    finally:
        await episode.aclose()
    return _failed(config, job, bundle, TrajectoryStatus.ROLLOUT_ERROR, Failure(boundary="rollout", message=message))


def _failed(
    config: RolloutConfig, job: Job, bundle: Bundle | None, status: TrajectoryStatus, failure: Failure
) -> Trajectory:
    """Returns the record of an episode that never came to be."""
    return Trajectory(
        task_id=job.task_id,
        task_hash=bundle.spec.task_hash if bundle else "",
        seed_id=bundle.spec.provenance.seed_id if bundle else None,
        policy=job.policy,
        scaffold=config.scaffold,
        grammar=config.episode.grammar,
        feedback=config.episode.feedback,
        reward_preset=config.episode.reward,
        attempt=job.attempt,
        rng_seed=episode_seed(config.rng_seed, job),
        status=status,
        failure=failure,
        versions={"sandmle": sandmle.__version__},
    )


class _Graders:
    """The graders of the tasks in hand: answers are read once for the episodes of a task."""

    def __init__(self, open_grader: OpenGrader, *, capacity: int) -> None:
        self._open_grader, self._capacity = open_grader, capacity
        self._open: OrderedDict[str, asyncio.Future[SubmissionGrader]] = OrderedDict()

    async def of(self, bundle: Bundle) -> SubmissionGrader:
        """Returns the grader of a task.

        Raises:
            SandmleError: The task's answers cannot be used.
        """
        pending = self._open.get(bundle.task_id)
        if pending is None:
            pending = asyncio.ensure_future(asyncio.to_thread(_opened, self._open_grader, bundle))
            self._open[bundle.task_id] = pending
            while len(self._open) > self._capacity:
                self._open.popitem(last=False)
        self._open.move_to_end(bundle.task_id)
        return await asyncio.shield(pending)


def _opened(open_grader: OpenGrader, bundle: Bundle) -> SubmissionGrader:
    load_libraries()  # before a limit's clock counts it
    try:
        return open_grader(bundle)
    except SandmleError:
        raise
    except Exception as error:
        raise BundleError(f"task {bundle.task_id}: its answers cannot be read: {type(error).__name__}") from error


OnProgress = Callable[["RolloutProgress"], None]


@dataclass(frozen=True)
class RolloutProgress:
    """How far a run is.

    Attributes:
        n_done: Episodes that have ended, also in earlier runs of the same folder.
        n_episodes: All episodes.
        n_tasks_done: Tasks of which no episode is missing.
        n_tasks: All tasks.
        n_failed: Episodes that ended by a fault of the machinery, in this run.
        mean_reward: Mean over the episodes of this run that have a reward.
        executions_per_s: Executions a second, over this run.
        left_s: Seconds until the end at the present pace; None before the first episode has ended.
    """

    n_done: int
    n_episodes: int
    n_tasks_done: int
    n_tasks: int
    n_failed: int = 0
    mean_reward: float | None = None
    executions_per_s: float = 0.0
    left_s: float | None = None
