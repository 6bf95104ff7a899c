"""Heads of labels: one label a row, ordered labels, sets of labels, vote shares."""

import numpy as np
from scipy.special import ndtr
from typing_extensions import override

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import TRAIN, FloatArray, Rows
from sandmle.authoring.procedural.heads.base import Cells, Head, Mode, Realised
from sandmle.records import PredictionKind


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
        chances = with_shares(logits, np.array(self.plan.label_shares), rows)
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
                with_shares(np.column_stack([np.zeros(rows.n), slope * signal[:, at]]), np.array([1 - p, p]), rows)[
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
        chances = with_shares(slope * signal, np.array(self.plan.label_shares), rows)
        votes = rng.multinomial(self._VOTES, chances / chances.sum(axis=1, keepdims=True))
        words = f"{self._VOTES} votes a row are drawn from softmax({slope} * signal + bias)."
        return Realised(votes / self._VOTES, chances, words)

    @override
    def answers(self, y: np.ndarray) -> Cells:
        return _simplex(self.plan.target.columns, y)

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        return _simplex(self.plan.target.columns, np.maximum(predictions, 0.01))


def _simplex(columns: tuple[str, ...], values: FloatArray) -> Cells:
    """Returns rows that sum to exactly one after rounding: the largest entry takes the rest."""
    shares = np.round(values / values.sum(axis=1, keepdims=True), 6)
    top = np.argmax(shares, axis=1)
    at = np.arange(len(shares))
    shares[at, top] = np.round(shares[at, top] + 1.0 - shares.sum(axis=1), 6)
    return {name: shares[:, index] for index, name in enumerate(columns)}


def softmax(logits: FloatArray) -> FloatArray:
    """Returns chances # [n_rows, n_classes] that sum to one."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def with_shares(logits: FloatArray, shares: FloatArray, rows: Rows) -> FloatArray:
    """Adds biases to logits # [n_rows, n_classes] so that the mean chances are the wanted shares."""
    hidden = logits[rows.part != TRAIN][:3000]
    bias = np.log(shares)
    for _ in range(40):
        bias = bias + np.log(shares / softmax(hidden + bias).mean(axis=0))
    return softmax(logits + np.round(bias, 6))


def _cut(signal: FloatArray, noise: FloatArray, plan: TaskPlan, rows: Rows) -> tuple[np.ndarray, FloatArray, str]:
    slope = plan.noise.signal
    latent = slope * signal[:, 0] + noise[:, 0]
    borders = np.round(np.quantile(latent[rows.part != TRAIN], np.cumsum(plan.label_shares)[:-1]), 4)
    below = ndtr(borders[None, :] - slope * signal[:, :1])
    ends = np.zeros((rows.n, 1))
    chances = np.diff(np.hstack([ends, below, ends + 1.0]), axis=1)
    words = f"The level is {slope} * signal + noise, cut at {borders.tolist()}."
    return np.searchsorted(borders, latent), chances, words
