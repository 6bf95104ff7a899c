"""``sandmle quickstart``: the whole loop, small and offline: make tasks, let engineers work on them, report."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.output import JsonOption, console, print_json, progress_line
from sandmle.errors import AuthoringError

if TYPE_CHECKING:
    from sandmle.authoring.funnel import ProposalRecord
    from sandmle.evaluation.imports import ImportShare
    from sandmle.evaluation.schema import RunReport

SEEDS = (
    "spaceship-titanic",
    "playground-series-s3e18",
    "movie-review-sentiment-analysis-kernels-only",
    "learning-agency-lab-automated-essay-scoring-2",
    "google-quest-challenge",
    "invasive-species-monitoring",
    "plant-seedlings-classification",
    "petfinder-pawpularity-score",
    "statoil-iceberg-classifier-challenge",
    "ventilator-pressure-prediction",
    "predict-volcanic-eruptions-ingv-oe",
    "tensorflow-speech-recognition-challenge",
)
"""Twelve seeds over tables, text, images, and series."""

_RNG_SEED = 2
_ATTEMPTS = 2
_WIDTH_OFF_TERMINAL = 200


def command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where tasks, trajectories and the report go.")] = Path(
        "runs/quickstart"
    ),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Runs the whole loop on 12 tasks from 12 seeds: make, check, solve, grade, report.

    Five scripted engineers of rising skill work on every task twice, in the sandbox; no model and no network needed.
    DIR may be that of a stopped quickstart, which then goes on where it was.

    Exit codes: 0 done; 2 bad input, or this machine cannot isolate code (see `sandmle doctor`).
    """
    from sandmle.authoring.pipeline import GenerateRequest, generate
    from sandmle.evaluation.imports import measure_import_share
    from sandmle.evaluation.report import build_report
    from sandmle.policies.scripted import LADDER
    from sandmle.rollouts import load_tasks, plan, read_trajectories, run_rollouts
    from sandmle.sandbox import open_sandbox
    from sandmle.sandbox.config import ForkserverConfig
    from sandmle.viewer.html import write_html

    start_s = time.monotonic()
    n_workers = workers or len(os.sched_getaffinity(0))
    task_set, run = out / "taskset", out / "run"
    request = GenerateRequest(seeds=SEEDS, count=len(SEEDS), rng_seed=_RNG_SEED)
    with progress_line("making tasks", len(SEEDS), quiet=as_json) as line:
        records = generate(
            request,
            task_set,
            workers=n_workers,
            resume=task_set.exists(),
            on_progress=lambda progress: line.update(progress.n_done),
        )
    lost = [record for record in records if not record.accepted]
    if len(lost) == len(records):
        first = lost[0]
        kind = "by a fault of this machine (see `sandmle doctor`)" if first.is_fault else "to the gate"
        raise AuthoringError(
            f"all {len(records)} tasks were lost, the first {kind}, {first.lost_to}: {first.reason}; "
            f"the others are in {task_set / 'funnel.jsonl'}"
        )
    bundles = load_tasks(task_set)
    policies = [f"scripted:{name}" for name in LADDER]
    config = plan(bundles, policies, attempts=_ATTEMPTS, rng_seed=_RNG_SEED)
    total = len(config.tasks) * len(policies) * _ATTEMPTS
    with open_sandbox(ForkserverConfig(workers=n_workers)) as sandbox:
        with progress_line("episodes", total, quiet=as_json) as line:
            run_rollouts(
                config,
                bundles,
                run,
                sandbox=sandbox,
                resume=run.exists(),
                on_progress=lambda progress: line.update(
                    progress.n_done,
                    f"mean reward {progress.mean_reward or 0:.2f}, {progress.executions_per_s:.1f} executions/s",
                ),
            )
        imports = measure_import_share(read_trajectories(run), sandbox)
    report = build_report([run])
    page = write_html(run, out / "report.html", tasks_dir=task_set / "tasks")
    elapsed_s = time.monotonic() - start_s
    if as_json:
        print_json(
            {
                "out": str(out),
                "html": str(page),
                "elapsed_s": round(elapsed_s, 1),
                "n_tasks": len(bundles),
                "imports": imports and {**imports.to_dict(), "share": imports.share},
                "report": report,
            }
        )
        return
    _print(report, imports, out, page, lost, elapsed_s)


def _print(
    report: "RunReport",
    imports: "ImportShare | None",
    out: Path,
    page: Path,
    lost: list["ProposalRecord"],
    elapsed_s: float,
) -> None:
    from sandmle.evaluation.render import render_table

    screen = console()
    screen.print()
    screen.print(render_table(report), width=None if screen.is_terminal else _WIDTH_OFF_TERMINAL)
    if imports is not None:
        screen.print(
            f"imports: {imports.share:.1%} of the execution time ({imports.mean_import_s:.3f} s of "
            f"{imports.mean_wall_s:.2f} s, over a sample of {imports.n_executions} executions)",
            markup=False,
        )
    for record in lost:
        screen.print(f"task lost: {record.proposal.seed_id}, {record.lost_to}: {record.reason}", markup=False)
    screen.print(f"tasks kept: {len(SEEDS) - len(lost)} of {len(SEEDS)}; this took {elapsed_s:.0f} s", markup=False)
    screen.print()
    screen.print(f"Every episode, readable:   open {page}", markup=False)
    screen.print(f"Work on a task yourself:   sandmle play {out / 'taskset/tasks' / _first_task(report)}", markup=False)
    screen.print("Make your own task set:    sandmle generate --seeds all --count 60 --out tasks", markup=False)


def _first_task(report: "RunReport") -> str:
    return report.tasks[0].task_id if report.tasks else "TASK"
