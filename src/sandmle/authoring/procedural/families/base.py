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
from typing_extensions import override

from sandmle.authoring.procedural.words import Pool
from sandmle.records import ColumnSpec

FloatArray = npt.NDArray[np.floating[Any]]
Medium = Literal["tabular", "text", "trace", "image", "sound", "graph", "letters", "cloud", "video"]
Columns = Mapping[str, np.ndarray]

TRAIN, TEST, CALIBRATION = 0, 1, 2


@dataclass(frozen=True)
class Rows:
    """The rows of a task before they have any data.

    Where a row of the files is made of several pieces (the objects of a picture, the sentences of a text), these are
    the pieces: ``n_pieces`` neighbours make up one row of the files.

    Attributes:
        part: TRAIN, TEST or CALIBRATION # [n_rows]
        entity: Number of the entity that a row belongs to, or -1 # [n_rows]
        day: Day of the row, counted from the start of the task's time span # [n_rows]
        n_pieces: Pieces in one row of the files.
    """

    part: npt.NDArray[np.int64]
    entity: npt.NDArray[np.int64]
    day: FloatArray
    n_pieces: int = 1

    @property
    def n(self) -> int:
        """Number of rows, or of pieces."""
        return len(self.part)

    def split(self, n_pieces: int) -> "Rows":
        """Returns the pieces of these rows."""
        part, entity, day = self.part.repeat(n_pieces), self.entity.repeat(n_pieces), self.day.repeat(n_pieces)
        return Rows(part, entity, day, n_pieces)

    def take(self, at: np.ndarray) -> "Rows":
        """Returns some of the rows."""
        return Rows(self.part[at], self.entity[at], self.day[at], self.n_pieces)

    def pieces_of(self, at: np.ndarray) -> np.ndarray:
        """Returns the numbers of all pieces of some rows of the files, in their order."""
        return np.asarray((at[:, None] * self.n_pieces + np.arange(self.n_pieces)).ravel())


@dataclass
class Context:
    """What a family may draw from.

    Attributes:
        pool: Unused names of the domain.
        n_groups: Entities that an insight's own grouping column may have.
        entity_column: Name of the column that names each row's entity; empty if rows belong to none.
        image_shape: Height, width and channels of the pictures.
        trace_length: Samples of a trace.
        sound_length: Samples of a sound.
        frame_shape: Height and width of a video's frames.
        n_frames: Frames of a video.
    """

    pool: Pool
    n_groups: int
    entity_column: str
    image_shape: tuple[int, int, int]
    trace_length: int
    sound_length: int = 800
    frame_shape: tuple[int, int] = (10, 10)
    n_frames: int = 5


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


@dataclass(frozen=True)
class Web:
    """What an insight adds to one graph: nodes with a kind and a weight, and edges between them.

    The first node is where it is tied to the rest.
    """

    kinds: str
    weights: tuple[float, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass
class Sample:
    """The data of one insight.

    Attributes:
        columns: Values of its public columns # each [n_rows]
        latents: What is hidden in text, trace or picture # each [n_rows]
        sentences: Sentences of each row's text.
        trace: What it adds to the trace # [n_rows, trace_length]
        layers: What it paints; each is (opacity # [n_rows, height, width], colour # [n_rows, channels]). A video is
            painted as its frames side by side.
        sound: What it adds to the sound, 1 being the loudest # [n_rows, sound_length]
        webs: What it adds to each row's graph.
        letters: What it adds to each row's string of letters.
        points: What it adds to the point cloud: x, y, z and strength # [n_rows, n_points, 4]
    """

    columns: dict[str, np.ndarray] = field(default_factory=dict)
    latents: dict[str, np.ndarray] = field(default_factory=dict)
    sentences: list[list[str]] | None = None
    trace: FloatArray | None = None
    layers: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    sound: FloatArray | None = None
    webs: list[Web] | None = None
    letters: list[str] | None = None
    points: FloatArray | None = None


def taken(sample: Sample, at: np.ndarray) -> Sample:
    """Returns the data of some rows, in their order."""

    def pick(values: list[Any] | None) -> list[Any] | None:
        return None if values is None else [values[row] for row in at.tolist()]

    return Sample(
        columns={name: values[at] for name, values in sample.columns.items()},
        latents={name: values[at] for name, values in sample.latents.items()},
        sentences=pick(sample.sentences),
        trace=None if sample.trace is None else sample.trace[at],
        layers=[(opacity[at], colour[at]) for opacity, colour in sample.layers],
        sound=None if sample.sound is None else sample.sound[at],
        webs=pick(sample.webs),
        letters=pick(sample.letters),
        points=None if sample.points is None else sample.points[at],
    )


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


class LatentFamily(Family):
    """A family whose data is no table: its features are latents, which a solver must measure.

    Attributes:
        latents: Names of its features.
    """

    latents: tuple[str, ...] = ()

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        return column([columns[f"{self.name}:{name}"] for name in self.latents])

    def named(self, *latents: FloatArray) -> dict[str, np.ndarray]:
        """Returns the latents by name."""
        return {f"{self.name}:{name}": values for name, values in zip(self.latents, latents, strict=True)}


def column(names: list[FloatArray]) -> FloatArray:
    """Stacks features of all rows as columns # [n_rows, n_features]."""
    return np.column_stack(names).astype(float)
