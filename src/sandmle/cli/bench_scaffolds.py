"""``sandmle bench scaffolds``: scripted engineers under the four scaffolds, on the same tasks."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.output import JsonOption, ProgressLine, console, print_json, progress_line
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.evaluation.scaffold_bench import ScaffoldBench
    from sandmle.rollouts import RolloutProgress

_ENGINEERS = ("linear", "explorer")
_SPARE = 1.25
"""Proposals for each task that is wanted, since the gate refuses some."""


def command(
    tasks: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Task set; without one, fresh tasks are made.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many tasks.")] = 20,
    engineer: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Scripted engineer; repeatedly. [linear, explorer]")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder to keep tasks and runs in.")] = None,
    sandbox: Annotated[str, typer.Option(help="Sandbox backend: see `sandmle doctor`.")] = "forkserver",
    workers: Annotated[int, typer.Option(min=1, help="Executions, and episodes, at the same time.")] = 2,
    rng_seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 7,
    as_json: JsonOption = False,
) -> None:
    """Runs scripted engineers under react, mle_agent, aide and aira: what they reach, and what a step costs.

    Model time is what the engineers take to write a reply, code time that of the scripts; what a step costs beyond both
    is the work of scaffold, episode and grading.

    Exit codes: 0 every episode is valid, no search does worse than react by more than a standard error, and a step
    costs at most 20 ms of CPU beyond model and code; 1 something of that is not so; 2 bad input.
    """
    from sandmle.evaluation.scaffold_bench import SCAFFOLDS, run_scaffold_bench

    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"--out {out} is there already; give a new folder")
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(TemporaryDirectory(prefix="sandmle-bench-")))
        source = tasks or _make_tasks(folder / "tasks", count, rng_seed, workers, quiet=as_json)
        shown = stack.enter_context(_Shown(tuple(SCAFFOLDS), quiet=as_json))
        report = run_scaffold_bench(
            source,
            folder / "runs",
            n_tasks=count,
            engineers=tuple(engineer or _ENGINEERS),
            workers=workers,
            sandbox=sandbox,
            rng_seed=rng_seed,
            on_progress=shown.update,
        )
    problems = report.problems()
    if as_json:
        print_json({**report.to_dict(), "problems": problems})
    else:
        _show(report, problems)
    raise typer.Exit(1 if problems else 0)


def _make_tasks(out: Path, count: int, rng_seed: int, workers: int, *, quiet: bool) -> Path:
    from sandmle.authoring.pipeline import GenerateRequest, chosen_seeds, generate

    request = GenerateRequest(seeds=chosen_seeds(["all"]), count=round(_SPARE * count), rng_seed=rng_seed)
    with progress_line("tasks", request.count, quiet=quiet) as line:
        generate(request, out, workers=workers, on_progress=lambda progress: line.update(progress.n_done))
    return out


class _Shown(ExitStack):
    """One progress line for the episodes of all scaffolds."""

    def __init__(self, scaffolds: tuple[str, ...], *, quiet: bool) -> None:
        super().__init__()
        self._scaffolds, self._quiet = scaffolds, quiet
        self._line: ProgressLine | None = None

    def update(self, scaffold: str, progress: "RolloutProgress") -> None:
        """Shows how far a scaffold is."""
        if self._line is None:
            total = len(self._scaffolds) * progress.n_episodes
            self._line = self.enter_context(progress_line("episodes", total, quiet=self._quiet))
        self._line.update(self._scaffolds.index(scaffold) * progress.n_episodes + progress.n_done, scaffold)


def _show(report: "ScaffoldBench", problems: list[str]) -> None:
    screen = console()
    screen.print(
        f"{'scaffold':<10} {'engineer':<17} {'valid':>7} {'reward':>7} {'milestones':>10} {'beyond react':>15} "
        f"{'code CPU s':>10}",
        markup=False,
    )
    for row in report.rows:
        error = "" if row.gain_error is None else f" ± {row.gain_error:.2f}"
        gain = "" if row.gain is None else f"{row.gain:+.2f}{error}"
        valid = f"{row.n_valid}/{row.n_episodes}"
        screen.print(
            f"{row.scaffold:<10} {row.policy:<17} {valid:>7} {row.mean_reward:>7.3f} {row.milestones:>10.2f} "
            f"{gain:>15} {row.code_cpu_s:>10.0f}",
            markup=False,
        )
    for cost in report.costs:
        screen.print(
            f"{cost.scaffold}: {cost.n_steps} steps in {cost.wall_s:.0f} s; beyond model, code and grading a step "
            "costs "
            f"{1000 * cost.overhead_cpu_s:.1f} ms of CPU and {1000 * cost.overhead_wall_s:.1f} ms on the wall clock",
            markup=False,
        )
    screen.print(
        f"{report.n_tasks} tasks, {len(report.costs)} scaffolds, {report.workers} workers: {report.wall_s:.0f} s "
        f"({report.date}; {report.machine}; load {report.load_before:g} before and {report.load_after:g} after)",
        markup=False,
    )
    for problem in problems:
        screen.print(f"problem: {problem}", markup=False)
