"""All rows of a task with everything that is known of them, before any file is written."""

from dataclasses import dataclass, replace

import numpy as np

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import CALIBRATION, TEST, TRAIN, FloatArray, Insight, Rows
from sandmle.authoring.procedural.heads import Cells, Head, Scene
from sandmle.authoring.procedural.media import MediaFiles
from sandmle.records import ColumnSpec


@dataclass(frozen=True)
class Dataset:
    """Train, test and calibration rows of one task, in this order.

    Where rows are made of pieces, all that solvers learn from is by piece (n), all that is published by row (n_rows).

    Attributes:
        plan: The plan it was made by.
        head: The target's head.
        rows: Part, entity and day of every row or piece.
        specs: Public columns in the order of the files.
        columns: Public columns as published, by name; each # [n_rows]
        files: Media files.
        input_specs: Columns that a solver without ideas reads.
        inputs: Their values; each # [n]
        blocks: Plain numbers of what is no column, by medium; each # [n, n_numbers]
        scene: What a piecewise target points at.
        insights: The drawn insights, in the plan's order.
        aware: Features that a solver with each insight computes from the published data; each # [n, n_features]
        y: Targets in the head's mode.
        oracle: Predictions of the hidden rule without its noise.
        rule: The hidden rule as Markdown.
    """

    plan: TaskPlan
    head: Head
    rows: Rows
    specs: tuple[ColumnSpec, ...]
    columns: dict[str, np.ndarray]
    files: tuple[MediaFiles, ...]
    input_specs: tuple[ColumnSpec, ...]
    inputs: dict[str, np.ndarray]
    blocks: tuple[FloatArray, ...]
    scene: Scene
    insights: tuple[Insight, ...]
    aware: tuple[FloatArray, ...]
    y: np.ndarray
    oracle: FloatArray
    rule: str

    def where(self, part: int) -> np.ndarray:
        """Returns the numbers of the rows, or of the pieces, of TRAIN, TEST or CALIBRATION."""
        return np.flatnonzero(self.rows.part == part)

    def rows_where(self, part: int) -> np.ndarray:
        """Returns the numbers of the rows of the files of TRAIN, TEST or CALIBRATION."""
        return np.flatnonzero(self.rows.part[:: self.rows.n_pieces] == part)

    @property
    def n_rows(self) -> int:
        """Rows of the files."""
        return self.rows.n // self.rows.n_pieces

    def answers(self, at: np.ndarray) -> Cells:
        """Returns the answers of some rows of the files."""
        return self.head.answer_rows(self.y[self.rows.pieces_of(at)], self.scene.take(at))

    def decoded(self, at: np.ndarray, predictions: FloatArray, option: float) -> Cells:
        """Returns predictions for all pieces of some rows of the files as submission cells."""
        return self.head.decode_rows(predictions, option, self.scene.take(at))

    def constant(self, at: np.ndarray, option: float) -> Cells:
        """Returns what looks at no feature, for some rows of the files, as submission cells."""
        return self.head.constant_rows(self.y[self.where(TRAIN)], option, self.scene.take(at))

    def side(self, at: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the columns beside the predictions that the metric reads, for some rows."""
        return {side.name: self.columns[side.name][at] for side in self.plan.side_columns}

    def take(self, rows: np.ndarray) -> "Dataset":
        """Returns a data set of some rows of the files."""
        pieces = self.rows.pieces_of(rows)
        return replace(
            self,
            rows=self.rows.take(pieces),
            columns={name: values[rows] for name, values in self.columns.items()},
            files=tuple(files.take(rows) for files in self.files),
            inputs={name: values[pieces] for name, values in self.inputs.items()},
            blocks=tuple(block[pieces] for block in self.blocks),
            scene=self.scene.take(rows),
            aware=tuple(features[pieces] for features in self.aware),
            y=self.y[pieces],
            oracle=self.oracle[pieces],
        )


__all__ = ["CALIBRATION", "TEST", "TRAIN", "Dataset"]
