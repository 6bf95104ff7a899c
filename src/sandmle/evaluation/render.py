"""A report as a rich table and as Markdown."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sandmle.evaluation.formats import (
    NOTHING,
    comparison_text,
    cost_text,
    counts_text,
    episodes_text,
    error_text,
    interval_text,
    number_text,
    percent_interval_text,
    percent_text,
    policy_text,
    score_text,
    seconds_text,
    suite_text,
)
from sandmle.evaluation.schema import PolicyReport, RunReport, TaskReport
from sandmle.evaluation.text import clean_line

RANKING_NOTE = (
    "reward: mean over tasks with 95 % interval, missing episodes and faults of ours as 0; medals: at least that medal"
)


def has_several_runs(report: RunReport) -> bool:
    """Tells whether rows must name their run."""
    return len(report.runs) > 1


def render_table(report: RunReport) -> RenderableType:
    """Returns the report for a terminal: results, costs, endings, comparisons, notes and problems."""
    several = has_several_runs(report)
    names = [clean_line(policy_text(row, with_run=several)) for row in report.policies]
    results = _rich_table(
        ["#", "policy", "n/N", "reward", "valid", ">median", "bronze+", "silver+", "gold"], n_text_columns=2
    )
    running = _rich_table(["policy", "turns", "runs", "run s (mean/median/p95)", "tokens in/out", "cost"])
    endings = _rich_table(["policy", "how its episodes ended"], n_text_columns=2)
    for name, row in zip(names, report.policies, strict=True):
        results.add_row(
            NOTHING if row.rank is None else str(row.rank),
            Text(name),
            episodes_text(row),
            interval_text(row.ranking_reward),
            *(percent_text(share) for share in (row.valid, row.above_median, *row.at_least.values())),
        )
        running.add_row(Text(name), *_running_cells(row))
        endings.add_row(Text(name), counts_text(row.endings))
    lines = [Text(RANKING_NOTE, style="dim")]
    suites = zip(names, map(suite_text, report.policies), strict=True)
    lines += [Text(clean_line(f"{name}: {text}")) for name, text in suites if text]
    lines += [Text(clean_line(comparison_text(each, with_run=several))) for each in report.comparisons]
    lines.append(Text(f"code execution, all policies: {execution_text(report)}"))
    lines += [Text(f"note: {clean_line(note)}", style="yellow") for note in report.notes]
    lines += [Text(f"left out: {clean_line(problem)}", style="red") for problem in report.problems]
    return Group(results, "", running, "", endings, "", *lines)


def execution_text(report: RunReport) -> str:
    """Writes how long code executions took, over all policies."""
    spread = report.execution_s
    if not spread.n:
        return "none"
    return (
        f"mean {number_text(spread.mean)} s, median {number_text(spread.median)} s, "
        f"95 % within {number_text(spread.p95)} s ({spread.n} executions)"
    )


def render_markdown(report: RunReport) -> str:
    """Returns the report as Markdown, with every interval and every task."""
    several = has_several_runs(report)
    names = [policy_text(row, with_run=several) for row in report.policies]
    parts = ["# Report", ""]
    parts += [
        f"- run `{_cell(run.label)}`: {run.n_recorded} of {run.n_planned} planned episodes recorded"
        for run in report.runs
    ]
    parts += [f"- **note**: {_cell(note)}" for note in report.notes]
    parts += [f"- **left out**: {_cell(problem)}" for problem in report.problems]
    parts += ["", "## Policies", "", f"{RANKING_NOTE[0].upper()}{RANKING_NOTE[1:]}.", ""]
    parts += _markdown_table(
        [
            *("#", "policy", "n/N", "missing", "ours", "reward", "reward in training", "valid", "above median"),
            *("at least bronze", "at least silver", "gold", "any medal by attempt"),
        ],
        [[_rank(row), name, *_result_cells(row)] for name, row in zip(names, report.policies, strict=True)],
    )
    terms = list(dict.fromkeys(term for row in report.policies for term in row.terms))
    parts += ["", "## Reward terms", ""]
    parts += _markdown_table(
        ["policy", *terms],
        [
            [name, *(interval_text(row.terms[term]) if term in row.terms else NOTHING for term in terms)]
            for name, row in zip(names, report.policies, strict=True)
        ],
    )
    parts += ["", "## Running", ""]
    parts += _markdown_table(
        ["policy", "turns", "executions", "execution s (mean / median / p95)", "tokens in / out", "cost", "endings"],
        [
            [name, *_running_cells(row), counts_text(row.endings)]
            for name, row in zip(names, report.policies, strict=True)
        ],
    )
    suites = [(name, suite_text(row)) for name, row in zip(names, report.policies, strict=True)]
    parts += ["", *(f"- {_cell(name)}: {text}" for name, text in suites if text)]
    parts += ["", f"Code executions over all policies: {execution_text(report)}."]
    if report.comparisons:
        parts += ["", "## Paired differences of reward", ""]
        parts += [f"- {_cell(comparison_text(each, with_run=several))}" for each in report.comparisons]
    parts += ["", "## Tasks", "", "Mean score of the graded attempts (best), graded/planned.", ""]
    parts += _markdown_table(
        ["task", "metric", "median", "bronze", "silver", "gold", *names],
        [_task_cells(task, report.policies) for task in report.tasks],
    )
    return "\n".join(parts) + "\n"


def _rank(row: PolicyReport) -> str:
    return NOTHING if row.rank is None else str(row.rank)


def _result_cells(row: PolicyReport) -> list[str]:
    shares = (row.valid, row.above_median, *row.at_least.values())
    return [
        episodes_text(row),
        str(row.n_missing),
        str(row.n_infrastructure),
        interval_text(row.ranking_reward),
        interval_text(row.reward),
        *(percent_interval_text(share) for share in shares),
        error_text(row.by_attempt["bronze"]),
    ]


def _running_cells(row: PolicyReport) -> list[str]:
    tokens = row.tokens
    return [
        number_text(row.turns.mean, 1),
        str(row.execution_s.n),
        seconds_text(row.execution_s),
        f"{tokens.prompt_tokens}/{tokens.completion_tokens}"
        if tokens.prompt_tokens + tokens.completion_tokens
        else NOTHING,
        cost_text(tokens, row.n_planned - row.n_missing),
    ]


def _task_cells(task: TaskReport, policies: Sequence[PolicyReport]) -> list[str]:
    borders = task.thresholds.scores() if task.thresholds else (None,) * 4
    direction = {"maximize": " (higher)", "minimize": " (lower)"}.get(str(task.direction), "")
    cells = {(cell.run, cell.policy): cell for cell in task.cells}
    texts = []
    for row in policies:
        cell = cells.get((row.run, row.policy))
        if cell is None:
            texts.append(NOTHING)
        elif cell.score is None:
            texts.append(f"{NOTHING} {cell.n_graded}/{cell.n_planned}")
        else:
            best = "" if cell.n_graded == 1 else f" ({score_text(cell.best_score)})"
            texts.append(f"{score_text(cell.score)}{best} {cell.n_graded}/{cell.n_planned}")
    return [task.task_id, f"{task.metric or NOTHING}{direction}", *(score_text(border) for border in borders), *texts]


def _rich_table(header: Sequence[str], *, n_text_columns: int = 1) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for index, name in enumerate(header):
        is_text = index < n_text_columns and name != "#"
        table.add_column(name, justify="left" if is_text else "right", no_wrap=not is_text)
    return table


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines]


def _cell(text: str) -> str:
    """Makes text that a model or a file chose harmless in Markdown: one line, no markup, no HTML, no table borders."""
    text = clean_line(text)
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}" if mark not in "<>" else {"<": "&lt;", ">": "&gt;"}[mark])
    return text
