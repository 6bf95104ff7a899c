"""``AnswerKey``: the hidden answers of a task, read once, that submissions are joined to and scored against."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import BundleError, ConfigError, GraderError
from sandmle.grading.cells import CellError, Form, parse_cells, parse_role
from sandmle.grading.metrics import Metric, MetricUndefined, get_metric
from sandmle.grading.metrics.base import Truth, Values
from sandmle.grading.rule import ScoringRule, numbered
from sandmle.grading.spread import standard_error
from sandmle.grading.table import Caps, Table, TableError, read_table
from sandmle.records import PredictionKind

LEADERBOARD_COLUMN = "leaderboard"
Part = Literal["private", "public", "all"]
ANSWER_CAPS = Caps(size_bytes=1 << 30, rows=20_000_000, cells=200_000_000)
"""Answers of real competitions are large: some have millions of rows."""
_SINGLE_COLUMN = frozenset(PredictionKind) - {
    PredictionKind.VALUES,
    PredictionKind.CLASS_PROBABILITIES,
    PredictionKind.LABEL_PROBABILITIES,
}


@dataclass(frozen=True, eq=False)
class Predictions:
    """An accepted submission, in the order of the answers.

    Attributes:
        values: See :data:`sandmle.grading.metrics.base.Values`; one entry for every answer, public and private.
    """

    values: Values

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class AnswerKey:
    """The answers of a task.

    Attributes:
        rule: How submissions are scored.
        metric: The rule's metric.
        params: The metric's parameters, defaults filled in.
        ids: Ids of all answers, in the file's order.
        truth: All answers.
        leaderboard: ``public`` or ``private`` for every answer ``# [n_answers]``.
        position: Place of every id in ``ids``.
        selected: Rows that count for the score ``# [n_rows]``; see :meth:`subset`.
    """

    rule: ScoringRule
    metric: Metric
    params: Mapping[str, Any]
    ids: tuple[str, ...]
    truth: Truth
    leaderboard: NDArray[np.str_]
    position: Mapping[str, int] = field(repr=False)
    selected: NDArray[np.intp] = field(repr=False)

    @classmethod
    def parse(cls, rule: ScoringRule, answers_csv: bytes, metric: Metric | None = None) -> "AnswerKey":
        """Reads answers.csv: the id, the target's columns, the metric's further columns, and ``leaderboard``.

        Without a leaderboard column every row is private.

        Args:
            rule: How submissions are scored.
            answers_csv: The file.
            metric: The rule's metric where no name leads to it; None to look it up by name.

        Raises:
            BundleError: The answers are broken: no table, a column missing, an id twice, a forbidden value.
            ConfigError: The rule itself cannot be: unknown metric or parameter, a kind that the metric does not take.
        """
        metric, params = check_rule(rule, metric)
        try:
            table = read_table(answers_csv, ANSWER_CAPS)
        except TableError as error:
            raise BundleError(f"answers.csv cannot be read: {error}") from error
        form = Form(rule.target, metric, is_answer=True)
        ids = tuple(_column(table, rule.id_column))
        if rule.repeated_ids == "in_order":
            ids = tuple(numbered(ids))
        _check_ids(ids, table)
        columns = {name: _column(table, name) for name in form.columns}
        try:
            values = parse_cells(form, columns)
            extras = _extras(metric, params, table)
        except CellError as error:
            where = f"column {error.column!r} " if error.column else ""
            raise BundleError(f"answers.csv: line {table.line_of(error.row)}: {where}{error.reason}") from error
        return cls(
            rule=rule,
            metric=metric,
            params=params,
            ids=ids,
            truth=Truth(values, rule.target, extras),
            leaderboard=_leaderboard(table),
            position={row_id: index for index, row_id in enumerate(ids)},
            selected=np.arange(len(ids)),
        )

    @property
    def n_rows(self) -> int:
        """Rows that count for the score."""
        return len(self.selected)

    def subset(self, part: Part) -> "AnswerKey":
        """Returns the same answers, of which only those of one leaderboard count for the score.

        Submissions are still read and checked whole, so that nobody learns from a refusal which rows count.
        """
        if part not in ("private", "public", "all"):
            raise ConfigError(f"no leaderboard {part!r}; give private, public or all")
        chosen = np.arange(len(self.ids)) if part == "all" else np.flatnonzero(self.leaderboard == part)
        return AnswerKey(
            rule=self.rule,
            metric=self.metric,
            params=self.params,
            ids=self.ids,
            truth=self.truth,
            leaderboard=self.leaderboard,
            position=self.position,
            selected=chosen,
        )

    def score(self, predictions: Predictions) -> float:
        """Returns the metric's value on the selected rows; it is always finite.

        Raises:
            MetricUndefined: The answers give no number.
            GraderError: The metric gave NaN or infinity.
        """
        truth, predicted = self._selection(predictions)
        value = float(self.metric.score(truth, predicted, self.params))
        if not math.isfinite(value):
            raise GraderError(f"metric {self.metric.name!r} gave {value}")
        return value

    def standard_error(self, predictions: Predictions, *, n_rows: int, rng_seed: int, resamples: int = 40) -> float:
        """Returns the standard error that this score would have on ``n_rows`` rows.

        By the jackknife where the metric is a function of means over rows, by a formula for areas under the ROC curve,
        else by the bootstrap. Rows of one group count together where the metric has groups.

        Args:
            predictions: What is scored.
            n_rows: Rows of the test whose score's error is asked for.
            rng_seed: For the bootstrap.
            resamples: For the bootstrap.

        Raises:
            MetricUndefined: The answers, or too many of the resamples, give no number.
        """
        truth, predicted = self._selection(predictions)
        error = standard_error(self.metric, truth, predicted, self.params, rng_seed=rng_seed, resamples=resamples)
        return error * math.sqrt(len(truth) / n_rows)

    def _selection(self, predictions: Predictions) -> tuple[Truth, Values]:
        if len(predictions) != len(self.ids):
            raise GraderError(f"{len(predictions)} predictions for {len(self.ids)} answers")
        if self.n_rows == len(self.ids):
            return self.truth, predictions.values
        return self.truth.take(self.selected), predictions.values[self.selected]


def check_rule(rule: ScoringRule, metric: Metric | None = None) -> tuple[Metric, dict[str, Any]]:
    """Returns a rule's metric and all its parameters.

    Raises:
        ConfigError: The rule contradicts itself or the metric.
    """
    metric = metric or get_metric(rule.metric)
    params = metric.parameters(rule.metric_params)
    target = rule.target
    if target.kind not in metric.kinds:
        takes = ", ".join(metric.kinds)
        raise ConfigError(f"metric {metric.name!r} takes {takes}, the target is {target.kind.value}")
    if rule.direction is not metric.direction:
        raise ConfigError(
            f"metric {metric.name!r} is to {metric.direction.value}, the task says {rule.direction.value}"
        )
    if target.kind is PredictionKind.LABEL and not target.labels:
        raise ConfigError("a label target needs its label set: give target.labels")
    if target.kind in _SINGLE_COLUMN and len(target.columns) != 1:
        raise ConfigError(f"a {target.kind.value} target has one column, not {len(target.columns)}")
    if target.kind is PredictionKind.CLASS_PROBABILITIES and len(target.columns) < 2:
        raise ConfigError("class probabilities need two columns or more; with one, use the kind probability")
    if target.kind is PredictionKind.MASK and target.mask_shape is None:
        raise ConfigError("a mask target needs its height and width: give target.mask_shape")
    named = [name for role in metric.roles for name in _role_columns(role.many, params.get(role.name))]
    missing = [name for name in named if name not in rule.answer_columns]
    if missing:
        raise ConfigError(f"metric {metric.name!r} reads column {missing[0]!r}; name it in answer_columns")
    return metric, params


def _role_columns(many: bool, given: Any) -> list[str]:
    if given is None:
        return []
    return [str(name) for name in given] if many else [str(given)]


def _extras(metric: Metric, params: Mapping[str, Any], table: Table) -> dict[str, NDArray[Any]]:
    extras: dict[str, NDArray[Any]] = {}
    for role in metric.roles:
        columns = _role_columns(role.many, params.get(role.name))
        if columns:
            parsed = [parse_role(role, name, _column(table, name)) for name in columns]
            extras[role.name] = np.column_stack(parsed) if role.many else parsed[0]
    return extras


def _column(table: Table, name: str) -> list[str]:
    if table.header.count(name) > 1:
        raise BundleError(f"answers.csv has the column {name!r} twice")
    try:
        return table.column(name)
    except KeyError as error:
        raise BundleError(f"answers.csv has no column {name!r}; it has {', '.join(map(repr, table.header))}") from error


def _check_ids(ids: tuple[str, ...], table: Table) -> None:
    if not ids:
        raise BundleError("answers.csv has no rows")
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        for row, row_id in enumerate(ids):
            if row_id in seen:
                raise BundleError(f"answers.csv: line {table.line_of(row)}: duplicate id {row_id!r}")
            seen.add(row_id)


def _leaderboard(table: Table) -> NDArray[np.str_]:
    if LEADERBOARD_COLUMN not in table.header:
        return np.full(len(table.rows), "private")
    cells = np.array(_column(table, LEADERBOARD_COLUMN))
    strange = np.flatnonzero((cells != "private") & (cells != "public"))
    if len(strange):
        row = int(strange[0])
        raise BundleError(
            f"answers.csv: line {table.line_of(row)}: column {LEADERBOARD_COLUMN!r} holds {str(cells[row])!r}; "
            "it is public or private"
        )
    return cells


__all__ = ["LEADERBOARD_COLUMN", "AnswerKey", "MetricUndefined", "Part", "Predictions", "check_rule"]
