"""``TaskSpec``: all that is known of a task beside its data, as it stands in ``task.yaml``. Agents never see it."""

from typing import Any, Literal

from pydantic import Field, model_validator

from sandmle.records.base import Record, sha256_of
from sandmle.records.dna import Direction, Modality, PredictionKind, StructuralDNA, TaskKind

ColumnType = Literal["id", "number", "integer", "category", "text", "datetime", "code", "boolean", "path"]
ThresholdPreset = Literal["calibrated", "paper", "leaderboard"]
"""Where milestones come from: a ladder of baselines (two ways), or places on a human leaderboard."""
MILESTONES: tuple[str, ...] = ("median", "bronze", "silver", "gold")


class ColumnSpec(Record):
    """One column of train.csv and test.csv."""

    name: str
    type: ColumnType
    description: str = ""
    unit: str = ""


class TargetSpec(Record):
    """What a submission holds for each row."""

    kind: PredictionKind
    columns: tuple[str, ...] = Field(min_length=1)
    """Prediction columns, in the order of the sample submission."""
    labels: tuple[str, ...] = ()
    """The closed label set, as text. For ``probability`` the last one is the positive label."""
    low: float | None = None
    """Smallest allowed value of a numeric prediction; None where there is no bound."""
    high: float | None = None
    max_items: int | None = None
    """Most labels in one cell (``ranked_labels``)."""
    mask_shape: tuple[int, int] | None = None
    """Height and width of a mask (``mask``)."""


class Threshold(Record):
    """One milestone: the score that reaches it, and how sure that score is."""

    score: float
    standard_error: float | None = None
    """Standard error of such a score on the private rows; None where it was not measured."""


class Thresholds(Record):
    """The four milestones of a task. The border is inclusive for medals and exclusive for the median."""

    preset: ThresholdPreset
    median: Threshold
    bronze: Threshold
    silver: Threshold
    gold: Threshold

    def scores(self) -> tuple[float, float, float, float]:
        """Returns the scores of median, bronze, silver and gold."""
        return (self.median.score, self.bronze.score, self.silver.score, self.gold.score)


class TaskLimits(Record):
    """What one code execution may use when an agent works on the task."""

    step_wall_s: float = Field(default=90.0, gt=0)
    memory_mb: int = Field(default=2048, gt=0)


class Provenance(Record):
    """Who made the task, from what, and with which library versions."""

    author: str
    author_version: str
    rng_seed: int
    seed_id: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    """What the author was set to beside its seeds, by name; it makes the same task again with these."""


class TaskSpec(Record):
    """The frozen description of one task.

    ``files`` names the SHA-256 of every file of the bundle except ``task.yaml`` itself and ``provenance/gate.json``,
    which the gate writes later; ``task_hash`` is therefore the identity of the whole task.
    """

    schema_version: Literal[1] = 1
    task_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,99}$")
    title: str
    domain: str
    modalities: tuple[Modality, ...] = Field(min_length=1)
    task_kind: TaskKind
    metric: str
    metric_params: dict[str, Any] = Field(default_factory=dict)
    direction: Direction
    id_column: str
    target: TargetSpec
    columns: tuple[ColumnSpec, ...]
    """Columns of train.csv and test.csv but for the target's."""
    answer_columns: tuple[str, ...] = ()
    """Columns of answers.csv beside id, predictions and ``leaderboard`` that the metric needs (groups, weights)."""
    n_train: int = Field(ge=0)
    """Training rows; 0 where nobody counted them (a real competition of another benchmark)."""
    n_public: int = Field(ge=0)
    """Test rows that count for the public leaderboard."""
    n_private: int = Field(gt=0)
    """Test rows that count for the grade."""
    thresholds: Thresholds
    limits: TaskLimits = TaskLimits()
    dna: StructuralDNA
    provenance: Provenance
    files: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _columns_are_distinct(self) -> "TaskSpec":
        names = [column.name for column in self.columns] + list(self.target.columns)
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"columns named twice: {', '.join(repeated)}")
        return self

    @property
    def task_hash(self) -> str:
        """SHA-256 over the whole spec, and through ``files`` over the bundle's contents."""
        return sha256_of(self.to_dict())
