"""What a data script made, as the host reads it: text cells and raw media, none of it trusted."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sandmle.authoring.media_files import png_bytes, wav_bytes
from sandmle.authoring.roles.outputs import TaskIdea
from sandmle.authoring.roles.reading import Complaint
from sandmle.grading import Table, TableError, read_table
from sandmle.records import ExecResult

SAMPLE_RATE_HZ = 8000
_COMPRESS_LEVEL = 1
_MOST_PIXELS = 128 * 128
_MOST_SAMPLES = 32_000
_MOST_CHARS = 20_000
_SUFFIX = {"uint8": ".png", "int16": ".wav", "text": ".txt"}
PARTS = ("train", "test", "oracle")


@dataclass(frozen=True)
class MediaFile:
    """One picture, sound or document.

    Attributes:
        suffix: Of the file's name.
        data: The file, without any metadata.
    """

    suffix: str
    data: bytes


@dataclass(frozen=True)
class Draw:
    """One call of ``make_data``: columns of text cells by part, and media by number.

    Attributes:
        train, test: Public columns and targets. Cells of path columns are numbers of media.
        oracle: The hidden rule's predictions for the test rows.
        media: All media.
    """

    train: Mapping[str, list[str]]
    test: Mapping[str, list[str]]
    oracle: Mapping[str, list[str]]
    media: tuple[MediaFile, ...]


def read_draw(result: ExecResult, name: str, idea: TaskIdea, *, n_train: int, n_test: int) -> Draw:
    """Returns one draw of a data script's run.

    Raises:
        Complaint: What was written is not what the idea says.
    """
    tables = {part: _table(result, f"{name}/{part}.csv", part) for part in PARTS}
    wanted = [*(column.name for column in idea.columns), *idea.target.columns]
    for part, columns, n_rows in (
        ("train", wanted, n_train),
        ("test", wanted, n_test),
        ("oracle", list(idea.target.columns), n_test),
    ):
        _check_table(tables[part], part, columns, n_rows)
    media = _media(result, name)
    found = {part: {c: table.column(c) for c in table.header} for part, table in tables.items()}
    for part in ("train", "test"):
        for column in idea.path_columns:
            found[part][column] = [str(_number(cell, len(media))) for cell in found[part][column]]
    return Draw(
        train={c: found["train"][c] for c in wanted},
        test={c: found["test"][c] for c in wanted},
        oracle={c: found["oracle"][c] for c in idea.target.columns},
        media=media,
    )


def _table(result: ExecResult, path: str, part: str) -> Table:
    data = result.file(path)
    if data is None:
        raise Complaint("data_script", f"make_data.py wrote no table {part!r}")
    try:
        return read_table(data)
    except TableError as error:
        raise Complaint("data_script", f"the table {part!r} cannot be read: {error}") from error


def _check_table(table: Table, part: str, columns: Sequence[str], n_rows: int) -> None:
    missing = [name for name in columns if name not in table.header]
    extra = [name for name in table.header if name not in columns]
    if missing:
        raise Complaint("data_script", f"the table {part!r} lacks the column {missing[0]!r}")
    if extra:
        raise Complaint("data_script", f"the table {part!r} has the column {extra[0]!r}, which the plan does not name")
    if len(table.rows) != n_rows:
        raise Complaint("data_script", f"the table {part!r} has {len(table.rows)} rows; {n_rows} were asked for")


def _number(cell: str, n_media: int) -> int:
    if not cell.isascii() or not cell.isdigit() or int(cell) >= n_media:
        raise Complaint("data_script", "a path column names media that were not written")
    return int(cell)


def _media(result: ExecResult, name: str) -> tuple[MediaFile, ...]:
    blob, raw = result.file(f"{name}/media.bin"), result.file(f"{name}/media.json")
    if blob is None or raw is None:
        raise Complaint("data_script", "the media of the data script were not written")
    found: list[MediaFile] = []
    position = 0
    try:
        for kind, shape, size in json.loads(raw):
            content = blob[position : position + int(size)]
            position += int(size)
            found.append(_encoded(str(kind), [int(side) for side in shape], content))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Complaint("data_script", "the index of the media is broken") from error
    return tuple(found)


def _encoded(kind: str, shape: list[int], content: bytes) -> MediaFile:
    if kind == "text":
        if len(content) > _MOST_CHARS:
            raise Complaint("data_script", f"a document has {len(content)} bytes; at most {_MOST_CHARS} are allowed")
        return MediaFile(_SUFFIX[kind], content.decode("utf-8", errors="replace").encode())
    if kind == "uint8":
        is_picture = len(shape) in (2, 3) and (len(shape) == 2 or shape[2] in (1, 3)) and min(shape[:2]) >= 4
        if not is_picture or math.prod(shape) != len(content) or shape[0] * shape[1] > _MOST_PIXELS:
            raise Complaint(
                "data_script",
                f"a picture has the shape {shape}; give [height, width] or [height, width, 3], at most 128 by 128",
            )
        pixels = np.frombuffer(content, np.uint8).reshape(shape)
        return MediaFile(_SUFFIX[kind], png_bytes(pixels, compress_level=_COMPRESS_LEVEL))
    if kind == "int16":
        if len(shape) != 1 or 2 * shape[0] != len(content) or not 64 <= shape[0] <= _MOST_SAMPLES:
            raise Complaint("data_script", f"a sound has the shape {shape}; give 64 to {_MOST_SAMPLES} samples")
        return MediaFile(_SUFFIX[kind], wav_bytes(np.frombuffer(content, np.int16), rate_hz=SAMPLE_RATE_HZ))
    raise Complaint("data_script", f"media of the kind {kind!r} are not known")
