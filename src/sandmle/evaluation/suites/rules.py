"""How a competition of another benchmark is graded: a record that stands in a YAML file, ours or the user's."""

from collections import Counter
from collections.abc import Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator
from typing_extensions import override

from sandmle.errors import BundleError, ConfigError
from sandmle.grading import ScoringRule, get_metric
from sandmle.grading.rule import SUM_TOLERANCE
from sandmle.records import Direction, PredictionKind, Record, TargetSpec

_MOST_BYTES, _MOST_DEPTH = 4 << 20, 12


class CompetitionRule(Record):
    """One competition: where its files are and how submissions are scored."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    answers: str
    """Path of the answers below the folder of prepared data, with forward slashes."""
    sample: str
    """Path of the sample submission."""
    id_column: str = ""
    """Empty for the first column of the answers."""
    kind: PredictionKind
    columns: tuple[str, ...] = ()
    """Prediction columns; empty for all columns of the answers but the id."""
    labels: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    max_items: int | None = Field(default=None, ge=1)
    metric: str
    metric_params: dict[str, Any] = Field(default_factory=dict)
    answer_columns: tuple[str, ...] = ()
    extra_columns: Literal["refuse", "ignore"] = "ignore"
    repeated_ids: Literal["refuse", "in_order"] = "refuse"
    sum_tolerance: float = Field(default=SUM_TOLERANCE, gt=0)
    unscored: str | None = None
    """Rows whose answers hold this cell do not count."""

    @field_validator("answers", "sample")
    @classmethod
    def _lies_in_the_folder(cls, path: str) -> str:
        parts = PurePosixPath(path)
        if not path or parts.is_absolute() or ".." in parts.parts:
            raise ValueError("is no path below the folder of prepared data")
        return path

    @model_validator(mode="after")
    def _makes_a_target(self) -> "CompetitionRule":
        names = (self.id_column, *self.columns, *self.answer_columns)
        for kind, each in (("column", names), ("label", self.labels)):
            repeated = [name for name, count in Counter(each).items() if name and count > 1]
            if repeated:
                raise ValueError(f"{kind} {repeated[0]} is named twice")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low ({self.low:g}) is above high ({self.high:g})")
        if self.columns:
            self.target(self.columns)  # names what is wrong with labels and bounds
        return self

    @property
    def direction(self) -> Direction:
        """The metric's own direction."""
        return get_metric(self.metric).direction

    def target(self, answer_header: tuple[str, ...]) -> TargetSpec:
        """Returns the target, with its columns taken from the answers where the rule names none."""
        columns = self.columns or tuple(name for name in answer_header if name != self.id_column)
        labels = self.labels or (columns if self.kind is PredictionKind.CLASS_PROBABILITIES else ())
        if self.kind is PredictionKind.PROBABILITY:
            labels = self.labels or ("0", "1")
        return TargetSpec(
            kind=self.kind, columns=columns, labels=labels, low=self.low, high=self.high, max_items=self.max_items
        )

    def scoring_rule(self, target: TargetSpec) -> ScoringRule:
        """Returns what the grader needs."""
        return ScoringRule(
            metric=self.metric,
            metric_params=self.metric_params,
            direction=self.direction,
            id_column=self.id_column,
            target=target,
            answer_columns=self.answer_columns,
            extra_columns=self.extra_columns,
            repeated_ids=self.repeated_ids,
            sum_tolerance=self.sum_tolerance,
        )


class _FlatLoader(yaml.SafeLoader):
    """Reads plain YAML: no aliases, which can stand for more than there is room for, and no deep nesting."""

    _depth = 0

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read; write each rule in full")
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise yaml.YAMLError("nested too deep")
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def builtin_rules(name: str) -> Mapping[str, CompetitionRule]:
    """Returns the rules that ship with the package, by id."""
    text = resources.files("sandmle.evaluation.suites").joinpath(f"data/{name}.yaml").read_text(encoding="utf-8")
    return {rule.id: rule for rule in map(CompetitionRule.model_validate, yaml.safe_load(text))}


def user_rules(path: Path) -> Mapping[str, CompetitionRule]:
    """Reads a user's rules, in the form of those that ship with the package.

    Raises:
        ConfigError: The file cannot be read or holds no rules.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ConfigError(f"the rules {path} have more than {_MOST_BYTES >> 20} MiB; name fewer competitions")
        entries = yaml.load(data.decode(), _FlatLoader)
    except OSError as error:
        raise ConfigError(f"cannot read the rules {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML text; write rules as docs/guides/suite-mle-bench.md shows") from error
    if not isinstance(entries, list):
        raise ConfigError(f"{path} holds no list of rules; write them as docs/guides/suite-mle-bench.md shows")
    rules = {}
    for number, entry in enumerate(entries, start=1):
        try:
            rule = CompetitionRule.model_validate(entry)
            get_metric(rule.metric)
        except ValidationError as error:
            raise ConfigError(f"{path}, rule {number}: {first_problem(error)}") from error
        except ConfigError as error:
            raise ConfigError(f"{path}, rule {number}: {error}") from error
        if rule.id in rules:
            raise ConfigError(f"{path}, rule {number}: there is a rule for {rule.id} already; keep one of them")
        rules[rule.id] = rule
    return rules


def first_problem(error: ValidationError) -> str:
    """Returns the first thing that is wrong with a record, as `field: reason`."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    reason = first["msg"].removeprefix("Value error, ")
    return f"{where}: {reason}" if where else reason


def read_scores(path: Path) -> list[float]:
    """Reads the column ``score`` of a leaderboard, in the file's order.

    Raises:
        BundleError: The file cannot be read or has no such column of numbers.
    """
    from sandmle.grading.cells import CellError, numbers
    from sandmle.grading.table import TableError, read_table

    try:
        data = path.read_bytes()
        if data.startswith(b"version https://git-lfs"):
            raise BundleError(f"the leaderboard {path} is only a Git LFS pointer; run `git lfs pull` there")
        table = read_table(data)
        if table.header.count("score") > 1:
            raise BundleError(f"the leaderboard {path} has several columns 'score'; keep one of them")
        return [float(score) for score in numbers("score", table.column("score"), None, None)]
    except OSError as error:
        raise BundleError(f"cannot read the leaderboard {path}: {error.strerror}") from error
    except KeyError as error:
        raise BundleError(f"the leaderboard {path} has no column 'score'") from error
    except TableError as error:
        raise BundleError(f"the leaderboard {path} cannot be read: {error}") from error
    except CellError as error:
        raise BundleError(f"the leaderboard {path}: row {error.row + 1} {error.reason}") from error
