"""``sandmle export``: tasks in the layouts of other projects."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sandmle.cli.output import JsonOption, console, error_console, print_json, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandmle.formats import Transfer


def command(
    tasks: Annotated[Path, typer.Argument(metavar="TASKS", help="A task, a folder of tasks, or what `generate` made.")],
    layout: Annotated[str, typer.Option("--format", metavar="NAME", help="mle-bench, sandmle-release or harbor.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to; a task that is there is not replaced.")],
    answers: Annotated[
        Literal["csv", "jsonl"], typer.Option(help="Form of the answers in MLE-bench; jsonl keeps every cell as text.")
    ] = "csv",
    as_json: JsonOption = False,
) -> None:
    """Writes tasks in another project's layout, with a grader that needs no sandmle installed.

    A task that the layout cannot express is refused with the reason, and the others are written.

    Exit codes: 0 all were written; 1 some were refused; 2 bad input, or nothing can be written.
    """
    from sandmle.formats import export_tasks, make_layout
    from sandmle.formats.mle_bench import MleBench

    chosen = MleBench(answers) if layout == MleBench.name else make_layout(layout)
    finish(list(export_tasks(tasks, chosen, out)), "exported", out, as_json=as_json, warning=chosen.warning)


def finish(transfers: "Sequence[Transfer]", verb: str, out: Path, *, as_json: bool, warning: str = "") -> None:
    """Prints what became of tasks, and exits with 1 when one was refused."""
    n_done = sum(not each.error for each in transfers)
    if as_json:
        print_json({"out": str(out), "n_done": n_done, "n_refused": len(transfers) - n_done, "tasks": list(transfers)})
    else:
        screen = console()
        for each in transfers:
            if each.error:
                screen.print(f"refused {printable(each.task)}: {printable(each.error)}", markup=False)
            for note in each.notes:
                screen.print(f"note on {printable(each.task)}: {printable(note)}", markup=False)
        screen.print(f"{verb} {n_done} of {len(transfers)} tasks to {out}", markup=False)
    if warning and n_done:
        error_console().print(f"sandmle: {warning}", markup=False, soft_wrap=True)
    if n_done < len(transfers):
        raise typer.Exit(1)
