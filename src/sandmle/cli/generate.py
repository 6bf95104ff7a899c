"""``sandmle generate``: makes a task set from seeds."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sandmle.cli.output import JsonOption, console, print_json, progress_line

if TYPE_CHECKING:
    from sandmle.authoring.funnel import ProposalRecord
    from sandmle.authoring.pipeline import GenerateProgress

_STAGE_WORDS = {
    "proposed": "proposed",
    "data_ran": "data ran",
    "evaluator_ran": "evaluator ran",
    "gate_passed": "gate passed",
}


def command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the task set; new, or entered with --resume.")],
    count: Annotated[int, typer.Option(min=1, help="Tasks to propose; the gate decides how many are kept.")],
    seeds: Annotated[str, typer.Option(metavar="all|ID,..", help="Seed tasks, taken in turn.")] = "all",
    rng_seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    author: Annotated[str, typer.Option(help="procedural, or package.module:Author.")] = "procedural",
    preset: Annotated[
        Literal["calibrated", "paper"], typer.Option(help="How milestones are set and what the gate asks of them.")
    ] = "calibrated",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes, or Ray actors; one a core of this machine by default.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Run on this Ray cluster: auto or host:port; DIR must be shared by its nodes."
        ),
    ] = None,
    sandbox: Annotated[str, typer.Option(help="Sandbox backend for the gate's solver.")] = "forkserver",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Makes tasks from seeds, puts them through the gate, and keeps those that pass.

    DIR gets tasks/, funnel.jsonl (one line a proposal, with the reason for each loss), run.json and summary.json. It is
    safe to kill at any moment. The same options give the same tasks, byte for byte, whatever the number of workers.

    Exit codes: 0 at least one task was kept; 1 none was; 2 bad input.
    """
    from sandmle.authoring.funnel import summarize
    from sandmle.authoring.pipeline import GenerateRequest, chosen_seeds, generate

    names = [name.strip() for name in seeds.split(",") if name.strip()]
    request = GenerateRequest(
        seeds=chosen_seeds(names), count=count, rng_seed=rng_seed, author=author, preset=preset, sandbox=sandbox
    )
    workers = workers or min(count, len(os.sched_getaffinity(0)))
    with progress_line("tasks", count, quiet=as_json) as line:
        records = generate(
            request,
            out,
            workers=workers,
            ray=ray,
            resume=resume,
            on_progress=lambda progress: line.update(progress.n_done, _note(progress)),
        )
    summary = summarize(records)
    if as_json:
        print_json({"out": str(out), **summary})
    else:
        _print_summary(out, summary, records)
    if not summary["n_accepted"]:
        raise typer.Exit(1)


def _note(progress: "GenerateProgress") -> str:
    from sandmle.authoring.funnel import summarize

    summary = summarize(progress.records)
    parts = [f"{summary['n_accepted']} kept"]
    parts += [f"{count} lost to {reason}" for reason, count in list(summary["losses"].items())[:3]]
    return ", ".join(parts)


def _print_summary(out: Path, summary: dict[str, Any], records: list["ProposalRecord"]) -> None:
    screen = console()
    for stage, count in summary["funnel"].items():
        screen.print(f"{_STAGE_WORDS[stage]:<14} {count:>5}", markup=False)
    for record in records:
        if not record.accepted:
            number = record.proposal.index + 1
            screen.print(
                f"lost {number} ({record.proposal.seed_id}) to {record.lost_to}: {record.reason}", markup=False
            )
    screen.print(
        f"kept {summary['n_accepted']} of {summary['n_proposed']} tasks in {out / 'tasks'}, "
        f"{summary['mean_cpu_s']:.2f} CPU s a task",
        markup=False,
    )
