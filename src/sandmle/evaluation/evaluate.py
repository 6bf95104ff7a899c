"""``evaluate``: a suite, policies and a scaffold become a run directory, with the benchmark's own reports beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandmle.evaluation.suites import Suite
from sandmle.evaluation.suites.base import SuiteTasks
from sandmle.evaluation.suites.recording import recording
from sandmle.policies import Policy
from sandmle.rollouts import RolloutConfig, SuiteInfo, plan, run_rollouts
from sandmle.rollouts.driver import OnProgress
from sandmle.sandbox.base import Sandbox


@dataclass(frozen=True)
class Evaluation:
    """A suite that was read, with the configuration of the run that measures on it."""

    suite: Suite
    tasks: SuiteTasks
    config: RolloutConfig


def prepare(
    suite: Suite,
    policies: Sequence[str],
    *,
    grader: str = "own",
    episode: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Evaluation:
    """Reads a suite and returns the run that is to be made.

    Args:
        suite: The benchmark.
        policies: Policies as :func:`sandmle.policies.open_policy` takes them.
        grader: Which grader the suite was opened with, for the record.
        episode: Fields of ``EpisodeConfig`` that replace the suite's own.
        **settings: Further fields of :class:`sandmle.rollouts.RolloutConfig`.

    Raises:
        SandmleError: Nothing of the suite can be used, or a setting is not allowed.
    """
    tasks = suite.load()
    info = SuiteInfo(name=suite.name, grader=grader, notes=tasks.notes, task_notes=dict(tasks.task_notes))
    rules = {**suite.episode, **(episode or {})}
    config = plan(tasks.bundles, policies, missing=tasks.missing, episode=rules, suite=info, **settings)
    return Evaluation(suite, tasks, config)


def evaluate(
    evaluation: Evaluation,
    out: Path,
    *,
    sandbox: Sandbox,
    policies: Mapping[str, Policy] | None = None,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Runs all episodes that the run directory still lacks and writes the benchmark's own reports.

    Args:
        evaluation: What to run.
        out: The run directory; it also gets ``submissions/``, the graded files by content.
        sandbox: A started sandbox.
        policies: Open policies by name, instead of those that the configuration names.
        resume: Go on with a run that is there; tasks that have come since are run too.
        on_progress: Told after every episode.

    Returns:
        The run's summary, with ``reports``, the files written for the benchmark's own tools.

    Raises:
        ConfigError: The folder cannot be used, or a name is unknown.
    """
    summary = run_rollouts(
        evaluation.config,
        evaluation.tasks.bundles,
        out,
        sandbox=sandbox,
        policies=policies,
        missing=evaluation.tasks.missing,
        open_grader=recording(evaluation.suite.open_grader, out),
        resume=resume,
        on_progress=on_progress,
    )
    return {**summary, "reports": [str(path) for path in evaluation.suite.write_reports(out)]}
