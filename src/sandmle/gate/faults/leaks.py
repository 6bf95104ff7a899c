"""Leaks: something beside the honest inputs tells the answers."""

import io
import os
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.stats import rankdata

from sandmle.gate.base import GateContext
from sandmle.gate.faults.base import (
    SAMPLE,
    TEST,
    TRAIN,
    Injection,
    Leak,
    csv_bytes,
    draw_leak,
    jittered,
    renamed_ids,
)
from sandmle.grading import Predictions
from sandmle.records import ColumnSpec, PredictionKind

_DAY_NS = 86_400 * 10**9
_COLUMN = "reading_z"
Change = Callable[[bytes, int], bytes]


def label_column(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A further input column that is the answer in another unit, with a little noise."""
    leak = draw_leak(context, strength, rng)
    if leak is None:
        return None
    spread = 0.02 * float(np.std(leak.train)) + 1e-9
    values = [11.0 - 3.0 * (part + rng.normal(0, spread, len(part))) for part in (leak.train, leak.test)]
    return _with_column(context, values[0], values[1], leak.cheat)


def single_column_oracle(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A further input column that is what the hidden rule predicts, under noise."""
    kind = context.spec.target.kind
    if context.oracle is None or kind not in (PredictionKind.PROBABILITY, PredictionKind.VALUES):
        return None
    leak = draw_leak(context, 1.0, rng)
    clean = np.asarray(context.oracle.values, dtype=float).reshape(len(context.answers), -1)
    if leak is None or np.ptp(clean[:, 0]) == 0:
        return None
    mean, scale = clean[:, 0].mean(), clean[:, 0].std()
    noise = np.sqrt(1 - strength**2)
    shown = strength * (clean[:, 0] - mean) / scale + noise * rng.normal(size=len(clean))
    rows = [context.grader.key.position[row_id] for row_id in context.test[context.spec.id_column]]
    # The rule's predictions of training rows are not in a bundle: their answers stand in.
    known = (leak.train - leak.train.mean()) / (leak.train.std() + 1e-9)
    train = strength * known + noise * rng.normal(size=len(known))
    guess = clean.copy()
    guess[:, 0] = mean + strength * scale * shown
    guess[:, 1:] = clean[:, 1:].mean(axis=0)
    if kind is PredictionKind.PROBABILITY:
        return _with_column(context, train, shown[rows], Predictions(guess[:, 0].clip(0.01, 0.99)))
    return _with_column(context, train, shown[rows], Predictions(guess))


def _with_column(context: GateContext, train: np.ndarray, test: np.ndarray, cheat: Predictions) -> Injection:
    text = context.bundle.description() + f"\n- `{_COLUMN}`: a further reading, in its own unit.\n"
    files: dict[str, bytes | None] = {"description.md": text.encode()}
    for path, frame, values in ((TRAIN, context.train, train), (TEST, context.test, test)):
        files[path] = csv_bytes(frame.assign(**{_COLUMN: [f"{value:.5f}" for value in values]}))
    columns = (*context.spec.columns, ColumnSpec(name=_COLUMN, type="number"))
    return Injection(files, context.spec.replace(columns=columns), cheat)


def sample_submission(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """A sample submission that was made from the answers."""
    if context.spec.target.kind not in (PredictionKind.PROBABILITY, PredictionKind.VALUES):
        return None
    leak = draw_leak(context, strength, rng)
    if leak is None:
        return None
    key, frame = context.grader.key, context.table(SAMPLE)
    values = np.asarray(leak.cheat.values, dtype=float).reshape(len(key.ids), -1)
    rows = [key.position[row_id] for row_id in frame[context.spec.id_column]]
    cells = {name: [repr(float(v)) for v in values[rows, at]] for at, name in enumerate(context.spec.target.columns)}
    return Injection({SAMPLE: csv_bytes(frame.assign(**cells))}, cheat=leak.cheat)


def id_order(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Ids numbered in the order of the answers, training and test rows each."""
    leak = draw_leak(context, strength, rng)
    if leak is None:
        return None
    new: dict[str, str] = {}
    for frame, values, first in ((context.train, leak.train, 10_000), (context.test, leak.test, 50_000)):
        places = jittered(values, rng).astype(int)
        new.update({own: f"k{first + at}" for own, at in zip(frame[context.spec.id_column], places, strict=True)})
    return Injection(renamed_ids(context, new), cheat=leak.cheat)


def id_parity(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Ids that are odd where the answer is high."""
    leak = draw_leak(context, strength, rng)
    if leak is None or len(np.unique(leak.test)) != 2:
        return None
    middle = float(np.unique(leak.test).mean())
    new: dict[str, str] = {}
    for frame, values, first in ((context.train, leak.train, 10_000), (context.test, leak.test, 50_000)):
        numbers = first + 2 * rng.permutation(len(values)) + (values > middle)
        new.update({own: f"k{number}" for own, number in zip(frame[context.spec.id_column], numbers, strict=True)})
    return Injection(renamed_ids(context, new), cheat=leak.cheat)


def row_order(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Rows of train.csv and test.csv in the order of the answers."""
    leak = draw_leak(context, strength, rng)
    if leak is None or context.spec.dna.time_ordered:
        return None
    return Injection(
        {
            path: csv_bytes(frame.iloc[np.argsort(jittered(values, rng))])
            for path, frame, values in ((TRAIN, context.train, leak.train), (TEST, context.test, leak.test))
        },
        cheat=leak.cheat,
    )


def _media_leak(
    context: GateContext, strength: float, rng: np.random.Generator
) -> tuple[Leak, str, dict[str, int]] | None:
    """Returns a leak, the media column, and one of four grades for each file."""
    leak = draw_leak(context, strength, rng)
    if leak is None or not context.media_columns:
        return None
    name = context.media_columns[0]
    grades: dict[str, int] = {}
    for frame, values in ((context.train, leak.train), (context.test, leak.test)):
        ranks = (
            rankdata(values, "dense") - 1 if len(np.unique(values)) <= 4 else 4 * (rankdata(values) - 1) / len(values)
        )
        grades.update(zip(frame[name], ranks.astype(int).tolist(), strict=True))
    return leak, name, grades


def file_names(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """File names that hold the grade of the answer."""
    found = _media_leak(context, strength, rng)
    if found is None:
        return None
    leak, column, grades = found
    new = {old: f"{Path(old).parent}/{'abcd'[grade % 4]}_{Path(old).name}" for old, grade in grades.items()}
    files: dict[str, bytes | None] = {}
    for old, name in new.items():
        files[f"public/{name}"] = context.media[old].read_bytes()
        files[f"public/{old}"] = None
    for path, frame in ((TRAIN, context.train), (TEST, context.test)):
        files[path] = csv_bytes(frame.assign(**{column: frame[column].map(new)}))
    return Injection(files, cheat=leak.cheat)


def file_times(context: GateContext, strength: float, rng: np.random.Generator) -> Injection | None:
    """Files written in the order of the answers' grades."""
    found = _media_leak(context, strength, rng)
    if found is None:
        return None
    leak, _, grades = found

    def after(root: Path) -> None:
        for name, grade in grades.items():
            time_ns = (18_262 + grade) * _DAY_NS
            os.utime(root / "public" / name, ns=(time_ns, time_ns))

    return Injection(cheat=leak.cheat, after=after)


def _changed_media(
    suffix: str, change: Change, context: GateContext, strength: float, rng: np.random.Generator
) -> Injection | None:
    found = _media_leak(context, strength, rng)
    if found is None or any(Path(name).suffix.lower() != suffix for name in found[2]):
        return None
    leak, _, grades = found
    files = {f"public/{name}": change(context.media[name].read_bytes(), grade) for name, grade in grades.items()}
    return Injection(files, cheat=leak.cheat)


def _split_png(data: bytes, grade: int) -> bytes:
    """Splits the first data chunk in two for every grade: the pixels are the same, the file is longer."""
    at = data.index(b"IDAT") - 4
    (length,) = struct.unpack(">I", data[at : at + 4])
    body, rest = data[at + 8 : at + 8 + length], data[at + 12 + length :]
    cuts = [0, *range(1, min(grade, length - 1) + 1), length]
    parts = [body[first:last] for first, last in pairwise(cuts)]
    return data[:at] + b"".join(_chunk(b"IDAT", part) for part in parts) + rest


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png_text(data: bytes, grade: int) -> bytes:
    return data[:33] + _chunk(b"tEXt", f"Comment\x00batch {grade}".encode()) + data[33:]  # after the header chunk


def _png_exif(data: bytes, grade: int) -> bytes:
    out = io.BytesIO()
    with Image.open(io.BytesIO(data)) as picture:
        exif = Image.Exif()
        exif[0x010E] = f"batch {grade}"
        picture.save(out, format="PNG", exif=exif)
    return out.getvalue()


def _wav_list(data: bytes, grade: int) -> bytes:
    text = f"batch {grade} ".encode().ljust(10)
    chunk = b"LIST" + struct.pack("<I", 12 + len(text)) + b"INFOICMT" + struct.pack("<I", len(text)) + text
    return data[:4] + struct.pack("<I", len(data) - 8 + len(chunk)) + data[8:] + chunk


MEDIA_CHANGES: Mapping[str, Callable[[GateContext, float, np.random.Generator], Injection | None]] = {
    "file_sizes": partial(_changed_media, ".png", _split_png),
    "png_text": partial(_changed_media, ".png", _png_text),
    "exif": partial(_changed_media, ".png", _png_exif),
    "wav_metadata": partial(_changed_media, ".wav", _wav_list),
}
"""Faults that rewrite every media file by the grade of its row's answer."""
