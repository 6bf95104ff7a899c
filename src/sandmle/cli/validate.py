"""``sandmle validate``: the gate, on tasks that are already there."""

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.output import JsonOption, console, print_json, progress_line

if TYPE_CHECKING:
    from sandmle.authoring.validation import Judgement


def command(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A task, a folder of tasks, or what `generate` made.")],
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="Leave out the checks that run code; gate.json is not written.")
    ] = False,
    sandbox: Annotated[str, typer.Option(help="Sandbox backend for the gate's solver.")] = "forkserver",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Judges tasks, generated or hand-made, and writes each verdict to provenance/gate.json.

    A broken task is reported and does not stop the others.

    Exit codes: 0 all tasks are valid; 1 at least one is not; 2 there are no tasks, or no sandbox.
    """
    from sandmle.authoring.validation import validate_tasks
    from sandmle.tasks import find_bundles

    folders = find_bundles(path)
    found: dict[int, Judgement] = {}
    workers = workers or min(len(folders), len(os.sched_getaffinity(0)))
    with progress_line("tasks", len(folders), quiet=as_json or len(folders) == 1) as line:
        for index, judgement in validate_tasks(folders, sandbox=None if no_sandbox else sandbox, workers=workers):
            found[index] = judgement
            line.update(len(found), f"{sum(map(_is_valid, found.values()))} valid")
    judgements = [found[index] for index in sorted(found)]
    n_valid = sum(map(_is_valid, judgements))
    if as_json:
        print_json({"n_tasks": len(judgements), "n_valid": n_valid, "tasks": [each.to_dict() for each in judgements]})
    else:
        _print_table(judgements, no_sandbox=no_sandbox)
    if n_valid < len(judgements):
        raise typer.Exit(1)


def _is_valid(judgement: "Judgement") -> bool:
    return judgement.report is not None and judgement.report.verdict == "valid"


def _print_table(judgements: list["Judgement"], *, no_sandbox: bool) -> None:
    screen = console()
    losses: Counter[str] = Counter()
    for judgement in judgements:
        name = Path(judgement.path).name
        if judgement.report is None:
            losses["not a bundle"] += 1
            screen.print(f"{'invalid':<8} {name}: {judgement.error}", markup=False)
            continue
        lost = judgement.report.losses()
        losses.update(loss.check for loss in lost)
        passed = len(judgement.report.checks) - len(lost)
        counts = f"{passed} of {len(judgement.report.checks)} checks passed"
        screen.print(f"{judgement.report.verdict.value:<8} {name}: {counts}", markup=False)
        for loss in lost:
            screen.print(f"         {loss.check} ({loss.verdict.value}): {loss.message}", markup=False)
        if judgement.note:
            screen.print(f"         note: {judgement.note}", markup=False)
    n_valid = sum(map(_is_valid, judgements))
    screen.print(f"{n_valid} of {len(judgements)} tasks are valid", markup=False)
    for check, count in losses.most_common():
        screen.print(f"  lost to {check}: {count}", markup=False)
    if no_sandbox:
        screen.print("The checks that run code were left out, so no gate.json was written.", markup=False)
