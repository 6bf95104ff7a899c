"""The four scaffolds side by side: scripted engineers on the same synthetic tasks, what they reach and what it costs.

Model time is what the engineers take to write a reply, code time what the sandbox takes for a script, grading time what
the grade at the end takes; the rest of an episode is the overhead of scaffold and episode.
"""

import datetime
import math
import os
import platform
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from sandmle.env.feedback import Leaderboard
from sandmle.errors import ConfigError, unknown_name
from sandmle.grading import Grader, SubmissionProblem
from sandmle.grading.metrics import load_libraries
from sandmle.policies import Policy, SamplingParams, open_policy
from sandmle.policies.scripted import SCRIPTED_NAMES
from sandmle.records import Completion, ExecResult, GradeReport, Message, Record, Trajectory
from sandmle.rollouts import RolloutConfig, RolloutProgress, load_tasks, plan, read_trajectories, run_rollouts
from sandmle.sandbox import open_backend
from sandmle.sandbox.base import ExecRequest, Sandbox
from sandmle.tasks import Bundle

SCAFFOLDS: Mapping[str, tuple[Mapping[str, Any], int]] = MappingProxyType(
    {
        "react": ({}, 20),
        "mle_agent": ({}, 20),
        "aide": ({"num_drafts": 2}, 6),
        "aira": ({"num_drafts": 2}, 6),
    }
)
"""Options and ``max_turns`` of each: turns, actions or scripts. ``react`` runs three to five scripts with the
same engineer, looks at the files included; a search may run six."""
REFERENCE = "react"
"""The scaffold that the others are held against."""
STEP_LIMIT_S = 0.020
"""Most overhead of one step that is not called out."""
_MEDALS = ("median", "bronze", "silver", "gold")


class ScaffoldRow(Record):
    """One engineer under one scaffold."""

    scaffold: str
    policy: str
    n_episodes: int
    n_valid: int
    mean_reward: float
    milestones: float
    """How many of median, bronze, silver and gold a task brings, on average."""
    gain: float | None
    """Milestones beyond those of the reference scaffold on the same tasks; None for the reference."""
    gain_error: float | None
    """Standard error of the gain over tasks."""
    code_cpu_s: float
    """CPU of the scripts."""


class ScaffoldCost(Record):
    """What one scaffold took for all engineers together."""

    scaffold: str
    n_steps: int
    """Turns, actions or scripts."""
    wall_s: float
    """From the first episode's start to the last one's end."""
    overhead_cpu_s: float
    """CPU of a step in this process beyond the model's, the grading's and what watching the script takes."""
    overhead_wall_s: float
    """Seconds of a step beyond model, code and grading, with as many episodes at once as the sandbox has workers."""


class ScaffoldBench(Record):
    """Everything that one run found."""

    date: str
    machine: str
    workers: int
    load_before: float
    load_after: float
    n_tasks: int
    wall_s: float
    """All episodes; making the tasks is not in it."""
    rows: tuple[ScaffoldRow, ...]
    costs: tuple[ScaffoldCost, ...]

    def problems(self) -> list[str]:
        """Returns what is not as it should be, one sentence each: invalid episodes, a search that does worse, cost."""
        found = [
            f"{row.policy} under {row.scaffold}: {row.n_episodes - row.n_valid} of {row.n_episodes} are not valid"
            for row in self.rows
            if row.n_valid < row.n_episodes
        ]
        found += [
            f"{row.policy} under {row.scaffold}: {row.gain:+.2f} milestones a task against {REFERENCE}, "
            f"more than a standard error ({row.gain_error:.2f}) worse"
            for row in self.rows
            if row.gain is not None and row.gain_error is not None and row.gain < -row.gain_error
        ]
        found += [
            f"{cost.scaffold}: {1000 * cost.overhead_cpu_s:.1f} ms of CPU a step beyond model, code and grading, "
            f"more than {1000 * STEP_LIMIT_S:.0f}"
            for cost in self.costs
            if cost.overhead_cpu_s > STEP_LIMIT_S
        ]
        return found


def run_scaffold_bench(
    tasks: Path,
    out: Path,
    *,
    n_tasks: int | None = None,
    engineers: Sequence[str] = ("linear", "explorer"),
    scaffolds: Sequence[str] = tuple(SCAFFOLDS),
    workers: int = 2,
    sandbox: str = "forkserver",
    rng_seed: int = 1,
    on_progress: Callable[[str, RolloutProgress], None] | None = None,
) -> ScaffoldBench:
    """Runs every engineer under every scaffold on every task.

    Args:
        tasks: The task set.
        out: A folder for the run directories, one a scaffold.
        n_tasks: Use the first so many, by id; None for all.
        engineers: Names of ``sandmle.policies.scripted.SCRIPTED_NAMES``.
        scaffolds: Names of ``SCAFFOLDS``; the gains need ``react`` among them.
        workers: Executions, and episodes, at once.
        sandbox: The backend.
        rng_seed: Seeds the episodes.
        on_progress: Told the scaffold and how far it is.

    Raises:
        ConfigError: A name is unknown, or ``out`` cannot be used.
        BundleError: There are no tasks.
    """
    for kind, given, known in (("scripted engineer", engineers, SCRIPTED_NAMES), ("scaffold", scaffolds, SCAFFOLDS)):
        if not given:
            raise ConfigError(f"name at least one {kind}")
        for name in given:
            if name not in known:
                raise unknown_name(kind, name, known)
    bundles = dict(islice(load_tasks(tasks).items(), n_tasks))
    load_libraries()  # once a process, and no cost of a step
    load_before, began_s = os.getloadavg()[0], time.monotonic()
    made: dict[str, list[Trajectory]] = {}
    costs = []
    with open_backend(sandbox, workers=workers) as opened:
        for name in scaffolds:
            settings, max_turns = SCAFFOLDS[name]
            config = plan(
                bundles,
                [f"scripted:{engineer}" for engineer in engineers],
                scaffold=name,
                scaffold_options=dict(settings),
                rng_seed=rng_seed,
                episode={"max_turns": max_turns, "feedback": "none"},
                sandbox=sandbox,
            )
            progress = None if on_progress is None else _named(on_progress, name)
            costs.append(_measured(config, bundles, out / name, opened, progress))
            made[name] = list(read_trajectories(out / name))
    return ScaffoldBench(
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, {platform.machine()}",
        workers=workers,
        load_before=round(load_before, 2),
        load_after=round(os.getloadavg()[0], 2),
        n_tasks=len(bundles),
        wall_s=time.monotonic() - began_s,
        rows=tuple(_rows(made)),
        costs=tuple(costs),
    )


def _named(tell: Callable[[str, RolloutProgress], None], name: str) -> Callable[[RolloutProgress], None]:
    return lambda progress: tell(name, progress)


def _measured(
    config: RolloutConfig,
    bundles: Mapping[str, Bundle],
    out: Path,
    sandbox: Sandbox,
    on_progress: Callable[[RolloutProgress], None] | None,
) -> ScaffoldCost:
    """Runs one scaffold and returns what it took."""
    ledger = _Ledger()
    policies: dict[str, Policy] = {name: _TimedPolicy(open_policy(name), ledger) for name in config.policies}
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    run_rollouts(
        config,
        bundles,
        out,
        sandbox=_TimedSandbox(sandbox, ledger),
        policies=policies,
        open_grader=lambda bundle: _TimedGrader(bundle, ledger),
        in_flight=sandbox.workers,
        on_progress=on_progress,
    )
    wall_s, own_cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    made = list(read_trajectories(out))
    n_steps = max(1, sum(len(each.nodes) or len(each.steps) for each in made))
    spent = ledger.spent_s
    beyond_s = sum(each.wall_s - each.model_s for each in made) - spent["code"] - spent["grading"]
    return ScaffoldCost(
        scaffold=config.scaffold,
        n_steps=n_steps,
        wall_s=wall_s,
        overhead_cpu_s=(own_cpu_s - spent["model"] - spent["code_cpu"] - spent["grading_cpu"]) / n_steps,
        overhead_wall_s=max(0.0, beyond_s) / n_steps,
    )


def _rows(made: Mapping[str, Sequence[Trajectory]]) -> Iterator[ScaffoldRow]:
    reached = {
        (name, each.policy, each.task_id): sum(each.terms.get(medal, 0.0) for medal in _MEDALS)
        for name, run in made.items()
        for each in run
    }
    for name, run in made.items():
        for policy in dict.fromkeys(each.policy for each in run):
            mine = [each for each in run if each.policy == policy]
            gains = [
                reached[name, policy, each.task_id] - reached[REFERENCE, policy, each.task_id]
                for each in mine
                if name != REFERENCE and REFERENCE in made
            ]
            yield ScaffoldRow(
                scaffold=name,
                policy=policy,
                n_episodes=len(mine),
                n_valid=sum(each.grade is not None and each.grade.is_valid for each in mine),
                mean_reward=statistics.fmean(each.reward or 0.0 for each in mine),
                milestones=statistics.fmean(reached[name, policy, each.task_id] for each in mine),
                gain=statistics.fmean(gains) if gains else None,
                gain_error=statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else None,
                code_cpu_s=sum(step.exec_cpu_s or 0.0 for each in mine for step in each.steps),
            )


class _Ledger:
    """Adds up seconds by kind of work. Thread-safe."""

    def __init__(self) -> None:
        self.spent_s = {"model": 0.0, "code": 0.0, "code_cpu": 0.0, "grading": 0.0, "grading_cpu": 0.0}
        self._lock = threading.Lock()

    @contextmanager
    def adding(self, kind: str, clock: Callable[[], float]) -> Iterator[None]:
        """Adds what a clock moves on within a block."""
        began_s = clock()
        try:
            yield
        finally:
            with self._lock:
                self.spent_s[kind] += clock() - began_s


class _TimedPolicy:
    """A scripted policy whose CPU time is counted; it never waits, so the thread's clock is its own."""

    def __init__(self, policy: Policy, ledger: _Ledger) -> None:
        self.name = policy.name
        self._policy, self._ledger = policy, ledger

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the policy's reply."""
        with self._ledger.adding("model", time.thread_time):
            return await self._policy.generate(transcript, sampling)

    async def aclose(self) -> None:
        """Closes the policy."""
        await self._policy.aclose()


class _TimedGrader:
    """A grader whose grades are timed; looks at the form of a submission belong to the episode and are not."""

    def __init__(self, bundle: Bundle, ledger: _Ledger) -> None:
        self._ledger = ledger
        with ledger.adding("grading_cpu", time.thread_time):
            self._grader = Grader(bundle)

    def grade(self, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
        """Grades a submission."""
        with self._ledger.adding("grading", time.monotonic), self._ledger.adding("grading_cpu", time.thread_time):
            return self._grader.grade(submission, leaderboard=leaderboard)

    def check(self, submission: bytes | None) -> SubmissionProblem | None:
        """Returns what is wrong with the form of a submission."""
        return self._grader.check(submission)


class _TimedSandbox:
    """A sandbox whose executions are timed on the wall clock; the looks at the files that are no steps are in it."""

    def __init__(self, sandbox: Sandbox, ledger: _Ledger) -> None:
        self.name, self.capabilities, self.workers = sandbox.name, sandbox.capabilities, sandbox.workers
        self._sandbox, self._ledger = sandbox, ledger

    def start(self) -> Self:
        """Starts the sandbox."""
        self._sandbox.start()
        return self

    def execute(self, request: ExecRequest) -> ExecResult:
        """Runs code; see :class:`sandmle.sandbox.base.Sandbox`."""
        with self._ledger.adding("code", time.monotonic), self._ledger.adding("code_cpu", time.thread_time):
            return self._sandbox.execute(request)

    def close(self) -> None:
        """Closes the sandbox."""
        self._sandbox.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.close()
