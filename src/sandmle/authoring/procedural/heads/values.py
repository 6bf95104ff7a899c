"""Heads of numbers: values, a value with its confidence, a position, a direction."""

import numpy as np
from scipy.special import ndtri
from typing_extensions import override

from sandmle.authoring.procedural.families.base import FloatArray, Rows
from sandmle.authoring.procedural.heads.base import Cells, Head, Mode, Realised
from sandmle.authoring.randomness import rng_for

# Deviation of the logarithm of a skewed target.
_MOST_SKEW = 0.4
# Nodes of the noise's distribution, for expectations over it.
_NODES = ndtri((np.arange(41) + 0.5) / 41)


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
