"""What the four roles hand to one another: the same words for the procedural author and for the LLM author."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from sandmle.records import ColumnSpec, Direction, Ladder, Record, StructuralDNA, TargetSpec, Thresholds
from sandmle.records.task import ColumnType


class InsightPlan(Record):
    """One sub-rule of the hidden rule, and how much of the signal it makes up."""

    family: str
    share: float = Field(gt=0, le=1)
    """Part of the signal's variance."""


class NoisePlan(Record):
    """What stands between the hidden rule and the data."""

    signal: float = Field(gt=0)
    """Standard deviation of the signal where the noise has 1 (values), or slope of the log-odds (labels)."""
    missing_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of cells left empty in each column that may be empty, at random."""
    outlier_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of cells with a slipped decimal point in each plain number column."""
    group_share: float = Field(default=0.0, ge=0, lt=1)
    """Part of the noise's variance that rows of one entity share."""
    twin_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of rows that are near copies of another row of the same table: same contents, other noise."""


class SideColumn(Record):
    """A public column that the metric reads beside the predictions, so that it stands in the answers as well."""

    role: str
    """The metric's parameter that names it."""
    name: str
    meaning: str
    type: ColumnType
    values: tuple[str, ...]
    """What it may hold; every value equally often."""


class TaskPlan(Record):
    """The Data Strategist's work: all decisions about a task, before there is any data."""

    task_id: str
    title: str
    seed_id: str
    rng_seed: int
    domain: str
    entity: str
    """One row, in the domain's words, singular."""
    entity_plural: str
    dna: StructuralDNA
    """What the task is made by: the seed's DNA, but for the substitutions."""
    substitutions: tuple[str, ...] = ()
    """What of the seed's DNA could not be drawn, and what stands in for it."""
    metric: str
    metric_params: dict[str, Any] = Field(default_factory=dict)
    direction: Direction
    id_column: str
    target: TargetSpec
    target_words: str
    """What is to be predicted, as the end of "predict ..."."""
    target_unit: str = ""
    label_shares: tuple[float, ...] = ()
    """Wanted shares of the labels; the realised ones go into the description."""
    label_families: tuple[int, ...] = ()
    """Number of the family that each label belongs to; labels of one family resemble each other. Empty for none."""
    side_columns: tuple[SideColumn, ...] = ()
    insights: tuple[InsightPlan, ...]
    interaction_share: float = Field(default=0.0, ge=0, lt=1)
    """Part of the signal's variance that is a product of two insights."""
    noise: NoisePlan
    n_pieces: int = Field(default=1, ge=1)
    """Pieces that one row is made of (objects of a picture, sentences of a text), each with data of its own."""
    grid: tuple[int, int] = (1, 1)
    """Rows and columns in which the pieces stand in a picture."""
    is_round: bool = False
    """The pieces of a picture are ellipses, not rectangles."""
    series_form: Literal["columns", "files"] = "columns"
    """Where the samples of a series are: one column each, or one file a row."""
    n_nuisance: int = Field(ge=0)
    n_train: int = Field(gt=0)
    n_public: int = Field(ge=0)
    n_private: int = Field(gt=0)
    n_calibration: int = Field(gt=0)


@dataclass(frozen=True)
class Facts:
    """What the writer knows of the data: nothing that an agent could not count itself.

    Attributes:
        columns: Public columns.
        label_shares: Realised shares of the labels in the training rows, by label.
        sample_head: First lines of the sample submission.
        value_range: Smallest and largest training value of each numeric target column.
        files: Folder, column and what a file holds, of each kind of media file.
    """

    columns: tuple[ColumnSpec, ...]
    label_shares: dict[str, float]
    sample_head: str
    value_range: dict[str, tuple[float, float]]
    files: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Evaluation:
    """The MLOps Engineer's work: how submissions are scored, and what score reaches which milestone."""

    ladder: Ladder
    thresholds: Thresholds
    sample_submission: bytes
    oracle_submission: bytes
    """What the hidden rule without its noise predicts; the gate sees that it wins gold."""
