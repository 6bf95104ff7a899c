"""What a metric is, what it is given, and how the spread of its value is found."""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import ConfigError, SandmleError, unknown_name
from sandmle.records import Direction, PredictionKind, TargetSpec

Params = Mapping[str, Any]
Floats = NDArray[np.float64]
Values = NDArray[Any]
"""Parsed answers or predictions, one entry a row; the form depends on the prediction kind:

========================  =========================================================
label                     ints ``# [n_rows]``, positions in the label set
probability               floats ``# [n_rows]``; answers are 0 or 1
class_probabilities,
label_probabilities,
values                    floats ``# [n_rows, n_columns]``
label_set, ranked_labels,
permutation               objects ``# [n_rows]``, each a tuple of text
text                      objects ``# [n_rows]``, each text
mask                      objects ``# [n_rows]``, each ints ``# [n_runs, 2]`` (start from 0, length)
boxes                     objects ``# [n_rows]``, each a ``Boxes``
========================  =========================================================
"""
Combine = Callable[[Floats, Params], Floats]
_WARNINGS = threading.Lock()


class MetricUndefined(SandmleError):
    """The answers themselves give no number (one class only, say): the task's fault, never the agent's."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of one row.

    Attributes:
        labels: One label a box.
        confidence: ``# [n_boxes]``
        corners: Left, top, right and bottom ``# [n_boxes, 4]``.
    """

    labels: tuple[str, ...]
    confidence: Floats
    corners: Floats


@dataclass(frozen=True, eq=False)
class Truth:
    """Parsed answers of some rows.

    Attributes:
        values: The answers, see :data:`Values`.
        target: The task's target.
        extras: Further answer columns by their role in the metric: a ``group`` as ints ``# [n_rows]``, a ``flag`` as
            booleans, a ``number`` as floats; roles that name several columns ``# [n_rows, n_columns]``.
    """

    values: Values
    target: TargetSpec
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[Any]) -> "Truth":
        """Returns some rows."""
        return Truth(self.values[rows], self.target, {role: column[rows] for role, column in self.extras.items()})


@dataclass(frozen=True)
class Calculation:
    """How a metric is computed.

    Attributes:
        score: Returns the value. It comes from scikit-learn, scipy or rapidfuzz where they have the metric, called
            with our policies; they are imported inside the function, so that a metric loads only what it needs.
        spread: Returns how far each row moves the value ``# [n_rows]``, for the standard error and nothing else: it
            is the standard deviation of these numbers over the root of their count. None where only resampling
            can tell.
    """

    score: Callable[[Truth, Values, Params], float]
    spread: Callable[[Truth, Values, Params], Floats] | None = None


@dataclass(frozen=True)
class OfMeans:
    """A smooth function of means of per-row statistics.

    It gives the spread of most metrics, and the score of those that no library has.

    Attributes:
        statistics: Returns ``# [n_rows, n_statistics]``.
        combine: Turns means ``# [..., n_statistics]`` into values ``# [...]``.
    """

    statistics: Callable[[Truth, Values, Params], Floats]
    combine: Combine = field(default=lambda means, params: means[..., 0])

    def score(self, truth: Truth, prediction: Values, params: Params) -> float:
        """Returns the metric's value."""
        return float(self.combine(self.statistics(truth, prediction, params).mean(axis=0), params))

    def spread(self, truth: Truth, prediction: Values, params: Params) -> Floats:
        """Returns the jackknife's influence of each row: exact leave-one-out values, all at once."""
        rows = self.statistics(truth, prediction, params)
        n = len(rows)
        without = (rows.sum(axis=0) - rows) / max(n - 1, 1)
        return (n - 1) * (self.combine(rows.mean(axis=0), params) - self.combine(without, params))


@dataclass(frozen=True)
class Role:
    """A further answer column that a metric reads; the metric's parameter of this name holds the column's name.

    Attributes:
        name: The parameter's name.
        kind: ``group`` (any text), ``flag`` (0 or 1) or ``number``.
        many: The parameter is a list of columns.
        required: The metric cannot do without it.
    """

    name: str
    kind: Literal["group", "flag", "number"]
    many: bool = False
    required: bool = True


@dataclass(frozen=True)
class Metric:
    """A named function of answers and predictions, with its direction.

    Attributes:
        name: The name in the registry.
        title: Its usual name, for descriptions and tables.
        direction: Which way is better; it has no default on purpose.
        kinds: Prediction kinds that it accepts.
        best: The value of a perfect prediction.
        calculation: How it is computed.
        words: What it measures, in one or two sentences, with every choice that changes the value.
        formula: The same in LaTeX.
        require: Raises MetricUndefined when the answers themselves give no number.
        numbers: Which numbers a submission may hold: any ``finite`` one, a ``unit`` one (0 to 1), or a
            ``non_negative`` one. Bounds of the task's target hold as well.
        rows_sum_to_one: Every row of a submission must sum to one.
        defaults: Parameters and their default values.
        roles: Further answer columns.
        unit: The role whose groups are drawn together when the spread is estimated.
        n_answer_columns: How many of the target's columns have answers, counted from the first; None for all.
    """

    name: str
    title: str
    direction: Direction
    kinds: tuple[PredictionKind, ...]
    best: float
    calculation: Calculation | OfMeans
    words: str
    formula: str
    require: Callable[[Truth, Params], None] | None = None
    numbers: Literal["finite", "unit", "non_negative"] = "finite"
    rows_sum_to_one: bool = False
    defaults: Params = field(default_factory=dict)
    roles: tuple[Role, ...] = ()
    unit: str | None = None
    n_answer_columns: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.direction, Direction):
            raise ConfigError(f"metric {self.name!r} has no direction; give maximize or minimize")

    def parameters(self, given: Params) -> dict[str, Any]:
        """Returns all parameters, defaults filled in.

        Raises:
            ConfigError: A parameter is unknown or one is missing.
        """
        known = [*self.defaults, *(role.name for role in self.roles)]
        for name in given:
            if name not in known:
                if not known:
                    raise ConfigError(f"metric {self.name!r} has no parameter {name!r}; it takes none")
                raise unknown_name(f"parameter of metric {self.name!r}", name, known)
        for role in self.roles:
            if role.required and role.name not in given:
                raise ConfigError(f"metric {self.name!r} needs the parameter {role.name!r}: a column of the answers")
        return {**self.defaults, **given}

    def check(self, truth: Truth, params: Params) -> None:
        """Passes when the metric has a value on these answers, whatever is predicted.

        Raises:
            MetricUndefined: There are no rows, or the answers give no number.
        """
        if len(truth) == 0:
            raise MetricUndefined("there are no rows to score")
        if self.require:
            self.require(truth, params)

    def score(self, truth: Truth, prediction: Values, params: Params) -> float:
        """Returns the value of the metric.

        Raises:
            MetricUndefined: See :meth:`check`.
        """
        self.check(truth, params)
        return float(self.calculation.score(truth, prediction, params))


@contextmanager
def ignoring(message: str) -> Iterator[None]:
    """Silences a library's warning on what our policies allow, such as as many labels as rows.

    Args:
        message: How the warning begins, as a regular expression.
    """
    # Python keeps one list of filters for all threads: two of us at once would restore each other's.
    with _WARNINGS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message)
        yield


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Returns the quotient, and 0 where the denominator is 0."""
    quotient: Floats = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)
    return quotient


def ratio_of_means(means: Floats, params: Params) -> Floats:
    """Combines two statistics: the first mean over the second."""
    return ratio(means[..., 0], means[..., 1])


def f1_of_means(means: Floats, params: Params) -> Floats:
    """Combines counts of hits, predictions and truths into F1."""
    hits, predicted, true = np.moveaxis(means, -1, 0)
    return ratio(2 * hits, predicted + true)


def objects(items: list[Any]) -> Values:
    """Returns items as a one-dimensional array of objects ``# [n_items]``, whatever they are."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
