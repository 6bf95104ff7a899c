"""The ladder: what solvers of rising skill score on a task's metric, on a calibration draw that nobody is graded on."""

from enum import StrEnum
from typing import Literal

from sandmle.records.base import Record
from sandmle.records.dna import Direction


class Tier(StrEnum):
    """How much a baseline knows."""

    DUMMY = "dummy"
    """Looks at no feature: the sample submission, a constant."""
    WEAK = "weak"
    """An untuned simple model on the raw data."""
    STANDARD = "standard"
    """A good default model on the raw data."""
    TUNED = "tuned"
    """Tuned on the task's own metric by cross-validation."""
    RULE_AWARE = "rule_aware"
    """Given the features that the hidden rule uses, but not its coefficients."""
    ORACLE = "oracle"
    """The hidden rule itself without its noise: what nobody can beat except by luck."""


class Rung(Record):
    """One baseline's score."""

    name: str
    tier: Tier
    score: float
    standard_error: float | None = None
    """Of such a score on as many rows as the private test has."""


class Ladder(Record):
    """All baselines of one task, in the order in which they were run."""

    schema_version: Literal[1] = 1
    metric: str
    direction: Direction
    n_rows: int
    """Rows of the calibration draw."""
    rungs: tuple[Rung, ...]

    def of(self, *tiers: Tier) -> tuple[Rung, ...]:
        """Returns the rungs of some tiers."""
        return tuple(rung for rung in self.rungs if rung.tier in tiers)

    def best(self, *tiers: Tier) -> Rung:
        """Returns the best rung of some tiers, or of all.

        Raises:
            ValueError: There is none.
        """
        rungs = self.of(*tiers) if tiers else self.rungs
        if not rungs:
            raise ValueError(f"the ladder has no rung of {', '.join(tiers)}")
        return max(rungs, key=lambda rung: self.direction.gain(rung.score, 0.0))
