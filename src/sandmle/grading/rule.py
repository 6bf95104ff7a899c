"""``ScoringRule``: all that scoring needs to know of a task. Authors score baselines before a task has thresholds."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field

from sandmle.records import Direction, Record, TargetSpec, TaskSpec

SUM_TOLERANCE = 1e-3
"""How far the sum of a row of class probabilities may be from one, unless the rule says otherwise."""


def numbered(ids: Sequence[str]) -> list[str]:
    """Returns ids of which each is there once: the second row of one id gets another spelling, and so on."""
    seen: Counter[str] = Counter()
    result = []
    for each in ids:
        result.append(f"{each}\x1f{seen[each]}" if seen[each] else each)
        seen[each] += 1
    return result


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

    extra_columns: Literal["refuse", "ignore"] = "refuse"
    """What becomes of a submission's columns that nobody asked for."""
    repeated_ids: Literal["refuse", "in_order"] = "refuse"
    """What becomes of an id that stands in several rows: refused, or rows of one id are paired in the file's order."""
    sum_tolerance: float = Field(default=SUM_TOLERANCE, gt=0)
    """How far the sum of a row of class probabilities may be from one."""

    @classmethod
    def of(cls, spec: TaskSpec) -> Self:
        """Returns the rule of a task."""
        return cls(**{name: getattr(spec, name) for name in cls.model_fields if name in type(spec).model_fields})
