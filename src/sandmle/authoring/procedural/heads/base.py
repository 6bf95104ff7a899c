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

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import FloatArray, Rows

Mode = Literal["classes", "labels", "values"]
Cells = dict[str, np.ndarray]


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
