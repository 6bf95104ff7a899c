"""The records of a report. Every number that cannot be known is None with a reason beside it."""

from typing import Literal

from sandmle.evaluation.statistics import Difference, Estimate, Spread
from sandmle.records import Direction, Medal, Record, Thresholds

MISSING = "missing"
"""Stands among the endings for an episode that was planned and has no record."""


class TokenTotals(Record):
    """What the model calls of one policy cost in all."""

    requests: int
    retries: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    """Sum over the episodes whose cost is known; None if none is."""
    n_cost_known: int


class PolicyReport(Record):
    """One policy in one run."""

    run: str
    policy: str
    scaffold: str
    grammar: str
    feedback: str
    reward_preset: str
    rank: int | None
    """By ``ranking_reward``; equal means share a rank (1, 2, 2, 4); None if nothing was planned."""
    n_planned: int
    n_finished: int
    """Episodes with a record and a reward: failures of ours and missing ones are not among them."""
    n_missing: int
    """Planned episodes without a record."""
    n_infrastructure: int
    """Episodes that ended by a fault that is not the agent's; their reward is None."""
    n_tasks: int
    ranking_reward: Estimate
    """Mean reward over all planned episodes; missing ones and failures of ours count 0."""
    reward: Estimate
    """Mean reward over the episodes that have one, as training sees it."""
    terms: dict[str, Estimate]
    """Reward terms over the same episodes."""
    valid: Estimate
    """Share of planned episodes whose submission was graded."""
    above_median: Estimate
    at_least: dict[str, Estimate]
    """Share of planned episodes with at least bronze (any medal), at least silver, gold."""
    highest: dict[str, int]
    """Planned episodes by the highest medal: none, bronze, silver, gold. They add up to ``n_planned``."""
    by_attempt: dict[str, Estimate]
    """Mean and standard error over attempts of the share of tasks: valid, above_median, at least bronze (any medal, as
    MLE-bench reports it), at least silver, gold."""
    n_attempts: int
    """Attempts that every task of the plan has."""
    any_of_attempts: dict[str, Estimate]
    """Share of tasks at which at least one of ``n_attempts`` attempts has the property, by the same names."""
    human_rank: dict[str, Estimate]
    """Share of human teams left behind, mean of both boards: ``code`` (N - p + 1) / N as MLE-Dojo computes it,
    ``paper`` 1 - p / N (at least 0) as it states it. Empty where the tasks have no boards; invalid and missing
    submissions count 0."""
    seconds: float
    """Wall seconds of all episodes."""
    endings: dict[str, int]
    """Planned episodes by how they ended, ``missing`` among them."""
    turns: Spread
    episode_s: Spread
    execution_s: Spread
    """Wall seconds of single code executions."""
    executions: dict[str, int]
    """Code executions by how they ended."""
    tokens: TokenTotals

    @property
    def is_oracle(self) -> bool:
        """True when the agent was shown its hidden test score."""
        return self.feedback == "oracle"


class Cell(Record):
    """One policy at one task."""

    run: str
    policy: str
    n_planned: int
    n_graded: int
    reward: Estimate
    """Over the attempts; missing ones and failures of ours count 0."""
    score: float | None
    """Mean score of the graded attempts; a missing attempt has no score that could be put in its place."""
    best_score: float | None
    positions: tuple[float, ...]
    """Place of every graded attempt among the thresholds: median 0, bronze 1, silver 2, gold 3."""
    best_medal: Medal


class TaskReport(Record):
    """One task with all policies that worked on it."""

    task_id: str
    task_hash: str
    metric: str | None
    direction: Direction | None
    thresholds: Thresholds | None
    """None if no attempt got a grade."""
    cells: tuple[Cell, ...]


class Comparison(Record):
    """A policy against the next one in rank, on the tasks that both have, by ranking reward."""

    first_run: str
    first: str
    second_run: str
    second: str
    difference: Difference


class RunInfo(Record):
    """One run directory that the report rests on."""

    label: str
    path: str
    n_planned: int
    n_recorded: int


class RunReport(Record):
    """All of a report. Every number that cannot be known is None with a reason beside it."""

    schema_version: Literal[1] = 1
    runs: tuple[RunInfo, ...]
    policies: tuple[PolicyReport, ...]
    """In order of rank."""
    comparisons: tuple[Comparison, ...]
    tasks: tuple[TaskReport, ...]
    execution_s: Spread
    """Over all code executions of all policies."""
    oracle: bool
    """Some policy was shown hidden test scores: its numbers are no measure of skill."""
    problems: tuple[str, ...] = ()
    """What could not be read, with file and line; it is left out of everything above."""
    notes: tuple[str, ...] = ()
    """What a reader should know before comparing numbers."""
