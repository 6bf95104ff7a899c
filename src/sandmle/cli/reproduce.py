"""``sandmle reproduce``: is a task set what its author makes from the numbers in its provenance?"""

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.output import JsonOption, console, print_json, progress_line

if TYPE_CHECKING:
    from sandmle.authoring.reproduction import Reproduction


def command(
    path: Annotated[Path, typer.Argument(metavar="TASKS", help="A task, a folder of tasks, or what `generate` made.")],
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Makes tasks again from their provenance and compares every byte with what is on disk; nothing is written.

    Tasks of other library or author versions, and those that a model wrote, are left out and named.

    Exit codes: 0 all are the same; 1 some differ or were left out; 2 there are no tasks.
    """
    from sandmle.authoring.reproduction import reproduce_tasks
    from sandmle.tasks import find_bundles

    folders = find_bundles(path)
    found: dict[int, Reproduction] = {}
    counts: Counter[str] = Counter()
    workers = workers or min(len(folders), len(os.sched_getaffinity(0)))
    with progress_line("tasks", len(folders), quiet=as_json) as line:
        for index, reproduction in reproduce_tasks(folders, workers=workers):
            found[index] = reproduction
            counts[reproduction.outcome] += 1
            line.update(len(found), f"{counts['same']} the same")
    others = [found[index] for index in sorted(found) if found[index].outcome != "same"]
    if as_json:
        print_json({"n_tasks": len(folders), "n_same": counts["same"], "others": [each.to_dict() for each in others]})
    else:
        screen = console()
        for each in others:
            verb = "differs" if each.outcome == "differs" else "left out"
            screen.print(f"{Path(each.path).name} {verb}: {each.reason}", markup=False)
        screen.print(f"{counts['same']} of {len(folders)} tasks are the same, byte for byte", markup=False)
    if others:
        raise typer.Exit(1)
