"""``sandmle report``: tables of one run, of several side by side, or the data card of a task set."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.output import JsonOption, console, error_console, print_json, progress_line
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.evaluation.schema import RunReport
    from sandmle.evaluation.taskset.retraining import RetrainingSummary

_WIDTH_OFF_TERMINAL = 200


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN..|TASKSET", help="Runs made by `sandmle rollout`, or what `sandmle generate` made."
        ),
    ],
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the report as Markdown.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the HTML report.")] = None,
    tasks: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the tasks, for titles and descriptions in the HTML.")
    ] = None,
    leaderboard: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a leaderboard with the published rows: .html, else Markdown."),
    ] = None,
    retrain: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Of a task set: train plain solvers twice on N tasks, to see if medals last."
        ),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Compares policies: rewards, medals and costs with 95 % intervals, over one or several runs.

    Of a task set it prints the data card: the funnel, what the tasks are of, how hard, how long, how alike.

    Lines and folders that cannot be read are named and left out, and the rest is reported.

    Exit codes: 0 all was read; 1 reported, but something was left out; 2 nothing can be read, or a file not written.
    """
    if len(runs) == 1 and _holds_tasks(runs[0]):
        _report_tasks(runs[0], markdown, html, retrain, as_json=as_json)
        return
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


def _holds_tasks(path: Path) -> bool:
    """Tells what ``generate``, ``import`` or ``split`` wrote from a run directory."""
    return (path / "funnel.jsonl").is_file() or (not (path / "run.json").exists() and any(path.glob("*/task.yaml")))


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


def _report_tasks(path: Path, markdown: Path | None, html: Path | None, n_retrained: int, *, as_json: bool) -> None:
    from sandmle.evaluation.taskset import build_card, card_markdown

    card = build_card(path, retraining=_retrain(path, n_retrained, quiet=as_json) if n_retrained else None)
    text = card_markdown(card)
    if markdown is not None:
        _write(markdown, text)
    if html is not None:
        from sandmle.viewer.card import write_card_html

        write_card_html(card, path, html)
    if as_json:
        print_json(card)
    else:
        console().print(text.partition("\n## Tasks\n")[0].rstrip(), markup=False, soft_wrap=True)
    for each in (markdown, html):
        if each is not None:
            error_console().print(f"wrote {each}", markup=False, soft_wrap=True)
    if card.problems:
        raise typer.Exit(1)


def _retrain(path: Path, n_tasks: int, *, quiet: bool) -> "RetrainingSummary":
    from sandmle.evaluation.taskset import retrain, summarize_retraining
    from sandmle.evaluation.taskset.card import family_of
    from sandmle.tasks import find_bundles, load_bundle

    folders = find_bundles(path)
    chosen = folders[:: max(1, len(folders) // n_tasks)][:n_tasks]
    families = {folder.name: family_of(load_bundle(folder, verify=False)) for folder in chosen}
    results = []
    with progress_line("retrained", len(chosen), quiet=quiet) as line:
        for result in retrain(chosen, families=families, workers=min(len(chosen), len(os.sched_getaffinity(0)))):
            results.append(result)
            line.update(len(results))
    return summarize_retraining(results)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; choose another file") from error
