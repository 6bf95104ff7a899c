"""``run_rollouts``: a whole run, from a configuration to a summary, in one call."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sandmle.env import checked
from sandmle.errors import ConfigError
from sandmle.grading import Grader
from sandmle.grammars import get_grammar
from sandmle.policies import Policy, open_policy
from sandmle.records import Trajectory
from sandmle.rollouts.config import Job, RolloutConfig, jobs_of
from sandmle.rollouts.driver import Crew, OnProgress, OpenGrader, RolloutProgress, drive
from sandmle.rollouts.run_dir import RunDir, open_run, read_trajectories
from sandmle.rollouts.summary import summarize
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds import open_scaffold
from sandmle.tasks import Bundle
from sandmle.tasks.bundle import find_bundles, load_bundle

# Threads beyond those that wait for the sandbox: for graders and files.
_EXTRA_THREADS = 8


def load_tasks(path: Path) -> dict[str, Bundle]:
    """Loads a task, or all tasks of a folder, by id; the folder may be what `sandmle generate` made.

    Raises:
        BundleError: There are none, or one is broken or was changed.
    """
    bundles = [load_bundle(root) for root in find_bundles(path)]
    return {bundle.task_id: bundle for bundle in sorted(bundles, key=lambda bundle: bundle.task_id)}


def plan(
    bundles: Mapping[str, Bundle], policies: Sequence[str], *, missing: Collection[str] = (), **settings: Any
) -> RolloutConfig:
    """Returns the configuration of a run.

    Args:
        bundles: The tasks by id.
        policies: Policies as :func:`sandmle.policies.open_policy` takes them.
        missing: Ids of tasks that belong to the run but cannot be run.
        **settings: Further fields of :class:`RolloutConfig`.

    Raises:
        ConfigError: A policy is named twice, a name is unknown, or a setting is not allowed.
    """
    repeated = [policy for policy, count in Counter(policies).items() if count > 1]
    if repeated:
        raise ConfigError(f"policy {repeated[0]} is named twice; use more attempts to repeat it")
    values = {
        "tasks": tuple(sorted({*bundles, *missing})),
        "task_hashes": {task_id: bundles[task_id].spec.task_hash for task_id in sorted(bundles)},
        "policies": tuple(policies),
        **settings,
    }
    config = checked(RolloutConfig, values)
    get_grammar(config.episode.grammar)
    open_scaffold(config.scaffold, config.scaffold_options)
    return config


def run_rollouts(
    config: RolloutConfig,
    bundles: Mapping[str, Bundle],
    out: Path,
    *,
    sandbox: Sandbox,
    policies: Mapping[str, Policy] | None = None,
    missing: Mapping[str, str] | None = None,
    open_grader: OpenGrader = Grader,
    resume: bool = False,
    in_flight: int | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Runs all episodes that a run directory still lacks and returns the run's summary, which it also writes.

    Args:
        config: The run.
        bundles: The tasks by id.
        out: The run directory.
        sandbox: A started sandbox; on Ctrl-C it is closed, so that nothing is waited for.
        policies: Open policies by name, instead of those that the configuration names; they are closed at the end.
        missing: Why tasks of the run cannot be run, one sentence by task id.
        open_grader: Returns the grader of a task.
        resume: Go on with a run that is there.
        in_flight: Episodes at once; None for enough to keep sandbox and policies busy.
        on_progress: Told after every episode.

    Raises:
        ConfigError: A name is unknown, or the folder cannot be used (see :func:`sandmle.rollouts.open_run`).
    """
    scaffold = open_scaffold(config.scaffold, config.scaffold_options)
    options = {"grammar": config.episode.grammar, **_set_options(config)}
    opened = policies or {name: open_policy(name, **options) for name in config.policies}
    crew = Crew(sandbox, opened, scaffold, bundles, missing or {}, open_grader, run_folder=out)
    with open_run(out, config, resume=resume) as run:
        asyncio.run(_run_all(config, crew, run, in_flight, on_progress))
        summary = summarize(read_trajectories(out))
        run.write_summary(summary)
    return summary


def _set_options(config: RolloutConfig) -> dict[str, Any]:
    options = {name: getattr(config.policy_options, name) for name in type(config.policy_options).model_fields}
    return {name: value for name, value in options.items() if name != "grammar"}


async def _run_all(
    config: RolloutConfig, crew: Crew, run: RunDir, in_flight: int | None, on_progress: OnProgress | None
) -> None:
    threads = ThreadPoolExecutor(max(1, crew.sandbox.workers) + _EXTRA_THREADS)
    asyncio.get_running_loop().set_default_executor(threads)
    everything = jobs_of(config)
    jobs = [job for job in everything if not run.is_done(job.key)]
    meter = _Meter(everything, jobs)
    if on_progress is not None:
        on_progress(meter.read())
    trajectories = drive(config, jobs, crew, in_flight=in_flight)
    try:
        async for trajectory in trajectories:
            meter.add(run.append(trajectory))
            if on_progress is not None:
                on_progress(meter.read())
    except BaseException:
        # Ctrl-C, a full disk: threads that run code must come back before the loop can end.
        crew.sandbox.close()
        raise
    finally:
        await trajectories.aclose()
        for policy in crew.policies.values():
            await policy.aclose()


class _Meter:
    """Counts what the progress line shows."""

    def __init__(self, everything: Sequence[Job], jobs: Sequence[Job]) -> None:
        self._started_s = time.monotonic()
        self._n_all, self._n_jobs = len(everything), len(jobs)
        self._n_tasks = len({job.task_id for job in everything})
        self._missing = Counter(job.task_id for job in jobs)
        self._n_ended = self._n_failed = self._n_executions = 0
        self._rewards: list[float] = []

    def add(self, trajectory: Trajectory) -> None:
        """Counts an episode."""
        self._n_ended += 1
        self._n_failed += trajectory.status.is_infrastructure
        self._n_executions += sum(step.exec_status is not None for step in trajectory.steps)
        self._missing[trajectory.task_id] -= 1
        if trajectory.reward is not None:
            self._rewards.append(trajectory.reward)

    def read(self) -> RolloutProgress:
        """Returns how far the run is."""
        elapsed_s = time.monotonic() - self._started_s
        left = self._n_jobs - self._n_ended
        return RolloutProgress(
            n_done=self._n_all - left,
            n_episodes=self._n_all,
            n_tasks_done=self._n_tasks - sum(count > 0 for count in self._missing.values()),
            n_tasks=self._n_tasks,
            n_failed=self._n_failed,
            mean_reward=math.fsum(self._rewards) / len(self._rewards) if self._rewards else None,
            executions_per_s=self._n_executions / elapsed_s if elapsed_s > 0 else 0.0,
            left_s=elapsed_s / self._n_ended * left if self._n_ended else None,
        )
