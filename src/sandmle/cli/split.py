"""``sandmle split``: train and validation tasks that share no seed."""

from pathlib import Path
from typing import Annotated

import typer

from sandmle.cli.output import JsonOption, console, error_console, print_json, progress_line


def command(
    tasks: Annotated[Path, typer.Argument(metavar="TASKS", help="A folder of tasks, or what `generate` made.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder: split.json, and links in train/, validation/.")],
    validation: Annotated[
        float, typer.Option(min=0.001, max=0.999, metavar="SHARE", help="Share of the seeds that go to validation.")
    ] = 0.2,
    rng_seed: Annotated[int, typer.Option(help="Decides among like seeds.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Divides tasks by their seeds, evenly over modality and kind, and lists ids and hashes of both sides.

    Tasks that are broken, tasks from MLE-bench-Lite and tasks with the training rows of another are left out and named;
    those whose seed MLE-Dojo has too are marked. The same tasks and options give the same split.

    Exit codes: 0 done; 1 done, but tasks were left out; 2 bad input.
    """
    from sandmle.authoring.splitting import SIDES, split_table, write_split
    from sandmle.tasks import find_bundles

    n_tasks = len(find_bundles(tasks))
    with progress_line("tasks", n_tasks, quiet=as_json) as line:
        split = write_split(tasks, out, validation_share=validation, rng_seed=rng_seed, on_progress=line.update)
    table = split_table(split)
    if as_json:
        counts = {side: len(split.side(side)) for side in SIDES}
        print_json({"out": str(out), **counts, "left_out": list(split.left_out), "strata": table})
    else:
        screen = console()
        screen.print(
            f"{'modality':<14} {'kind':<24} {'train':>6} {'seeds':>6} {'valid.':>7} {'seeds':>6}", markup=False
        )
        for row in table:
            screen.print(
                f"{row['modality']:<14} {row['task_kind']:<24} {row['train']:>6} {row['train_seeds']:>6} "
                f"{row['validation']:>7} {row['validation_seeds']:>6}",
                markup=False,
            )
        n_dojo = sum(entry.in_mle_dojo for side in SIDES for entry in split.side(side))
        screen.print(
            f"{len(split.train)} tasks to train, {len(split.validation)} to validate, no common seed; "
            f"{n_dojo} have a seed that MLE-Dojo has too",
            markup=False,
        )
    for reason in split.left_out:
        error_console().print(f"sandmle: left out: {reason}", markup=False, soft_wrap=True)
    if split.left_out:
        raise typer.Exit(1)
