"""Target heads: from the signal to targets, and from a solver's predictions to submission columns.

Every head works in one of three **modes**, so that one set of solvers serves all kinds of target:

* ``classes``: one label a row; predictions are probabilities # [n_rows, n_classes]
* ``labels``: any number of labels a row, or shares; predictions are probabilities # [n_rows, n_labels]
* ``values``: numbers; predictions are numbers # [n_rows, n_values]
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri
from typing_extensions import override

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import TRAIN, FloatArray, Rows
from sandmle.authoring.randomness import rng_for
from sandmle.records import PredictionKind, TaskKind

Mode = Literal["classes", "labels", "values"]
Cells = dict[str, np.ndarray]
# Deviation of the logarithm of a skewed target.
_MOST_SKEW = 0.4
# Nodes of the noise's distribution, for expectations over it.
_NODES = ndtri((np.arange(41) + 0.5) / 41)


@dataclass(frozen=True)
class Realised:
    """Targets of all rows.

    Attributes:
        y: Class number # [n_rows], or labels or values # [n_rows, n]
        oracle: What the hidden rule predicts, in the form of a solver's predictions.
        words: How the signal becomes the target, for rule.md.
    """

    y: np.ndarray
    oracle: FloatArray
    words: str


class Head(ABC):
    """One kind of target."""

    mode: Mode

    def __init__(self, plan: TaskPlan) -> None:
        self.plan = plan
        self.labels = np.array(plan.target.labels, dtype=object)

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Outputs that the signal must have."""

    @abstractmethod
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        """Turns signal and standard normal noise, both # [n_rows, n_outputs], into targets."""

    @abstractmethod
    def answers(self, y: np.ndarray) -> Cells:
        """Returns targets as the cells of answers and of the training target."""

    @abstractmethod
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        """Returns predictions as submission cells.

        Args:
            predictions: In the head's mode.
            option: One of ``options``.
        """

    def options(self, y_train: np.ndarray) -> tuple[float, ...]:
        """Returns what a solver may tune when it writes its predictions, its default first."""
        del y_train
        return (0.0,)

    def dummy(self, y_train: np.ndarray) -> FloatArray:
        """Returns one row of predictions that looks at no feature # [1, n]."""
        if self.mode == "classes":
            return np.bincount(y_train, minlength=len(self.labels))[None, :] / len(y_train)
        if self.mode == "values" and "mae" in self.plan.metric:
            return np.asarray(np.median(y_train, axis=0, keepdims=True))
        return np.asarray(np.mean(y_train, axis=0, keepdims=True))

    def n_levels(self) -> int:
        """Number of classes in the mode ``classes``."""
        return len(self.labels)


def head_for(plan: TaskPlan) -> Head:
    """Returns the head of a plan's target."""
    kind, form = plan.dna.task_kind, plan.target.kind
    if plan.metric == "laplace_log_likelihood":
        return ConfidenceHead(plan)
    if plan.metric == "angular_error":
        return AngleHead(plan)
    if plan.metric == "distance_percentiles":
        return PositionHead(plan)
    if kind is TaskKind.ORDINAL and plan.metric in ("qwk", "pearson"):
        return GradeHead(plan)
    if kind is TaskKind.ORDINAL:
        return LevelHead(plan)
    if form is PredictionKind.VALUES:
        return ValueHead(plan)
    if kind is TaskKind.SOFT_LABEL:
        return ShareHead(plan)
    if form in (PredictionKind.LABEL_SET, PredictionKind.LABEL_PROBABILITIES):
        return LabelsHead(plan)
    return ClassHead(plan)


class ClassHead(Head):
    """One label a row, drawn from a softmax over the signal."""

    mode: Mode = "classes"

    @property
    @override
    def n_outputs(self) -> int:
        return 1 if len(self.labels) == 2 else len(self.labels)

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        del noise
        slope = self.plan.noise.signal
        logits = np.column_stack([np.zeros(rows.n), slope * signal]) if self.n_outputs == 1 else slope * signal
        chances = _with_shares(logits, np.array(self.plan.label_shares), rows)
        y = np.minimum((rng.random((rows.n, 1)) > chances.cumsum(axis=1)).sum(axis=1), len(self.labels) - 1)
        words = f"The label is drawn from softmax({slope} * signal + bias); biases set the labels' shares."
        return Realised(y, chances, words)

    @override
    def answers(self, y: np.ndarray) -> Cells:
        target = self.plan.target
        if target.kind is PredictionKind.CLASS_PROBABILITIES:
            return {name: (y == at).astype(int) for at, name in enumerate(target.columns)}
        return {target.columns[0]: self.labels[y]}

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        target = self.plan.target
        name = target.columns[0]
        if target.kind is PredictionKind.PROBABILITY:
            if option:
                return {name: (predictions[:, -1] >= option).astype(float)}
            return {name: np.round(predictions[:, -1], 6)}
        if target.kind is PredictionKind.CLASS_PROBABILITIES:
            return _simplex(target.columns, predictions)
        if target.kind is PredictionKind.RANKED_LABELS:
            order = np.argsort(-predictions, axis=1, kind="stable")[:, : target.max_items]
            return {name: np.array([" ".join(self.labels[row]) for row in order], dtype=object)}
        if len(self.labels) == 2:
            return {name: self.labels[(predictions[:, 1] >= (option or 0.5)).astype(int)]}
        return {name: self.labels[np.argmax(predictions, axis=1)]}

    @override
    def options(self, y_train: np.ndarray) -> tuple[float, ...]:
        hard = self.plan.target.kind is PredictionKind.LABEL and len(self.labels) == 2
        if hard or self.plan.metric == "probabilistic_f1":
            return (0.5 if hard else 0.0, 0.01, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
        return (0.0,)


class LevelHead(ClassHead):
    """Ordered labels: the noisy signal cut at quantiles; predicted as labels without order."""

    @property
    @override
    def n_outputs(self) -> int:
        return 1

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        del rng
        level, chances, words = _cut(signal, noise, self.plan, rows)
        return Realised(level, chances, words)


class GradeHead(Head):
    """Ordered labels or graded scores, predicted as numbers."""

    mode: Mode = "values"

    @property
    @override
    def n_outputs(self) -> int:
        return 1

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        del rng
        level, chances, words = _cut(signal, noise, self.plan, rows)
        expected = chances @ np.arange(chances.shape[1])
        return Realised(level[:, None].astype(float), expected[:, None], words)

    @override
    def answers(self, y: np.ndarray) -> Cells:
        return self._cells(np.round(y[:, 0]))

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        top = self._n_levels - 1
        level = np.clip(predictions[:, 0], 0, top)
        if option:
            level = np.clip(top / 2 + (level - top / 2) * option, 0, top)
        if self.plan.target.kind is PredictionKind.LABEL:
            level = np.round(level)
        return self._cells(level)

    @override
    def options(self, y_train: np.ndarray) -> tuple[float, ...]:
        return (1.0, 1.2, 1.4, 1.7) if self.plan.target.kind is PredictionKind.LABEL else (1.0,)

    @property
    def _n_levels(self) -> int:
        return len(self.plan.label_shares)

    def _cells(self, level: FloatArray) -> Cells:
        name = self.plan.target.columns[0]
        if self.plan.target.kind is PredictionKind.LABEL:
            return {name: self.labels[level.astype(int)]}
        return {name: np.round(level / (self._n_levels - 1), 4)}


class LabelsHead(Head):
    """Any number of labels a row, each drawn on its own."""

    mode: Mode = "labels"

    @property
    @override
    def n_outputs(self) -> int:
        return len(self.labels)

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        del noise
        slope = self.plan.noise.signal
        chances = np.column_stack(
            [
                _with_shares(np.column_stack([np.zeros(rows.n), slope * signal[:, at]]), np.array([1 - p, p]), rows)[
                    :, 1
                ]
                for at, p in enumerate(self.plan.label_shares)
            ]
        )
        y = (rng.random(chances.shape) < chances).astype(int)
        words = f"Each label is present with the chance sigmoid({slope} * its signal + bias), independently."
        return Realised(y, chances, words)

    @override
    def answers(self, y: np.ndarray) -> Cells:
        target = self.plan.target
        if target.kind is PredictionKind.LABEL_SET:
            return {target.columns[0]: self._sets(y > 0)}
        return {name: y[:, at] for at, name in enumerate(target.columns)}

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        target = self.plan.target
        chances = np.clip(predictions, 0.0, 1.0)
        if target.kind is PredictionKind.LABEL_SET:
            return {target.columns[0]: self._sets(chances >= option)}
        return {name: np.round(chances[:, at], 6) for at, name in enumerate(target.columns)}

    @override
    def options(self, y_train: np.ndarray) -> tuple[float, ...]:
        if self.plan.target.kind is PredictionKind.LABEL_SET:
            return (0.5, 0.01, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
        return (0.0,)

    def _sets(self, present: np.ndarray) -> np.ndarray:
        return np.array([" ".join(self.labels[row]) for row in present], dtype=object)


class ShareHead(Head):
    """Vote shares that sum to one: a few votes drawn from a softmax over the signal."""

    mode: Mode = "labels"
    _VOTES = 12

    @property
    @override
    def n_outputs(self) -> int:
        return len(self.labels)

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        del noise
        slope = self.plan.noise.signal
        chances = _with_shares(slope * signal, np.array(self.plan.label_shares), rows)
        votes = rng.multinomial(self._VOTES, chances / chances.sum(axis=1, keepdims=True))
        words = f"{self._VOTES} votes a row are drawn from softmax({slope} * signal + bias)."
        return Realised(votes / self._VOTES, chances, words)

    @override
    def answers(self, y: np.ndarray) -> Cells:
        return _simplex(self.plan.target.columns, y)

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        return _simplex(self.plan.target.columns, np.maximum(predictions, 0.01))


class ValueHead(Head):
    """One or more numbers: a monotone function of the noisy signal."""

    mode: Mode = "values"

    @property
    @override
    def n_outputs(self) -> int:
        return len(self.plan.target.columns)

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        slope = self.plan.noise.signal
        scale = np.sqrt(slope**2 + 1)
        y = self._publish((slope * signal + noise) / scale)
        nodes = [self._publish((slope * signal + node) / scale) for node in _NODES]
        oracle = np.median(nodes, axis=0) if "mae" in self.plan.metric else np.mean(nodes, axis=0)
        low, high = self.plan.target.low, self.plan.target.high
        words = f"The value is {self._form()} of ({slope} * signal + noise), within {low} and {high}."
        return Realised(y, oracle, words)

    def _form(self) -> str:
        return "the exponential" if self._is_skewed else "a linear function"

    @property
    def _is_skewed(self) -> bool:
        low, high = self._range()
        return low > 0 and high / low > 15

    def _range(self) -> tuple[float, float]:
        low, high = self.plan.target.low, self.plan.target.high
        return (0.0 if low is None else low), (1.0 if high is None else high)

    def _digits(self) -> int:
        low, high = self._range()
        return int(max(0, 4 - np.ceil(np.log10(high - low))))

    def _publish(self, latent: FloatArray) -> FloatArray:
        low, high = self._range()
        inside = np.clip(latent, -3.2, 3.2)
        if self._is_skewed:
            middle, step = (np.log(low) + np.log(high)) / 2, min((np.log(high) - np.log(low)) / 6.4, _MOST_SKEW)
            return np.asarray(np.round(np.exp(middle + inside * step), self._digits()))
        return np.round((low + high) / 2 + inside * (high - low) / 6.4, self._digits())

    @override
    def answers(self, y: np.ndarray) -> Cells:
        return {name: y[:, at] for at, name in enumerate(self.plan.target.columns)}

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        low, high = self._range()
        inside = np.clip(predictions, low, high)
        return {name: np.round(inside[:, at], 6) for at, name in enumerate(self.plan.target.columns)}


class ConfidenceHead(ValueHead):
    """One number and how unsure it is (Laplace log likelihood)."""

    @property
    @override
    def n_outputs(self) -> int:
        return 1

    @override
    def answers(self, y: np.ndarray) -> Cells:
        value, sure = self.plan.target.columns
        return {value: y[:, 0], sure: np.zeros(len(y))}

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        value, sure = self.plan.target.columns
        low, high = self._range()
        width = np.full(len(predictions), np.round(np.clip(option * (high - low), low, high), 6))
        return {value: np.round(np.clip(predictions[:, 0], low, high), 6), sure: width}

    @override
    def options(self, y_train: np.ndarray) -> tuple[float, ...]:
        low, high = self._range()
        usual = float(np.std(y_train)) / (high - low)
        return (usual, 0.03, 0.05, 0.07, 0.1, 0.13, 0.17)


class PositionHead(ValueHead):
    """Latitude and longitude around one place."""

    _STEP_DEG = 0.01

    @override
    def _publish(self, latent: FloatArray) -> FloatArray:
        return np.round(self._middle() + self._STEP_DEG * latent, 6)

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        return {name: np.round(predictions[:, at], 6) for at, name in enumerate(self.plan.target.columns)}

    def _middle(self) -> FloatArray:
        rng = rng_for("place", self.plan.task_id)
        return np.round(np.array([rng.uniform(36, 58), rng.uniform(-8, 28)]), 2)


class AngleHead(Head):
    """A direction on the sphere as azimuth and zenith; predicted as a vector."""

    mode: Mode = "values"

    @property
    @override
    def n_outputs(self) -> int:
        return 3

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        slope = self.plan.noise.signal
        y = _unit(slope * signal + noise)
        oracle = np.mean([_unit(slope * signal + corner) for corner in _CUBE], axis=0)
        words = f"The direction is that of the vector {slope} * signal + noise."
        return Realised(y, oracle, words)

    @override
    def answers(self, y: np.ndarray) -> Cells:
        return self._angles(y)

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        return self._angles(predictions)

    def _angles(self, vectors: FloatArray) -> Cells:
        azimuth, zenith = self.plan.target.columns
        unit = _unit(vectors)
        return {
            azimuth: np.round(np.arctan2(unit[:, 1], unit[:, 0]) % (2 * np.pi), 5) % 6.28318,
            zenith: np.round(np.arccos(np.clip(unit[:, 2], -1, 1)), 5),
        }


_CUBE = np.array([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)])


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def _simplex(columns: tuple[str, ...], values: FloatArray) -> Cells:
    """Returns rows that sum to exactly one after rounding: the largest entry takes the rest."""
    shares = np.round(values / values.sum(axis=1, keepdims=True), 6)
    top = np.argmax(shares, axis=1)
    at = np.arange(len(shares))
    shares[at, top] = np.round(shares[at, top] + 1.0 - shares.sum(axis=1), 6)
    return {name: shares[:, index] for index, name in enumerate(columns)}


def _softmax(logits: FloatArray) -> FloatArray:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _with_shares(logits: FloatArray, shares: FloatArray, rows: Rows) -> FloatArray:
    """Adds biases to logits # [n_rows, n_classes] so that the mean chances are the wanted shares."""
    hidden = logits[rows.part != TRAIN][:3000]
    bias = np.log(shares)
    for _ in range(40):
        bias = bias + np.log(shares / _softmax(hidden + bias).mean(axis=0))
    return _softmax(logits + np.round(bias, 6))


def _cut(signal: FloatArray, noise: FloatArray, plan: TaskPlan, rows: Rows) -> tuple[np.ndarray, FloatArray, str]:
    slope = plan.noise.signal
    latent = slope * signal[:, 0] + noise[:, 0]
    borders = np.round(np.quantile(latent[rows.part != TRAIN], np.cumsum(plan.label_shares)[:-1]), 4)
    below = ndtr(borders[None, :] - slope * signal[:, :1])
    ends = np.zeros((rows.n, 1))
    chances = np.diff(np.hstack([ends, below, ends + 1.0]), axis=1)
    words = f"The level is {slope} * signal + noise, cut at {borders.tolist()}."
    return np.searchsorted(borders, latent), chances, words
