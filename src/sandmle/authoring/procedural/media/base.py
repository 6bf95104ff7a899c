"""What the media of a task consist of."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from sandmle.authoring.procedural.families.base import FloatArray
from sandmle.authoring.procedural.media.board import Board
from sandmle.records import ColumnSpec


@dataclass(frozen=True)
class MediaFiles:
    """One file a row.

    Attributes:
        column: Column that names the file.
        folder: Folder below ``public``.
        suffix: Of the files.
        words: What a file holds, as a sentence of the description.
        write: Returns the file of a row by its number before any row was dropped.
        rows: These numbers # [n_rows]
    """

    column: str
    folder: str
    suffix: str
    words: str
    write: Callable[[int], bytes]
    rows: np.ndarray

    def file_of(self, row: int) -> bytes:
        """Returns the file of one row."""
        return self.write(int(self.rows[row]))

    def take(self, rows: np.ndarray) -> "MediaFiles":
        """Returns the files of some rows."""
        return replace(self, rows=self.rows[rows])


@dataclass
class Material:
    """What the media add to a data set. With pieces, ``inputs`` and ``blocks`` hold one line a piece.

    Attributes:
        specs: Columns of the files.
        columns: Their values # each [n_rows]
        input_specs: Columns that a solver without ideas reads.
        inputs: Their values # each [n]
        blocks: Plain numbers of what is no column: thumbnails, loudness over time # each [n, n_numbers]
        files: Media files.
        names: What each piece is called or reads like # [n_rows, n_pieces]; None where nothing names them.
        board: Where the pieces stand in the pictures; None where there are none.
    """

    specs: list[ColumnSpec] = field(default_factory=list)
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    input_specs: list[ColumnSpec] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    blocks: list[FloatArray] = field(default_factory=list)
    files: list[MediaFiles] = field(default_factory=list)
    names: np.ndarray | None = None
    board: Board | None = None

    def add_column(self, spec: ColumnSpec, values: np.ndarray, *, is_input: bool = True) -> None:
        """Adds a column of the files; with ``is_input`` a solver reads it as it is."""
        self.specs.append(spec)
        self.columns[spec.name] = values
        if is_input:
            self.input_specs.append(spec)
            self.inputs[spec.name] = values

    def add_files(self, files: MediaFiles, description: str) -> None:
        """Adds one file a row, with the column that names it."""
        self.specs.append(ColumnSpec(name=files.column, type="path", description=description))
        self.columns[files.column] = np.full(len(files.rows), "", dtype=object)
        self.files.append(files)
