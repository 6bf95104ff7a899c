"""``sandmle view``: the HTML report of a run."""

from pathlib import Path
from typing import Annotated

import typer

from sandmle.cli.output import JsonOption, print_json


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory made by `sandmle rollout`.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file; RUN/report.html by default.")] = None,
    tasks: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the tasks, for titles and descriptions.")
    ] = None,
    training: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also show the curve of this run of `sandmle train grpo`.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Writes the run as one HTML file with plots and readable trajectories, and prints its path.

    The file loads nothing from anywhere: open it in any browser, or mail it.

    Exit codes: 0 written; 2 the run cannot be read, or the file cannot be written.
    """
    from sandmle.viewer.html import write_html

    path = write_html(run, out or run / "report.html", tasks_dir=tasks, training=training)
    if as_json:
        print_json({"path": str(path), "bytes": path.stat().st_size})
    else:
        typer.echo(str(path))
