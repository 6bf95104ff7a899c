"""The one CSV reader for bytes that may be hostile, and a fast writer.

Cells stay text: ``NA``, ``None`` and ``nan`` are words here, and nothing is unpacked, unpickled or evaluated.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sandmle.errors import UserError

# How other formats begin, with the words for them.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive (or an Excel workbook)"),
    (b"\x1f\x8b", "compressed with gzip"),
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ\x00", "compressed with xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstandard"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"%PDF", "a PDF file"),
)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


class TableError(UserError):
    """Bytes that cannot be read as a table; the message says why in words, without naming the file."""


@dataclass(frozen=True)
class Caps:
    """How much is read at most."""

    size_bytes: int = 32 * 1024 * 1024
    rows: int = 1_000_000
    columns: int = 10_000
    cells: int = 5_000_000
    """Commas and line ends, counted before anything is split."""
    cell_chars: int = 131_072
    """No more than the csv module's own limit, 131072."""


DEFAULT_CAPS = Caps()


@dataclass(frozen=True)
class Table:
    """A header and rows of text, all rows as long as the header."""

    header: tuple[str, ...]
    rows: list[list[str]]  # [n_rows][n_columns]
    text: str
    """The decoded file, for line numbers."""

    def column(self, name: str) -> list[str]:
        """Returns the cells of a column.

        Raises:
            KeyError: There is no such column.
        """
        if name not in self.header:
            raise KeyError(name)
        position = self.header.index(name)
        return [row[position] for row in self.rows]

    def line_of(self, row: int) -> int:
        """Returns the line of the file, counted from 1, on which a row (counted from 0 below the header) begins."""
        reader = _reader(self.text)
        seen, before = -2, 0
        for cells in reader:
            seen += bool(cells)
            if seen == row:
                return before + 1
            before = reader.line_num
        raise IndexError(row)


def read_header(data: bytes, caps: Caps = DEFAULT_CAPS) -> tuple[str, ...]:
    """Returns the column names alone, so that a file of the wrong columns is refused before its rows are read.

    Raises:
        TableError: There is no table, see :func:`read_table`.
    """
    return _header(_reader(_decode(data, caps)), caps)


def read_table(data: bytes, caps: Caps = DEFAULT_CAPS) -> Table:
    """Reads comma-separated UTF-8 with a header row; a byte-order mark, CRLF and blank lines do no harm.

    Reading stops at the first row that is not as long as the header.

    Args:
        data: The file.
        caps: What is refused as too large.

    Raises:
        TableError: It is something else, is broken, or exceeds a cap.
    """
    text = _decode(data, caps)
    reader = _reader(text)
    header = _header(reader, caps)
    width = len(header)
    table = Table(header=header, rows=[], text=text)
    try:
        for row in reader:
            if len(row) == width:
                table.rows.append(row)
            elif row:
                line = table.line_of(len(table.rows))
                raise TableError(f"line {line} has {len(row)} cells, the header has {width}")
            if len(table.rows) > caps.rows:
                raise TableError(f"it has more than {caps.rows} rows")
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} is not CSV: {error}") from error
    if caps.cell_chars < csv.field_size_limit():
        _check_cells(table, caps)
    return table


def count_rows(data: bytes, caps: Caps = DEFAULT_CAPS) -> int:
    """Returns how many rows a table has, without keeping them.

    Raises:
        TableError: It is no table, see :func:`read_table`.
    """
    reader = _reader(_decode(data, caps))
    _header(reader, caps)
    try:
        return sum(bool(row) for row in reader)
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} is not CSV: {error}") from error


def write_table(columns: Mapping[str, Sequence[Any] | np.ndarray], *, decimals: int | None = None) -> bytes:
    """Returns columns as CSV bytes that :func:`read_table` reads back.

    Args:
        columns: Cells by column name, all of one length. None and NaN become empty cells.
        decimals: Digits after the point that float columns are rounded to; None keeps every digit.

    Raises:
        ValueError: The columns differ in length.
    """
    rows = list(zip(*(_cells(column, decimals) for column in columns.values()), strict=True))
    text = _written(columns, rows, csv.QUOTE_MINIMAL)
    if "\r" in text:  # Python's writer leaves a bare carriage return unquoted, and readers take it for a line's end
        text = _written(columns, rows, csv.QUOTE_ALL)
    return text.encode()


def _written(header: Iterable[str], rows: list[tuple[Any, ...]], quoting: Literal[0, 1]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=quoting)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _cells(column: Sequence[Any] | np.ndarray, decimals: int | None) -> list[Any]:
    values = column if isinstance(column, list) else np.asarray(column)
    if isinstance(values, list):
        return [None if isinstance(value, float) and value != value else value for value in values]
    if values.dtype.kind != "f":
        cells: list[Any] = values.tolist()
        return cells
    rounded = values.astype(float) if decimals is None else values.astype(float).round(decimals)
    missing = np.isnan(rounded)
    plain: list[Any] = rounded.tolist()
    return [None if gone else cell for cell, gone in zip(plain, missing, strict=True)] if missing.any() else plain


def _reader(text: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), strict=True)


def _decode(data: bytes, caps: Caps) -> str:
    if not data.strip():
        raise TableError("it is empty")
    if len(data) > caps.size_bytes:
        raise TableError(f"it has {len(data)} bytes, more than the {caps.size_bytes} allowed")
    for signature, words in _SIGNATURES:
        if data.startswith(signature):
            raise TableError(f"it is {words}, not CSV text")
    if data.startswith(_UTF16_MARKS):
        raise TableError("it is UTF-16 text; write it as UTF-8")
    body = data.removeprefix(_UTF8_MARK)
    if b"\x00" in body:
        sample = body[:200]
        wide = sample.count(0) >= len(sample) // 3
        raise TableError(
            "it is UTF-16 text; write it as UTF-8" if wide else "it holds NUL bytes, so it is not CSV text"
        )
    if sum(body.count(mark) for mark in (b",", b"\n", b"\r")) > caps.cells:
        raise TableError(f"it has more than {caps.cells} cells and lines")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"line {line} is not UTF-8 text (byte 0x{body[error.start]:02x}); write it as UTF-8"
        ) from error


def _check_cells(table: Table, caps: Caps) -> None:
    for index, row in enumerate(table.rows):
        longest = max(map(len, row))
        if longest > caps.cell_chars:
            where = f"line {table.line_of(index)}"
            raise TableError(f"{where} has a cell of {longest} characters, more than the {caps.cell_chars} allowed")


def _header(reader: Any, caps: Caps) -> tuple[str, ...]:
    try:
        header = next((cells for cells in reader if cells), None)
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} is not CSV: {error}") from error
    if header is None:
        raise TableError("it holds no header and no rows")
    if len(header) > caps.columns:
        raise TableError(f"it has {len(header)} columns, more than the {caps.columns} allowed")
    if len(header) == 1:
        for separator, words in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if separator in header[0]:
                raise TableError(f"its columns are separated by {words}; separate them by commas")
    return tuple(header)
