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
from sandmle.authoring.procedural.media.board import Board

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


@dataclass(frozen=True)
class Scene:
    """What the pieces of some rows look like, where a target points at them.

    Attributes:
        n_rows: Rows of the files.
        names: What each piece is called or reads like # [n_rows, n_pieces]; None where nothing names them.
        board: Where the pieces stand in the pictures; None where there are none.
    """

    n_rows: int
    names: np.ndarray | None = None
    board: Board | None = None

    def take(self, rows: np.ndarray) -> "Scene":
        """Returns the scene of some rows."""
        names = None if self.names is None else self.names[rows]
        return Scene(len(rows), names, None if self.board is None else self.board.take(rows))


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

    def answer_rows(self, y: np.ndarray, scene: Scene) -> Cells:
        """Returns the answers of rows of the files; ``y`` has a line for each of their pieces."""
        del scene
        return self.answers(y)

    def decode_rows(self, predictions: FloatArray, option: float, scene: Scene) -> Cells:
        """Returns predictions for rows of the files as submission cells."""
        del scene
        return self.decode(predictions, option)

    def constant_rows(self, y_train: np.ndarray, option: float, scene: Scene) -> Cells:
        """Returns what looks at no feature as submission cells."""
        return self.decode_rows(np.repeat(self.dummy(y_train), scene.n_rows, axis=0), option, scene)

    def constant_options(self, y_train: np.ndarray) -> tuple[float, ...]:
        """Returns the ways to write what looks at no feature."""
        return self.options(y_train)

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
