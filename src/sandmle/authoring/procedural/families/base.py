"""The contract of a family of hidden sub-rules.

A family draws an **insight**: a fact about the data that a good engineer can find. It samples the public data that the
insight lives in, and computes the **features** that a solver with this insight would compute from that data. What the
features do to the target is not the family's business (see ``signal.py``), so every family serves every kind of target.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sandmle.authoring.procedural.words import Pool
from sandmle.records import ColumnSpec

FloatArray = npt.NDArray[np.floating[Any]]
Medium = Literal["tabular", "text", "trace", "image"]
Columns = Mapping[str, np.ndarray]

TRAIN, TEST, CALIBRATION = 0, 1, 2


@dataclass(frozen=True)
class Rows:
    """The rows of a task before they have any data.

    Attributes:
        part: TRAIN, TEST or CALIBRATION # [n_rows]
        entity: Number of the entity that a row belongs to, or -1 # [n_rows]
        day: Day of the row, counted from the start of the task's time span # [n_rows]
    """

    part: npt.NDArray[np.int64]
    entity: npt.NDArray[np.int64]
    day: FloatArray

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.part)


@dataclass
class Context:
    """What a family may draw from.

    Attributes:
        pool: Unused names of the domain.
        n_groups: Entities that an insight's own grouping column may have.
        entity_column: Name of the column that names each row's entity; empty if rows belong to none.
        image_shape: Height, width and channels of the pictures.
        trace_length: Samples of a trace.
    """

    pool: Pool
    n_groups: int
    entity_column: str
    image_shape: tuple[int, int, int]
    trace_length: int


@dataclass(frozen=True)
class Insight:
    """One drawn sub-rule.

    Attributes:
        family: Name of its family.
        columns: Public columns that it brings.
        words: The insight in one sentence, for the hidden rule.md.
        params: What the family drew.
    """

    family: str
    columns: tuple[ColumnSpec, ...]
    words: str
    params: dict[str, Any]


@dataclass
class Sample:
    """The data of one insight.

    Attributes:
        columns: Values of its public columns # each [n_rows]
        latents: What is hidden in text, trace or picture # each [n_rows]
        sentences: Sentences of each row's text.
        trace: What it adds to the trace # [n_rows, trace_length]
        layers: What it paints; each is (opacity # [n_rows, height, width], colour # [n_rows, channels]).
    """

    columns: dict[str, np.ndarray] = field(default_factory=dict)
    latents: dict[str, np.ndarray] = field(default_factory=dict)
    sentences: list[list[str]] | None = None
    trace: FloatArray | None = None
    layers: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)


class Family(ABC):
    """A kind of sub-rule. Instances hold no state.

    Attributes:
        name: Unique name.
        medium: Where the data is.
        graded: True if a solver on raw data earns a good part of it; False for a cliff, worth little until seen.
    """

    name: str
    medium: Medium
    graded: bool

    @abstractmethod
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        """Draws the parameters.

        Raises:
            AuthoringError: The domain's names are used up.
        """

    @abstractmethod
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        """Samples the data of all rows."""

    @abstractmethod
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        """Returns what a solver with the insight computes # [n_rows, n_features].

        Args:
            insight: The insight.
            columns: Public columns, as published or before they were spoilt, and the latents. Missing numbers are NaN,
                missing texts are empty.
        """


def column(names: list[FloatArray]) -> FloatArray:
    """Stacks features of all rows as columns # [n_rows, n_features]."""
    return np.column_stack(names).astype(float)
