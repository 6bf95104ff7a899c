"""Structural DNA: the mathematical shape of a competition, without any word of its domain (paper, section 3)."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from sandmle.records.base import Record


class Direction(StrEnum):
    """Which way a metric is better. A field of the task, never inferred from data or from a sign."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"

    def better(self, first: float, second: float) -> bool:
        """Tells whether ``first`` is strictly better than ``second``."""
        return first > second if self is Direction.MAXIMIZE else first < second

    def at_least(self, score: float, border: float) -> bool:
        """Tells whether ``score`` is as good as ``border`` or better (unrounded)."""
        return score >= border if self is Direction.MAXIMIZE else score <= border

    def gain(self, score: float, reference: float) -> float:
        """Returns how much better ``score`` is than ``reference``: positive is better, whatever the direction."""
        return score - reference if self is Direction.MAXIMIZE else reference - score


class Modality(StrEnum):
    """The kinds of data an example consists of."""

    TABULAR = "tabular"
    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    GRAPH = "graph"
    SEQUENCE = "sequence"
    TIME_SERIES = "time_series"
    VIDEO = "video"
    POINT_CLOUD = "point_cloud"


class TaskKind(StrEnum):
    """What is to be predicted, in the field's terms."""

    BINARY = "binary"
    MULTICLASS = "multiclass"
    ORDINAL = "ordinal"
    MULTILABEL = "multilabel"
    SOFT_LABEL = "soft_label"
    REGRESSION = "regression"
    MULTI_TARGET_REGRESSION = "multi_target_regression"
    FORECASTING = "forecasting"
    SEQUENCE_REGRESSION = "sequence_regression"
    RANKING = "ranking"
    ORDERING = "ordering"
    SEGMENTATION = "segmentation"
    DETECTION = "detection"
    RECONSTRUCTION = "reconstruction"
    SEQ2SEQ = "seq2seq"
    SPAN_EXTRACTION = "span_extraction"


class PredictionKind(StrEnum):
    """The form of one prediction in a submission file."""

    LABEL = "label"
    """One label of the task's label set, in one column."""
    PROBABILITY = "probability"
    """The probability (or, for rank metrics, any finite score) of the positive label, in one column."""
    CLASS_PROBABILITIES = "class_probabilities"
    """One column per label; every row sums to one. Answers hold one-hot or soft labels in the same columns."""
    LABEL_PROBABILITIES = "label_probabilities"
    """One column per label, each its own probability (multilabel). Answers hold 0 or 1 in the same columns."""
    VALUES = "values"
    """One or more columns of finite numbers."""
    LABEL_SET = "label_set"
    """Any number of labels in one cell, separated by spaces; order and repeats do not count."""
    RANKED_LABELS = "ranked_labels"
    """At most ``max_items`` labels in one cell, separated by spaces, best first."""
    PERMUTATION = "permutation"
    """All items of a row in order, separated by spaces."""
    TEXT = "text"
    """Free text in one column."""
    MASK = "mask"
    """A binary mask as run lengths: ``start length`` pairs, 1-based, column-major; an empty cell is an empty mask."""
    BOXES = "boxes"
    """Any number of boxes in one cell: ``label confidence x y width height`` each, separated by spaces."""


Level = Literal["none", "mild", "strong"]
"""How strongly a structural property is present."""


class Leaderboard(Record):
    """The human leaderboard of the seed competition, as MLE-bench counts it."""

    n_teams: int | None = None
    gold: float | None = None
    silver: float | None = None
    bronze: float | None = None
    median: float | None = None
    best: float | None = None
    worst: float | None = None
    gold_position: int | None = None
    silver_position: int | None = None
    bronze_position: int | None = None


class StructuralDNA(Record):
    """What a synthetic task inherits from its seed. It holds no word of the seed's domain."""

    schema_version: Literal[1] = 1
    modalities: tuple[Modality, ...] = Field(min_length=1)
    """Kinds of data in one example, the leading one first."""
    task_kind: TaskKind
    prediction_kind: PredictionKind
    n_classes: int | None = None
    """Number of labels (or of candidates to rank); None where the target is not made of labels."""
    n_targets: int = 1
    """Number of values or labels predicted for one row."""
    metric: str
    """Name in ``sandmle.grading``'s registry."""
    direction: Direction
    n_id_parts: int = 1
    """Parts a row's id is made of: 2 or more where rows are keyed by, say, entity and time."""
    imbalance: Level = "none"
    missing_values: Level = "none"
    outliers: Level = "none"
    label_noise: Level = "none"
    groups: bool = False
    """Rows belong to entities, and the test holds other entities than the training data."""
    time_ordered: bool = False
    hierarchy: bool = False
    """Labels or entities nest in one another."""
    near_duplicates: bool = False
    leaderboard: Leaderboard = Leaderboard()


class SeedRecord(Record):
    """One entry of the seed catalogue: a real competition's public facts and the DNA taken from them."""

    schema_version: Literal[1] = 1
    id: str
    """The competition's id in MLE-bench."""
    split: Literal["low", "medium", "high", "dev"]
    is_lite: bool
    """In MLE-bench-Lite: for evaluation only, refused as a seed."""
    in_mle_dojo: bool
    modality: str
    task_kind: str
    target_type: str
    metric_label: str
    """What MLE-bench's grader computes, in words."""
    id_column: str | None
    submission_columns: tuple[str, ...]
    structure: tuple[str, ...]
    known_issue: str | None = None
    dna: StructuralDNA
