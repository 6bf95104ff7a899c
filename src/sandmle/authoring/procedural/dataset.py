"""All rows of a task with everything that is known of them, before any file is written."""

from dataclasses import dataclass

import numpy as np

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import CALIBRATION, TEST, TRAIN, FloatArray, Insight, Rows
from sandmle.authoring.procedural.heads import Head
from sandmle.records import ColumnSpec


@dataclass(frozen=True)
class Dataset:
    """Train, test and calibration rows of one task, in this order.

    Attributes:
        plan: The plan it was made by.
        head: The target's head.
        rows: Part, entity and day of every row.
        specs: Public columns in the order of the files.
        columns: Public columns as published, by name; each # [n_rows]
        pixels: Pictures # [n_rows, height, width, channels] as bytes; None if there are none.
        insights: The drawn insights, in the plan's order.
        aware: Features that a solver with each insight computes from the published data; each # [n_rows, n_features]
        y: Targets in the head's mode.
        oracle: Predictions of the hidden rule without its noise.
        rule: The hidden rule as Markdown.
    """

    plan: TaskPlan
    head: Head
    rows: Rows
    specs: tuple[ColumnSpec, ...]
    columns: dict[str, np.ndarray]
    pixels: np.ndarray | None
    insights: tuple[Insight, ...]
    aware: tuple[FloatArray, ...]
    y: np.ndarray
    oracle: FloatArray
    rule: str

    def where(self, part: int) -> np.ndarray:
        """Returns the numbers of the rows of TRAIN, TEST or CALIBRATION."""
        return np.flatnonzero(self.rows.part == part)

    def side(self, at: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the columns beside the predictions that the metric reads, for some rows."""
        return {side.name: self.columns[side.name][at] for side in self.plan.side_columns}


__all__ = ["CALIBRATION", "TEST", "TRAIN", "Dataset"]
