"""Texts, traces and pictures: puts together what the insights add to each, and writes PNG files."""

import io

import numpy as np
from PIL import Image

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import Context, Rows, Sample
from sandmle.authoring.procedural.words import common_words
from sandmle.records import ColumnSpec

IMAGE_COLUMN = "image"
TEXT_COLUMN = "note"
TRACE_PREFIX = "t_"


def draw_image_shape(rng: np.random.Generator) -> tuple[int, int, int]:
    """Returns height, width and channels of a task's pictures."""
    size = int(rng.choice([16, 20, 24]))
    return size, size, int(rng.choice([1, 3]))


def assemble(
    plan: TaskPlan, context: Context, samples: list[Sample], rows: Rows, rng: np.random.Generator
) -> tuple[list[ColumnSpec], dict[str, np.ndarray], np.ndarray | None]:
    """Returns columns of texts and traces with their descriptions, and pictures # [n_rows, height, width, channels].

    Args:
        plan: The plan.
        context: Where sizes and words come from.
        samples: What every insight adds.
        rows: The rows.
        rng: For what does not count: filler sentences, background.
    """
    specs: list[ColumnSpec] = []
    columns: dict[str, np.ndarray] = {}
    sentences = [sample.sentences for sample in samples if sample.sentences is not None]
    if sentences:
        columns[TEXT_COLUMN] = _texts(sentences, rows, rng)
        specs.append(ColumnSpec(name=TEXT_COLUMN, type="text", description=f"What was written about the {plan.entity}"))
    traces = [sample.trace for sample in samples if sample.trace is not None]
    if traces:
        name, unit, meaning = context.pool.take("traces")
        total = np.sum(traces, axis=0) + 0.15 * rng.normal(size=traces[0].shape)
        for step in range(context.trace_length):
            label = f"{TRACE_PREFIX}{step:02d}"
            columns[label] = np.round(total[:, step], 3)
            specs.append(ColumnSpec(name=label, type="number", description=f"{meaning}, sample {step}", unit=unit))
        del name
    layers = [layer for sample in samples for layer in sample.layers]
    if not layers:
        return specs, columns, None
    specs.append(ColumnSpec(name=IMAGE_COLUMN, type="path", description="Picture, as a path below ./input"))
    columns[IMAGE_COLUMN] = np.full(rows.n, "", dtype=object)
    return specs, columns, _pictures(layers, context.image_shape, rows, rng)


def _texts(sentences: list[list[list[str]]], rows: Rows, rng: np.random.Generator) -> np.ndarray:
    words = common_words()
    filler = np.array(words.neutral, dtype=object)[rng.integers(len(words.neutral), size=(rows.n, 2))]
    count = rng.integers(1, 3, size=rows.n)
    shuffle = rng.random((rows.n, 64))
    texts = []
    for row in range(rows.n):
        parts = [sentence for source in sentences for sentence in source[row]] + filler[row, : count[row]].tolist()
        order = np.argsort(shuffle[row, : len(parts)])
        texts.append(" ".join(_sentence(parts[at]) for at in order))
    return np.array(texts, dtype=object)


def _sentence(text: str) -> str:
    ended = text if text[-1] in ".!?" else f"{text}."
    return ended[0].upper() + ended[1:]


def _pictures(
    layers: list[tuple[np.ndarray, np.ndarray]],
    shape: tuple[int, int, int],
    rows: Rows,
    rng: np.random.Generator,
) -> np.ndarray:
    height, width, channels = shape
    canvas = rng.standard_normal((rows.n, height, width, 1), dtype=np.float32) * np.float32(0.05) + np.float32(0.42)
    canvas = np.repeat(canvas, channels, axis=-1)
    for opacity, colour in layers:
        ink = colour[:, None, None, :channels].astype(np.float32)
        canvas += opacity[..., None].astype(np.float32) * (ink - canvas)
    return np.asarray(np.clip(np.rint(canvas * np.float32(255)), 0, 255), dtype=np.uint8)


def png_bytes(pixels: np.ndarray) -> bytes:
    """Returns one picture # [height, width, channels] as a PNG file without any metadata."""
    out = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(out, format="PNG", compress_level=1)
    return out.getvalue()
