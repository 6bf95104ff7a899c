"""Heads of targets that are put together from the pieces of a row: masks, boxes, orders, spans, phrases.

Solvers predict for each piece; ``decode_rows`` turns that into one cell a row.
"""

from abc import abstractmethod

import numpy as np
from typing_extensions import override

from sandmle.authoring.procedural.families.base import TRAIN, FloatArray, Rows
from sandmle.authoring.procedural.heads.base import Cells, Head, Mode, Realised, Scene
from sandmle.authoring.procedural.heads.labels import softmax, with_shares
from sandmle.authoring.procedural.media.board import Board, run_lengths


class PieceHead(Head):
    """A target in one cell a row, made of what each piece is."""

    @override
    def answers(self, y: np.ndarray) -> Cells:
        raise TypeError("the answers of pieces need their scene")

    @override
    def decode(self, predictions: FloatArray, option: float) -> Cells:
        raise TypeError("the predictions for pieces need their scene")

    @override
    def answer_rows(self, y: np.ndarray, scene: Scene) -> Cells:
        return self._column([self.true_cell(values, scene, row) for row, values in enumerate(self._by_row(y))])

    @override
    def decode_rows(self, predictions: FloatArray, option: float, scene: Scene) -> Cells:
        by_row = self._by_row(predictions)
        return self._column([self.cell(values, option, scene, row) for row, values in enumerate(by_row)])

    @abstractmethod
    def true_cell(self, y: np.ndarray, scene: Scene, row: int) -> str:
        """Returns the answer of one row for what its pieces are."""

    @abstractmethod
    def cell(self, predictions: FloatArray, option: float, scene: Scene, row: int) -> str:
        """Returns the prediction for one row from those for its pieces # [n_pieces, n]."""

    def _by_row(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(-1, self.plan.n_pieces, *values.shape[1:])

    def _column(self, cells: list[str]) -> Cells:
        return {self.plan.target.columns[0]: np.array(cells, dtype=object)}


class _KindHead(PieceHead):
    """Each piece is of one kind, drawn from a softmax over the signal."""

    mode: Mode = "classes"
    what = "The kind of each piece"

    @override
    def n_levels(self) -> int:
        return len(self.plan.label_shares)

    @property
    @override
    def n_outputs(self) -> int:
        return 1 if self.n_levels() == 2 else self.n_levels()

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        del noise
        slope = self.plan.noise.signal
        logits = np.column_stack([np.zeros(rows.n), slope * signal]) if self.n_outputs == 1 else slope * signal
        chances = with_shares(logits, np.array(self.plan.label_shares), rows)
        y = np.minimum((rng.random((rows.n, 1)) > chances.cumsum(axis=1)).sum(axis=1), self.n_levels() - 1)
        return Realised(y, chances, f"{self.what} is drawn from softmax({slope} * signal + bias).")


def _board(scene: Scene) -> Board:
    if scene.board is None:
        raise TypeError("the pieces stand in no picture")
    return scene.board


class MaskHead(_KindHead):
    """The pixels of the pieces that are marked, as run lengths."""

    what = "Whether a piece is marked"

    @override
    def true_cell(self, y: np.ndarray, scene: Scene, row: int) -> str:
        return _board(scene).runs(row, y == 1)

    @override
    def cell(self, predictions: FloatArray, option: float, scene: Scene, row: int) -> str:
        return _board(scene).runs(row, predictions[:, 1] >= option)

    @override
    def options(self, y_train: np.ndarray) -> tuple[float, ...]:
        return (0.5, 0.3, 0.4, 0.6)

    @override
    def constant_options(self, y_train: np.ndarray) -> tuple[float, ...]:
        return (0.0, 1.0)

    @override
    def constant_rows(self, y_train: np.ndarray, option: float, scene: Scene) -> Cells:
        """Marks nothing, or with option 1 the whole picture."""
        cell = run_lengths(np.full(_board(scene).shape, option > 0))
        return self._column([cell] * scene.n_rows)


class BoxHead(_KindHead):
    """A box with its label for each piece that is none of the nameless kind, which is the first one."""

    @override
    def true_cell(self, y: np.ndarray, scene: Scene, row: int) -> str:
        board = _board(scene)
        found = [f"{self.labels[kind - 1]} 1 {board.box(row, at)}" for at, kind in enumerate(y.tolist()) if kind > 0]
        return " ".join(found)

    @override
    def cell(self, predictions: FloatArray, option: float, scene: Scene, row: int) -> str:
        board = _board(scene)
        found = []
        for at, chances in enumerate(predictions):
            kind = int(np.argmax(chances[1:]))
            if chances[kind + 1] >= option:
                found.append(f"{self.labels[kind]} {chances[kind + 1]:.3f} {board.box(row, at)}")
        return " ".join(found)

    @override
    def options(self, y_train: np.ndarray) -> tuple[float, ...]:
        return (0.05,) if self.plan.metric == "box_map" else (0.4, 0.3, 0.5, 0.2)

    @override
    def constant_options(self, y_train: np.ndarray) -> tuple[float, ...]:
        return (0.0,)

    @override
    def constant_rows(self, y_train: np.ndarray, option: float, scene: Scene) -> Cells:
        """Puts the commonest label round the middle of the picture."""
        height, width = _board(scene).shape
        label = self.labels[int(np.bincount(y_train[y_train > 0] - 1).argmax())]
        cell = f"{label} 0.500 {width // 4} {height // 4} {width // 2} {height // 2}"
        return self._column([cell] * scene.n_rows)


class PhraseHead(_KindHead):
    """A word for each piece, in their order."""

    @override
    def true_cell(self, y: np.ndarray, scene: Scene, row: int) -> str:
        return " ".join(self.labels[y])

    @override
    def cell(self, predictions: FloatArray, option: float, scene: Scene, row: int) -> str:
        return self.true_cell(np.argmax(predictions, axis=1), scene, row)

    @override
    def constant_rows(self, y_train: np.ndarray, option: float, scene: Scene) -> Cells:
        """Repeats the commonest word."""
        word = str(self.labels[int(np.bincount(y_train).argmax())])
        return self._column([" ".join([word] * self.plan.n_pieces)] * scene.n_rows)


class SpanHead(PieceHead):
    """One piece of each row, word by word as it stands there; in some rows none, where the metric knows of that."""

    mode: Mode = "classes"

    @property
    @override
    def n_outputs(self) -> int:
        return 1

    @override
    def n_levels(self) -> int:
        return 2

    @property
    def _may_be_none(self) -> bool:
        return self.plan.metric == "span_f1"

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        del noise
        slope, k = self.plan.noise.signal, self.plan.n_pieces
        logits = slope * signal.reshape(-1, k)
        words = f"The answer is one piece of the row, drawn from softmax({slope} * signal)"
        if self._may_be_none:
            none = float(np.round(np.quantile(logits[rows.part[::k] != TRAIN].max(axis=1), 0.3), 4))
            logits = np.column_stack([logits, np.full(len(logits), none)])
            words += f", or none, with the logit {none}"
        chances = softmax(logits)
        chosen = np.minimum((rng.random((len(logits), 1)) > chances.cumsum(axis=1)).sum(axis=1), logits.shape[1] - 1)
        y = (chosen[:, None] == np.arange(k)).astype(int).ravel()
        picked = chances[:, :k].reshape(-1, 1)
        return Realised(y, np.hstack([1 - picked, picked]), f"{words}.")

    def _names(self, scene: Scene, row: int) -> np.ndarray:
        if scene.names is None:
            raise TypeError("the pieces have no text")
        return np.asarray(scene.names[row])

    @override
    def true_cell(self, y: np.ndarray, scene: Scene, row: int) -> str:
        return str(self._names(scene, row)[int(y.argmax())]) if y.any() else ""

    @override
    def cell(self, predictions: FloatArray, option: float, scene: Scene, row: int) -> str:
        best = int(predictions[:, 1].argmax())
        return str(self._names(scene, row)[best]) if predictions[best, 1] >= option else ""

    @override
    def options(self, y_train: np.ndarray) -> tuple[float, ...]:
        return (0.3, 0.2, 0.25, 0.35, 0.4, 0.5) if self._may_be_none else (0.0,)

    @override
    def constant_options(self, y_train: np.ndarray) -> tuple[float, ...]:
        return (0.0,)

    @override
    def constant_rows(self, y_train: np.ndarray, option: float, scene: Scene) -> Cells:
        """Gives the first piece."""
        return self._column([str(self._names(scene, row)[0]) for row in range(scene.n_rows)])


class OrderHead(PieceHead):
    """The letters of a row's pieces, ordered by the noisy signal; solvers predict each piece's place."""

    mode: Mode = "values"

    @property
    @override
    def n_outputs(self) -> int:
        return 1

    @override
    def realise(self, signal: FloatArray, noise: FloatArray, rng: np.random.Generator, rows: Rows) -> Realised:
        slope, k = self.plan.noise.signal, self.plan.n_pieces
        latent = (slope * signal + noise).reshape(-1, k)
        places = np.argsort(np.argsort(latent, axis=1), axis=1) / (k - 1)
        return Realised(places.reshape(-1, 1), signal, f"The pieces are in the order of {slope} * signal + noise.")

    @override
    def true_cell(self, y: np.ndarray, scene: Scene, row: int) -> str:
        if scene.names is None:
            raise TypeError("the pieces have no letters")
        return " ".join(scene.names[row][np.argsort(y[:, 0], kind="stable")])

    @override
    def cell(self, predictions: FloatArray, option: float, scene: Scene, row: int) -> str:
        return self.true_cell(predictions, scene, row)

    @override
    def constant_rows(self, y_train: np.ndarray, option: float, scene: Scene) -> Cells:
        """Leaves the pieces as they stand."""
        return self.decode_rows(np.zeros((scene.n_rows * self.plan.n_pieces, 1)), option, scene)
