"""``sandmle import``: tasks from the layouts of other projects."""

from pathlib import Path
from typing import Annotated

import typer

from sandmle.cli.output import JsonOption


def command(
    path: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder that was exported to, or the release's data.")
    ],
    layout: Annotated[str, typer.Option("--format", metavar="NAME", help="mle-bench, sandmle-release or harbor.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of tasks to write to; none there is replaced.")],
    sandbox: Annotated[
        str, typer.Option(help="Sandbox backend in which the evaluators of the SandMLE release are run.")
    ] = "forkserver",
    as_json: JsonOption = False,
) -> None:
    """Reads tasks that `sandmle export` wrote, every byte checked, and repairs tasks of the published SandMLE release.

    The release keeps answers and evaluator in the public folder: they are moved out of it, the metric is found by
    running the evaluator in the sandbox, and what differs is refused. `sandmle validate` judges the result.

    Exit codes: 0 all were read; 1 some were refused; 2 bad input, or nothing can be written.
    """
    from sandmle.cli.export import finish
    from sandmle.formats import import_tasks, make_layout

    transfers = list(import_tasks(path, make_layout(layout), out, sandbox=sandbox))
    finish(transfers, "imported", out, as_json=as_json)
