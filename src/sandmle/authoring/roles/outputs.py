"""What the roles hand over: typed replies, checked before anything is done with them."""

from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from sandmle.records import ColumnSpec, Modality, Record, TargetSpec, Tier

RoleName = Literal["strategist", "developer", "mlops", "writer", "reviewer"]
MOST_TRAIN_ROWS = 200
FEWEST_TRAIN_ROWS = 50
FEWEST_BASELINES = 4
MEDIA_MODALITIES = frozenset({Modality.IMAGE, Modality.VIDEO, Modality.AUDIO})
"""Data of these kinds lives in files, one a row."""


class BaselinePlan(Record):
    """One baseline of the ladder, before it is written."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    tier: Literal[Tier.WEAK, Tier.STANDARD, Tier.TUNED, Tier.RULE_AWARE]
    discovers: str
    """What of the hidden rule this one is meant to find."""


class TaskIdea(Record):
    """The Data Strategist's work: a task in words, before there is any data."""

    title: str = Field(min_length=3, max_length=120)
    domain: str = Field(pattern=r"^[a-z][a-z0-9_]{2,39}$")
    entity: str = Field(min_length=2, max_length=60)
    """One row, in the domain's words, singular."""
    situation: str = Field(min_length=20)
    """Why somebody wants the prediction; public."""
    modalities: tuple[Modality, ...] = Field(min_length=1)
    id_column: str = Field(pattern=r"^[a-z][a-z0-9_]{1,39}$")
    columns: tuple[ColumnSpec, ...] = Field(min_length=1)
    """Public columns beside id and target. One of type ``path`` holds a picture, a sound or a document a row."""
    target: TargetSpec
    target_words: str
    """What is to be predicted, as the end of "predict ..."; public."""
    target_unit: str = ""
    hidden_rule: str = Field(min_length=20)
    """In words: which facts of a row decide the answer, and how. Never public."""
    formula: str = Field(min_length=5)
    """The same as ``label = f(z) + noise``. Never public."""
    noise: str
    """What blurs the rule."""
    mutation: str
    """What makes the raw data harder to use: gaps, slips, shifts of scale, distractors."""
    n_train: int = Field(ge=FEWEST_TRAIN_ROWS, le=MOST_TRAIN_ROWS)
    n_private: int = Field(default=2000, ge=1000, le=4000)
    """Hidden rows that count for the grade."""
    baselines: tuple[BaselinePlan, ...] = Field(min_length=FEWEST_BASELINES)

    @model_validator(mode="after")
    def _fits_together(self) -> "TaskIdea":
        names = [self.id_column, *(column.name for column in self.columns), *self.target.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the column {twice[0]!r} is named twice")
        tiers = [baseline.tier for baseline in self.baselines]
        for tier in (Tier.WEAK, Tier.RULE_AWARE):
            if tier not in tiers:
                raise ValueError(f"the ladder needs a baseline of the tier {tier.value!r}")
        own = [baseline.name for baseline in self.baselines]
        if len(set(own)) < len(own):
            raise ValueError("two baselines have one name")
        if MEDIA_MODALITIES & set(self.modalities) and not self.path_columns:
            raise ValueError("pictures and sounds need a column of the type 'path'")
        return self

    @property
    def path_columns(self) -> tuple[str, ...]:
        """Columns whose cells are files."""
        return tuple(column.name for column in self.columns if column.type == "path")


class Scripts(Record):
    """The ML Developer's work: source by file name; ``make_data.py`` and one file a baseline."""

    files: dict[str, str]

    @field_validator("files")
    @classmethod
    def _plain_names(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or path.suffix != ".py":
                raise ValueError(f"{name!r} is no plain name of a Python file")
        return files


DATA_SCRIPT = "make_data.py"
EVALUATOR_SCRIPT = "evaluator.py"


def baseline_file(name: str) -> str:
    """Returns the file name of a baseline's script."""
    return f"baselines/{name}.py"


class MetricChoice(Record):
    """The MLOps Engineer's choice where a registered metric fits."""

    metric: str
    params: dict[str, Any] = Field(default_factory=dict)
    """The metric's own parameters."""


class Evaluator(Record):
    """The MLOps Engineer's own evaluator, where no registered metric fits."""

    source: str
    title: str = Field(min_length=3, max_length=80)
    """Its name in the description."""
    words: str = Field(min_length=10)
    """What it measures, in one or two sentences, for the description."""
    formula: str = ""


class Review(Record):
    """What the reviewer says of a description."""

    approve: bool
    problems: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_why(self) -> "Review":
        if not self.approve and not self.problems:
            raise ValueError("a refusal names at least one problem")
        return self
