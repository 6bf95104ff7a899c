"""Gathers what the HTML page shows: words for the header, plots, tasks with their titles, and the filters."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sandmle.errors import BundleError
from sandmle.evaluation.formats import (
    NOTHING,
    comparison_text,
    interval_text,
    number_text,
    plural,
    policy_text,
    score_text,
)
from sandmle.evaluation.runs import Run
from sandmle.evaluation.schema import PolicyReport, RunReport, TaskReport
from sandmle.evaluation.text import clean_line
from sandmle.records import Direction, Medal, TaskSpec
from sandmle.tasks import Bundle, find_bundles, load_bundle
from sandmle.viewer.curve import curve_plot, read_curve
from sandmle.viewer.plots import MAX_TASKS, RewardRow, ScoreRow, execution_plot, reward_plot, score_plot
from sandmle.viewer.sample import Source
from sandmle.viewer.transcript import cut

MAX_DESCRIPTION_CHARS = 6_000
MAX_DESCRIBED_TASKS = 60
TaskKey = tuple[str, str]


@dataclass(frozen=True)
class Tile:
    """One number at the top of the page."""

    name: str
    value: str
    note: str


@dataclass(frozen=True)
class Plot:
    """One figure."""

    title: str
    caption: str
    svg: Markup


@dataclass(frozen=True)
class TaskView:
    """One task in the list. ``medals`` counts policies by their best medal, best first."""

    report: TaskReport
    title: str
    facts: str
    size: str
    metric: str
    description: str
    medals: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Filter:
    """One choice above the trajectories: values with what is written for them."""

    name: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RunConfig:
    """The configuration of one run, as text."""

    label: str
    config: str


@dataclass(frozen=True)
class Page:
    """Everything on the page but the transcripts."""

    title: str
    summary: str
    report: RunReport
    several_runs: bool
    tiles: tuple[Tile, ...]
    terms: tuple[str, ...]
    comparisons: tuple[str, ...]
    plots: tuple[Plot, ...]
    tasks: tuple[TaskView, ...]
    tasks_note: str
    titles: dict[TaskKey, str]
    filters: tuple[Filter, ...]
    runs: tuple[RunConfig, ...]
    sources: tuple[Source, ...]


def build_page(runs: Sequence[Run], report: RunReport, tasks_dir: Path | None, training: Path | None = None) -> Page:
    """Gathers the page of some runs.

    Args:
        runs: The runs.
        report: Their report.
        tasks_dir: Folder of the tasks; a task that is not there, or has changed since, goes by its id.
        training: The training run that a policy comes from, whose curve is shown; None for none.

    Raises:
        ConfigError: There is no curve in that folder.
    """
    curve = (_curve(training),) if training is not None else ()
    bundles = _bundles(tasks_dir)
    tasks = tuple(_task_view(task, bundles, index) for index, task in enumerate(report.tasks))
    titles = {(view.report.task_id, view.report.task_hash): view.title for view in tasks}
    several = len(runs) > 1
    rank = {(row.run, row.policy): index for index, row in enumerate(report.policies)}
    sources = [(run, episode) for run in runs for episode in run.episodes.values()]
    sources.sort(key=lambda each: (each[1].task_id, rank[each[0].label, each[1].policy], each[1].attempt))
    return Page(
        title=clean_line(", ".join(run.label for run in runs)),
        summary=_summary(report, runs),
        report=report,
        several_runs=several,
        tiles=_tiles(report),
        terms=tuple(dict.fromkeys(term for row in report.policies for term in row.terms)),
        comparisons=tuple(clean_line(comparison_text(each, with_run=several)) for each in report.comparisons),
        plots=(*curve, *_plots(runs, report, tasks, several=several)),
        tasks=tasks,
        tasks_note=_tasks_note(report, tasks_dir, found=sum(view.facts != "" for view in tasks)),
        titles=titles,
        filters=_filters(sources, titles, several=several),
        runs=tuple(
            RunConfig(run.label, cut(json.dumps(run.config, indent=2, ensure_ascii=False), 40_000)) for run in runs
        ),
        sources=tuple(sources),
    )


def _bundles(tasks_dir: Path | None) -> dict[TaskKey, Bundle]:
    if tasks_dir is None:
        return {}
    bundles: dict[TaskKey, Bundle] = {}
    for root in find_bundles(tasks_dir):
        try:
            bundle = load_bundle(root, verify=False)
        except BundleError:
            continue  # a broken bundle among the tasks only costs its title here
        bundles[bundle.task_id, bundle.spec.task_hash] = bundle
    return bundles


def _task_view(report: TaskReport, bundles: dict[TaskKey, Bundle], index: int) -> TaskView:
    bundle = bundles.get((report.task_id, report.task_hash))
    medals = [cell.best_medal for cell in report.cells]
    counts = tuple(
        (str(medal), medals.count(medal)) for medal in (Medal.GOLD, Medal.SILVER, Medal.BRONZE) if medal in medals
    )
    title, facts, size, description = clean_line(report.task_id), "", "", ""
    if bundle is not None:
        spec = bundle.spec
        title, facts = clean_line(spec.title), clean_line(_facts(spec))
        size = f"{spec.n_train} training rows, {spec.n_public} public and {spec.n_private} private test rows"
        if index < MAX_DESCRIBED_TASKS:
            description = cut(_description(bundle), MAX_DESCRIPTION_CHARS)
    return TaskView(report, title, facts, size, _metric(report), description, counts)


def _facts(spec: TaskSpec) -> str:
    modalities = " + ".join(modality.replace("_", " ") for modality in spec.modalities)
    return f"{spec.domain} · {modalities} · {spec.task_kind.replace('_', ' ')} · {spec.metric}"


def _description(bundle: Bundle) -> str:
    try:
        return bundle.description()
    except (BundleError, UnicodeDecodeError):
        return ""  # the list of tasks is complete without it


def _metric(report: TaskReport) -> str:
    if report.thresholds is None or report.metric is None:
        return "No attempt was graded, so the thresholds are not known."
    better = "higher" if report.direction is Direction.MAXIMIZE else "lower"
    borders = zip(("median", "bronze", "silver", "gold"), report.thresholds.scores(), strict=True)
    thresholds = ", ".join(f"{name} {score_text(score)}" for name, score in borders)
    return f"{clean_line(report.metric)}, {better} is better; {thresholds} ({report.thresholds.preset} thresholds)"


def _summary(report: RunReport, runs: Sequence[Run]) -> str:
    def common(name: str) -> str:
        return ", ".join(sorted({getattr(row, name) for row in report.policies} - {""})) or "unknown"

    n_policies, n_tasks = len(report.policies), len(report.tasks)
    attempts = sorted({cell.n_planned for task in report.tasks for cell in task.cells})
    repeats = (
        plural(attempts[0], "attempt")
        if len(attempts) == 1
        else f"{attempts[0]} to {attempts[-1]} attempts"
        if attempts
        else "no attempts"
    )
    return clean_line(
        f"{plural(n_policies, 'policy')} at {plural(n_tasks, 'task')}, {repeats} each. "
        f"Scaffold: {common('scaffold')}; grammar: {common('grammar')}; "
        f"feedback: {common('feedback')}; reward preset: {common('reward_preset')}.{_rules(runs)}"
    )


def _rules(runs: Sequence[Run]) -> str:
    """Says what an episode was allowed, if the runs name it and agree."""
    rules = [run.config.get("episode") for run in runs]
    first = rules[0]
    if not isinstance(first, dict) or any(each != first for each in rules):
        return ""
    turns, seconds = first.get("max_turns"), first.get("step_wall_s")
    known = isinstance(turns, int) and isinstance(seconds, int | float)
    return f" At most {turns} turns an episode and {seconds:g} s a code execution." if known else ""


def _tiles(report: RunReport) -> tuple[Tile, ...]:
    finished = sum(row.n_finished for row in report.policies)
    planned = sum(row.n_planned for row in report.policies)
    spread = report.execution_s
    tiles = [Tile("Episodes finished", f"{finished} of {planned}", f"{plural(len(report.tasks), 'task')}")]
    if report.policies:
        best = report.policies[0]
        tiles.append(
            Tile(
                "Best policy",
                clean_line(policy_text(best, with_run=False)),
                f"reward {interval_text(best.ranking_reward)}",
            )
        )
    any_medal = sum(any(cell.best_medal is not Medal.NONE for cell in task.cells) for task in report.tasks)
    gold = sum(any(cell.best_medal is Medal.GOLD for cell in task.cells) for task in report.tasks)
    tiles.append(Tile("Tasks with a medal", f"{any_medal} of {len(report.tasks)}", f"gold at {gold}, by any policy"))
    tiles.append(
        Tile(
            "One code execution",
            f"{number_text(spread.mean)} s" if spread.n else NOTHING,
            f"mean of {spread.n}; median {number_text(spread.median)} s, 95 % within {number_text(spread.p95)} s",
        )
    )
    return tuple(tiles)


def _curve(training: Path) -> Plot:
    curve = read_curve(training)
    return Plot(
        f"Training: {clean_line(curve.label)}",
        "Dots: mean reward of the episodes of one train_step; line: the mean of the last six; dotted: share of valid "
        "submissions; diamonds: mean reward at tasks of held-out seeds.",
        Markup(curve_plot(curve)),
    )


def _plots(runs: Sequence[Run], report: RunReport, tasks: Sequence[TaskView], *, several: bool) -> tuple[Plot, ...]:
    rows = report.policies
    if not rows or not any(run.episodes for run in runs):
        return ()
    names = [policy_text(row, with_run=several) for row in rows]
    plots = [
        Plot(
            "Reward by policy",
            "Diamond: mean over tasks; line: its 95 % interval; dots: single tasks. Missing episodes count 0.",
            Markup(reward_plot([_reward_row(name, row, tasks) for name, row in zip(names, rows, strict=True)])),
        )
    ]
    scored = [view for view in tasks if any(cell.positions for cell in view.report.cells)]
    if scored:
        left_out = f" The first {MAX_TASKS} of {len(scored)} tasks." if len(scored) > MAX_TASKS else ""
        plots.append(
            Plot(
                "Scores against thresholds",
                "One mark for each graded attempt, on a scale on which median and medals stand at the same place in "
                f"every task; better is further right, and far scores are drawn at the border.{left_out}",
                Markup(score_plot([_score_row(view, rows) for view in scored[:MAX_TASKS]], names)),
            )
        )
    seconds: dict[str, list[float]] = {}
    for run in runs:
        for episode in run.episodes.values():
            for execution in episode.executions:
                seconds.setdefault(str(execution.status), []).append(execution.wall_s)
    if seconds:
        plots.append(
            Plot(
                "Seconds of one code execution",
                "Wall-clock seconds of every run of agent code, by how it ended.",
                Markup(execution_plot(seconds, report.execution_s)),
            )
        )
    return tuple(plots)


def _reward_row(name: str, row: PolicyReport, tasks: Sequence[TaskView]) -> RewardRow:
    by_task = [
        cell.reward.mean
        for view in tasks
        for cell in view.report.cells
        if (cell.run, cell.policy) == (row.run, row.policy) and cell.reward.mean is not None
    ]
    return RewardRow(name, row.ranking_reward, tuple(by_task))


def _score_row(view: TaskView, rows: Sequence[PolicyReport]) -> ScoreRow:
    positions = {(cell.run, cell.policy): cell.positions for cell in view.report.cells}
    return ScoreRow(view.title, tuple(positions.get((row.run, row.policy), ()) for row in rows))


def _tasks_note(report: RunReport, tasks_dir: Path | None, *, found: int) -> str:
    if tasks_dir is None:
        return "Titles and descriptions are shown when the folder of the tasks is given."
    missing = len(report.tasks) - found
    note = "Open a task for its thresholds, its description and its scores (± is the standard error over attempts)."
    return f"{note} {missing} of the tasks are not in the folder that was given, or have changed." if missing else note


def _filters(sources: Sequence[Source], titles: dict[TaskKey, str], *, several: bool) -> tuple[Filter, ...]:
    def options(values: list[Any]) -> tuple[tuple[str, str], ...]:
        return tuple((str(value), clean_line(str(value).replace("_", " "))) for value in dict.fromkeys(values))

    title_of = {task_id: title for (task_id, _), title in titles.items()}
    task_ids = dict.fromkeys(episode.task_id for _, episode in sources)
    medals = {episode.medal for _, episode in sources}
    filters = [
        Filter("policy", options(sorted(episode.policy for _, episode in sources))),
        Filter("task", tuple((task, title_of.get(task, task)) for task in task_ids)),
        Filter("medal", options([medal for medal in reversed(Medal) if medal in medals])),
        Filter("status", options(sorted(episode.status for _, episode in sources))),
    ]
    return (Filter("run", options([run.label for run, _ in sources])), *filters) if several else tuple(filters)
