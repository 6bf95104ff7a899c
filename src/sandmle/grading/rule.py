"""``ScoringRule``: all that scoring needs to know of a task. Authors score baselines before a task has thresholds."""

from typing import Any, Self

from pydantic import Field

from sandmle.records import Direction, Record, TargetSpec, TaskSpec


class ScoringRule(Record):
    """The part of a task that decides what a submission must look like and what it scores."""

    metric: str
    """Name in the registry of metrics."""
    metric_params: dict[str, Any] = Field(default_factory=dict)
    direction: Direction
    id_column: str
    target: TargetSpec
    answer_columns: tuple[str, ...] = ()
    """Columns of the answers beside id, predictions and ``leaderboard`` that the metric reads."""

    @classmethod
    def of(cls, spec: TaskSpec) -> Self:
        """Returns the rule of a task."""
        return cls(**{name: getattr(spec, name) for name in cls.model_fields})
