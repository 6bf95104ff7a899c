"""Builds the report of run directories: every policy over all tasks, every task with all policies."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from sandmle.errors import ConfigError
from sandmle.evaluation.formats import plural
from sandmle.evaluation.milestones import position
from sandmle.evaluation.runs import Episode, Execution, Run, read_run
from sandmle.evaluation.schema import (
    MISSING,
    Cell,
    Comparison,
    PolicyReport,
    RunInfo,
    RunReport,
    TaskReport,
    TokenTotals,
)
from sandmle.evaluation.statistics import (
    Estimate,
    estimate_any_of,
    estimate_attempts,
    estimate_mean,
    estimate_share,
    paired_difference,
    ranks,
    spread,
)
from sandmle.records import BoardRank, ExecStatus, GradeReport, Medal, TrajectoryStatus

MEDALS = (Medal.NONE, Medal.BRONZE, Medal.SILVER, Medal.GOLD)
TaskKey = tuple[str, str]
"""A task's id and hash: runs are compared only on tasks that are the same to the byte."""
Value = TypeVar("Value")


class _Slots:
    """The planned episodes of one policy in one run, each with its record if there is one."""

    def __init__(self, run: Run, policy: str) -> None:
        self.run = run.label
        self.policy = policy
        self.each: list[tuple[TaskKey, int, Episode | None]] = [
            ((task, run.task_hashes.get(task, "")), attempt, run.episodes.get((policy, task, attempt)))
            for task, attempt in run.planned[policy]
        ]
        self.episodes = [episode for _, _, episode in self.each if episode is not None]
        self.executions = [execution for episode in self.episodes for execution in episode.executions]

    def by_task(self, value: Callable[[Episode | None], Value]) -> dict[TaskKey, list[Value]]:
        """Returns a value of every planned episode, missing ones included."""
        result: dict[TaskKey, list[Value]] = {}
        for task, _, episode in self.each:
            result.setdefault(task, []).append(value(episode))
        return result

    def share(self, holds: Callable[[Episode], bool]) -> Estimate:
        """Estimates the share of planned episodes with a property; those without a reward do not have it."""
        return estimate_share(
            self.by_task(lambda episode: episode is not None and episode.reward is not None and holds(episode))
        )

    def rewarded_mean(self, value: Callable[[Episode], float]) -> Estimate:
        """Estimates a mean over the episodes that have a reward."""
        values: dict[TaskKey, list[float]] = {}
        for task, _, episode in self.each:
            if episode is not None and episode.reward is not None:
                values.setdefault(task, []).append(value(episode))
        return estimate_mean(values)


def build_report(run_dirs: Sequence[Path]) -> RunReport:
    """Builds the report of one or several run directories.

    Args:
        run_dirs: The folders. One that cannot be read becomes a problem, unless none can be read.

    Raises:
        ConfigError: None of the folders can be read.
    """
    return report_of(*read_runs(run_dirs))


def read_runs(run_dirs: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Reads the run directories that can be read, and says what is wrong with the others.

    Raises:
        ConfigError: None of the folders can be read.
    """
    runs: list[Run] = []
    problems: list[str] = []
    for path, label in zip(run_dirs, _labels(run_dirs), strict=True):
        try:
            runs.append(read_run(path, label))
        except ConfigError as error:
            problems.append(str(error))
    if not runs:
        raise ConfigError(problems[0] if problems else "no run directory given; name one made by `sandmle rollout`")
    return runs, problems


def report_of(runs: Sequence[Run], problems: Sequence[str] = ()) -> RunReport:
    """Builds the report of runs that were read."""
    slots = [_Slots(run, policy) for run in runs for policy in run.planned]
    unranked = [_policy_report(each) for each in slots]
    order = ranks([report.ranking_reward.mean for report in unranked])
    pairs = [(report.replace(rank=rank), each) for report, rank, each in zip(unranked, order, slots, strict=True)]
    pairs.sort(key=lambda pair: (pair[0].rank is None, pair[0].rank or 0, pair[0].policy, pair[0].run))
    executions = [execution for each in slots for execution in each.executions]
    notes = [note for run in runs for note in run.notes]
    return RunReport(
        runs=tuple(
            RunInfo(
                label=run.label,
                path=str(run.path),
                n_planned=sum(len(plan) for plan in run.planned.values()),
                n_recorded=len(run.episodes),
            )
            for run in runs
        ),
        policies=tuple(report for report, _ in pairs),
        comparisons=tuple(_comparison(first, second) for (_, first), (_, second) in pairwise(pairs)),
        tasks=_task_reports([each for _, each in pairs]),
        execution_s=spread([execution.wall_s for execution in executions]),
        oracle=any(report.is_oracle for report in unranked),
        problems=(*problems, *(problem for run in runs for problem in run.problems)),
        notes=(*notes, *_cautions(unranked, slots)),
    )


def _labels(paths: Sequence[Path]) -> list[str]:
    names = [path.resolve().name for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.resolve().parent.name}/{path.resolve().name}" for path in paths]
    return [name if names.count(name) == 1 else f"{name} ({index + 1})" for index, name in enumerate(names)]


def _policy_report(slots: _Slots) -> PolicyReport:
    episodes = slots.episodes
    rewarded = [episode for episode in episodes if episode.reward is not None]
    terms = list(dict.fromkeys(name for episode in rewarded for name in episode.terms))
    highest = Counter(Medal.NONE if episode is None else episode.medal for _, _, episode in slots.each)
    endings = Counter(str(episode.status) for episode in episodes)
    endings[MISSING] = len(slots.each) - len(episodes)
    return PolicyReport(
        run=slots.run,
        policy=slots.policy,
        scaffold=_common(episode.scaffold for episode in episodes),
        grammar=_common(episode.grammar for episode in episodes),
        feedback=_common(episode.feedback for episode in episodes),
        reward_preset=_common(episode.reward_preset for episode in episodes),
        rank=None,
        n_planned=len(slots.each),
        n_finished=len(rewarded),
        n_missing=endings[MISSING],
        n_infrastructure=len(episodes) - len(rewarded),
        n_tasks=len({task for task, _, _ in slots.each}),
        ranking_reward=estimate_mean(slots.by_task(_ranking_reward)),
        reward=slots.rewarded_mean(_ranking_reward),
        terms={name: slots.rewarded_mean(partial(_term, name)) for name in terms},
        valid=slots.share(lambda episode: episode.score is not None),
        above_median=slots.share(lambda episode: episode.grade is not None and episode.grade.above_median),
        at_least={str(medal): slots.share(partial(_reaches, medal)) for medal in MEDALS[1:]},
        highest={str(medal): highest[medal] for medal in MEDALS},
        by_attempt={name: _by_attempt(slots, holds) for name, holds in REACHED.items()},
        n_attempts=_n_attempts(slots),
        any_of_attempts={name: _any_of_attempts(slots, holds) for name, holds in REACHED.items()},
        human_rank=_human_rank(slots),
        seconds=math.fsum(episode.wall_s for episode in episodes),
        endings={name: endings[name] for name in (*TrajectoryStatus, MISSING) if endings[name]},
        turns=spread([float(episode.n_turns) for episode in episodes]),
        episode_s=spread([episode.wall_s for episode in episodes]),
        execution_s=spread([execution.wall_s for execution in slots.executions]),
        executions=_execution_counts(slots.executions),
        tokens=_token_totals(episodes),
    )


def _common(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


def _term(name: str, episode: Episode) -> float:
    return episode.terms.get(name, 0.0)


def _ranking_reward(episode: Episode | None) -> float:
    return 0.0 if episode is None or episode.reward is None else episode.reward


def _reaches(medal: Medal, episode: Episode | None) -> bool:
    return episode is not None and MEDALS.index(episode.medal) >= MEDALS.index(medal)


def _is_valid(episode: Episode | None) -> bool:
    return episode is not None and episode.reward is not None and episode.score is not None


def _is_above_median(episode: Episode | None) -> bool:
    return _is_valid(episode) and episode is not None and episode.grade is not None and episode.grade.above_median


REACHED: Mapping[str, Callable[[Episode | None], bool]] = MappingProxyType(
    {
        "valid": _is_valid,
        "above_median": _is_above_median,
        **{str(medal): partial(_reaches, medal) for medal in MEDALS[1:]},
    }
)
"""What a benchmark counts; an episode that is missing or has no reward reaches nothing."""


def _by_attempt(slots: _Slots, holds: Callable[[Episode | None], bool]) -> Estimate:
    by_attempt: dict[int, list[bool]] = {}
    for _, attempt, episode in slots.each:
        by_attempt.setdefault(attempt, []).append(holds(episode))
    return estimate_attempts([sum(won) / len(won) for _, won in sorted(by_attempt.items())])


def _n_attempts(slots: _Slots) -> int:
    return min(Counter(task for task, _, _ in slots.each).values(), default=0)


def _any_of_attempts(slots: _Slots, holds: Callable[[Episode | None], bool]) -> Estimate:
    return estimate_any_of(slots.by_task(holds), max(1, _n_attempts(slots)))


def _human_rank(slots: _Slots) -> dict[str, Estimate]:
    if not any(episode.grade is not None and episode.grade.board_ranks for episode in slots.episodes):
        return {}
    return {
        variant: estimate_mean(slots.by_task(partial(_rank_share, share))) for variant, share in HUMAN_RANKS.items()
    }


def _rank_share(share: Callable[[BoardRank], float], episode: Episode | None) -> float:
    grade = episode.grade if episode is not None and episode.reward is not None else None
    if grade is None or not grade.board_ranks:
        return 0.0
    return math.fsum(share(rank) for rank in grade.board_ranks) / len(grade.board_ranks)


HUMAN_RANKS: Mapping[str, Callable[[BoardRank], float]] = MappingProxyType(
    {
        "code": lambda rank: (rank.n_teams - rank.position + 1) / rank.n_teams,
        "paper": lambda rank: max(0.0, 1 - rank.position / rank.n_teams),
    }
)
"""MLE-Dojo's HumanRank on one board, as its code computes it and as its paper states it."""


def _execution_counts(executions: Iterable[Execution]) -> dict[str, int]:
    counts = Counter(execution.status for execution in executions)
    return {str(status): counts[status] for status in ExecStatus if counts[status]}


def _token_totals(episodes: Sequence[Episode]) -> TokenTotals:
    costs = [episode.usage.cost_usd for episode in episodes if episode.usage.cost_usd is not None]
    return TokenTotals(
        requests=sum(episode.usage.requests for episode in episodes),
        retries=sum(episode.usage.retries for episode in episodes),
        prompt_tokens=sum(episode.usage.prompt_tokens for episode in episodes),
        completion_tokens=sum(episode.usage.completion_tokens for episode in episodes),
        cost_usd=sum(costs) if costs else None,
        n_cost_known=len(costs),
    )


def _comparison(first: _Slots, second: _Slots) -> Comparison:
    return Comparison(
        first_run=first.run,
        first=first.policy,
        second_run=second.run,
        second=second.policy,
        difference=paired_difference(first.by_task(_ranking_reward), second.by_task(_ranking_reward)),
    )


def _task_reports(policies: Sequence[_Slots]) -> tuple[TaskReport, ...]:
    cells: dict[TaskKey, list[Cell]] = {}
    grades: dict[TaskKey, GradeReport] = {}
    for slots in policies:
        for task, attempts in slots.by_task(lambda episode: episode).items():
            cells.setdefault(task, []).append(_cell(slots, attempts))
            for episode in attempts:
                if episode is not None and episode.grade is not None:
                    grades.setdefault(task, episode.grade)
    reports = []
    for task, each in sorted(cells.items()):
        grade = grades.get(task)
        reports.append(
            TaskReport(
                task_id=task[0],
                task_hash=task[1],
                metric=grade.metric if grade else None,
                direction=grade.direction if grade else None,
                thresholds=grade.thresholds if grade else None,
                cells=tuple(each),
            )
        )
    return tuple(reports)


def _cell(slots: _Slots, attempts: Sequence[Episode | None]) -> Cell:
    scores: list[float] = []
    positions: list[float] = []
    best: float | None = None
    for episode in attempts:
        if episode is None or episode.grade is None or episode.score is None or episode.reward is None:
            continue
        direction = episode.grade.direction
        scores.append(episode.score)
        place = position(episode.score, episode.grade.thresholds, direction)
        if place is not None:
            positions.append(place)
        if best is None or direction.better(episode.score, best):
            best = episode.score
    return Cell(
        run=slots.run,
        policy=slots.policy,
        n_planned=len(attempts),
        n_graded=len(scores),
        reward=estimate_attempts([None if episode is None else episode.reward for episode in attempts]),
        score=sum(scores) / len(scores) if scores else None,
        best_score=best,
        positions=tuple(positions),
        best_medal=max((each.medal for each in attempts if each is not None), key=MEDALS.index, default=Medal.NONE),
    )


def _cautions(reports: Sequence[PolicyReport], slots: Sequence[_Slots]) -> list[str]:
    """Says what makes the rows of the table hard to compare."""
    cautions = []
    oracles = [report.policy for report in reports if report.is_oracle]
    if oracles:
        cautions.append(
            f"ORACLE feedback: {', '.join(dict.fromkeys(oracles))} saw hidden test scores: no measure of skill"
        )
    plans = {frozenset(task for task, _, _ in each.each) for each in slots}
    if len(plans) > 1:
        cautions.append("the policies did not get the same tasks: compare them by the paired differences, not by rank")
    for name, values in (
        ("feedback", {report.feedback for report in reports if report.feedback}),
        ("reward preset", {report.reward_preset for report in reports if report.reward_preset}),
        ("scaffold", {report.scaffold for report in reports if report.scaffold}),
    ):
        if len(values) > 1:
            cautions.append(f"the policies differ in {name} ({', '.join(sorted(values))})")
    missing = sum(report.n_missing for report in reports)
    if missing:
        cautions.append(f"{plural(missing, 'planned episode')} without a record: counted as failures with reward 0")
    ours = sum(report.n_infrastructure for report in reports)
    if ours:
        cautions.append(
            f"{plural(ours, 'episode')} ended by a fault that is not the agent's: reward 0 in rank and shares"
        )
    return cautions
