"""``sandmle report``: tables of one run, or of several side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.output import JsonOption, console, error_console, print_json
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.evaluation.schema import RunReport

_WIDTH_OFF_TERMINAL = 200


def command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN..", help="Run directories made by `sandmle rollout`.")],
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the report as Markdown.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the HTML report.")] = None,
    tasks: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the tasks, for titles and descriptions in the HTML.")
    ] = None,
    leaderboard: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a leaderboard with the published rows: .html, else Markdown."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compares policies: rewards, medals and costs with 95 % intervals, over one or several runs.

    Lines and folders that cannot be read are named and left out, and the rest is reported.

    Exit codes: 0 all was read; 1 reported, but something was left out; 2 nothing can be read, or a file not written.
    """
    from sandmle.evaluation.render import render_markdown
    from sandmle.evaluation.report import build_report

    report = build_report(runs)
    if markdown is not None:
        _write(markdown, render_markdown(report))
    if html is not None:
        from sandmle.viewer.html import write_html

        write_html(runs, html, tasks_dir=tasks)
    if leaderboard is not None:
        _write_leaderboard(runs, leaderboard)
    if as_json:
        print_json(report)
    else:
        _print(report)
    for problem in report.problems if as_json else ():
        error_console().print(f"sandmle: left out: {problem}", markup=False, soft_wrap=True)
    for path in (markdown, html, leaderboard):
        if path is not None:
            error_console().print(f"wrote {path}", markup=False, soft_wrap=True)
    if report.problems:
        raise typer.Exit(1)


def print_report(runs: list[Path]) -> None:
    """Prints the tables of runs."""
    from sandmle.evaluation.report import build_report

    _print(build_report(runs))


def _print(report: "RunReport") -> None:
    from sandmle.evaluation.render import render_table

    screen = console()
    screen.print(render_table(report), width=None if screen.is_terminal else _WIDTH_OFF_TERMINAL)


def _write_leaderboard(runs: list[Path], path: Path) -> None:
    if path.suffix.lower() in (".html", ".htm"):
        from sandmle.viewer.leaderboard import write_leaderboard_html

        write_leaderboard_html(runs, path)
    else:
        from sandmle.evaluation.leaderboard import build_leaderboard, render_leaderboard_markdown

        _write(path, render_leaderboard_markdown(build_leaderboard(runs)))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; choose another file") from error
