"""``sandmle grade``: a submission's grade."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.output import JsonOption, console, error_console, print_json
from sandmle.errors import ConfigError
from sandmle.records import MILESTONES, GradeReport

if TYPE_CHECKING:
    from sandmle.grading import GradeLine


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="TASK SUBMISSION [TASK SUBMISSION ...]", help="Task folders, each with a CSV file."),
    ],
    leaderboard: Annotated[
        str, typer.Option("--leaderboard", help="Which hidden rows count: private (the grade) or public (feedback).")
    ] = "private",
    as_json: JsonOption = False,
) -> None:
    """Grades submissions. One that cannot be graded does not stop the others.

    Exit codes: 0 all graded, 1 a submission is invalid, 2 bad arguments, a broken task or a fault of the grader.
    """
    if len(paths) % 2:
        raise ConfigError(f"task {paths[-1]} has no submission; give TASK SUBMISSION pairs")
    if leaderboard not in ("private", "public"):
        raise ConfigError(f"no leaderboard {leaderboard!r}; give private or public")
    from sandmle.grading import grade_many

    lines = grade_many(
        zip(paths[::2], paths[1::2], strict=True), leaderboard="public" if leaderboard == "public" else "private"
    )
    if as_json:
        _print_json(lines)
    for line in lines:
        if line.report is None:
            error_console().print(f"sandmle: {line.error}", markup=False, highlight=False, soft_wrap=True)
        elif not as_json:
            for text in _lines(line.report):
                console().print(text, markup=False)
    raise typer.Exit(max(_exit_code(line) for line in lines))


def _print_json(lines: "list[GradeLine]") -> None:
    if len(lines) == 1:
        if lines[0].report is not None:
            print_json(lines[0].report)
        return
    print_json(
        [
            {"task": str(line.task), "submission": str(line.submission), "report": line.report, "error": line.error}
            for line in lines
        ]
    )


def _lines(report: GradeReport) -> list[str]:
    shown = [f"{report.task_id}: {report.status}: {report.message}"]
    if report.is_valid:
        borders = zip(MILESTONES, report.thresholds.scores(), strict=True)
        shown.append(f"  {report.direction}: " + ", ".join(f"{name} {score:.6g}" for name, score in borders))
    return shown


def _exit_code(line: "GradeLine") -> int:
    if line.report is None or line.report.status.is_ours:
        return 2
    return 0 if line.report.is_valid else 1
