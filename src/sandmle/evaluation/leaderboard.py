"""A leaderboard in the shape of the paper's tables: measured rows, and below them published ones, marked as quoted."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Literal

import yaml

from sandmle.evaluation.formats import NOTHING, cost_text, number_text, plural
from sandmle.evaluation.report import read_runs, report_of
from sandmle.evaluation.runs import Run
from sandmle.evaluation.schema import PolicyReport
from sandmle.evaluation.statistics import Estimate
from sandmle.evaluation.text import clean_line
from sandmle.records import Record

COLUMNS = ("valid", "above median", "bronze", "silver", "gold", "any medal", "any medal, any of k", "HumanRank")
SHARES = ("valid", "above_median", "bronze", "silver", "gold", "any_medal")
LEGEND = (
    "Percent of tasks; bronze, silver and gold count a task by its best medal, any medal is their sum. "
    "± is the standard error over attempts; missing episodes and faults count as failures. "
    "Quoted rows are published numbers (arXiv 2604.04872), not measured here; their tasks are not necessarily these."
)


class PublishedRow(Record):
    """One published result; None where the number is not known."""

    suite: str
    system: str
    training: str
    scaffold: str
    n_tasks: int
    valid: float | None = None
    above_median: float | None = None
    bronze: float | None = None
    silver: float | None = None
    gold: float | None = None
    any_medal: float | None = None
    human_rank: float | None = None
    basis: Literal["stated", "derived"]


class LeaderboardRow(Record):
    """One line, as it is written."""

    suite: str
    system: str
    scaffold: str
    feedback: str
    n_tasks: int
    n_attempts: int | None
    cells: tuple[str, ...]
    """As ``COLUMNS``."""
    cost: str
    note: str
    quoted: bool


class Leaderboard(Record):
    """All lines: by suite, measured ones first, best any medal first."""

    rows: tuple[LeaderboardRow, ...]
    notes: tuple[str, ...]


def published_rows() -> tuple[PublishedRow, ...]:
    """Returns the published numbers."""
    text = resources.files("sandmle.evaluation").joinpath("data/published.yaml").read_text(encoding="utf-8")
    return tuple(map(PublishedRow.model_validate, yaml.safe_load(text)))


def build_leaderboard(run_dirs: Sequence[Path]) -> Leaderboard:
    """Builds the leaderboard of some runs, with published rows for the suites that they measure on.

    Args:
        run_dirs: Run directories, made by ``sandmle eval`` or ``sandmle rollout``.

    Raises:
        ConfigError: None of them can be read.
    """
    runs, problems = read_runs(run_dirs)
    measured: list[tuple[str, float, LeaderboardRow]] = []
    notes = list(problems)
    for run in runs:
        report = report_of([run])
        notes += [f"{run.label}: {note}" for note in (*report.problems, *report.notes)]
        for row in report.policies:
            measured.append((_suite_of(run), row.by_attempt["bronze"].mean or 0.0, _measured(run, row)))
    rows: list[LeaderboardRow] = []
    published = published_rows()
    for suite in sorted({name for name, _, _ in measured}):
        own = sorted((each for each in measured if each[0] == suite), key=lambda each: (-each[1], each[2].system))
        rows += [row for _, _, row in own]
        rows += [_quoted(row) for row in published if row.suite == suite]
    return Leaderboard(rows=tuple(rows), notes=tuple(dict.fromkeys(map(clean_line, notes))))


def render_leaderboard_markdown(board: Leaderboard) -> str:
    """Returns the leaderboard as Markdown."""
    lines = ["# Leaderboard", "", LEGEND, ""]
    for suite in dict.fromkeys(row.suite for row in board.rows):
        head = ("system", "scaffold", "feedback", "tasks x attempts", *COLUMNS, "cost", "source")
        lines += [f"## {_cell(suite)}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row in board.rows:
            if row.suite == suite:
                cells = (row.system, row.scaffold, row.feedback, size_text(row), *row.cells, row.cost, row.note)
                lines.append(f"| {' | '.join(map(_cell, cells))} |")
        lines.append("")
    lines += [f"- {_cell(note)}" for note in board.notes]
    return "\n".join(lines).rstrip() + "\n"


def size_text(row: LeaderboardRow) -> str:
    """Writes on how much a row rests."""
    return str(row.n_tasks) if row.n_attempts is None else f"{row.n_tasks} x {row.n_attempts}"


def _cell(text: str) -> str:
    return clean_line(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") or NOTHING


def _suite_of(run: Run) -> str:
    suite = run.config.get("suite")
    return clean_line(str(suite.get("name"))) if isinstance(suite, dict) else "tasks"


def _measured(run: Run, row: PolicyReport) -> LeaderboardRow:
    total = max(1, row.n_planned)
    medals = [_percent(row.highest[name] / total) for name in ("bronze", "silver", "gold")]
    any_of = row.any_of_attempts["bronze"].mean
    rank = row.human_rank.get("code")
    finished = "" if row.n_finished == row.n_planned else f", {row.n_finished}/{row.n_planned} episodes finished"
    return LeaderboardRow(
        suite=_suite_of(run),
        system=clean_line(f"{row.policy} [ORACLE]" if row.is_oracle else row.policy),
        scaffold=clean_line(row.scaffold),
        feedback=clean_line(row.feedback),
        n_tasks=row.n_tasks,
        n_attempts=row.n_attempts,
        cells=(
            _with_error(row.by_attempt["valid"]),
            _with_error(row.by_attempt["above_median"]),
            *medals,
            _with_error(row.by_attempt["bronze"]),
            NOTHING if any_of is None else f"{_percent(any_of)} (k = {row.n_attempts})",
            NOTHING if rank is None else number_text(rank.mean, 3),
        ),
        cost=cost_text(row.tokens, row.n_planned - row.n_missing),
        note=clean_line(f"measured, run {run.label}{finished}"),
        quoted=False,
    )


def _quoted(row: PublishedRow) -> LeaderboardRow:
    shares = [getattr(row, name) for name in SHARES]
    return LeaderboardRow(
        suite=row.suite,
        system=row.system if row.training == "none" else f"{row.system}, {row.training}",
        scaffold=row.scaffold,
        feedback="",
        n_tasks=row.n_tasks,
        n_attempts=None,
        cells=(*(number_text(share, 1) for share in shares), NOTHING, number_text(row.human_rank, 3)),
        cost=NOTHING,
        note=f"QUOTED from the paper ({row.basis}), not measured; {plural(1, 'run')}",
        quoted=True,
    )


def _percent(share: float) -> str:
    return number_text(100 * share, 1)


def _with_error(estimate: Estimate) -> str:
    if estimate.mean is None:
        return NOTHING
    error = estimate.standard_error
    return _percent(estimate.mean) if error is None else f"{_percent(estimate.mean)} ± {_percent(error)}"
