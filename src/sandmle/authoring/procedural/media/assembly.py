"""Puts together what all insights add to each medium."""

import numpy as np

from sandmle.authoring.media_files import png_bytes
from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import Context, Medium, Rows, Sample, Web
from sandmle.authoring.procedural.families.letters import ALPHABET
from sandmle.authoring.procedural.media.base import Material, MediaFiles
from sandmle.authoring.procedural.media.board import Board
from sandmle.authoring.procedural.media.pictures import COMPRESS_LEVEL, painted, thumbnails
from sandmle.authoring.procedural.media.shapes import cloud_bytes, cloud_means, graph_bytes, node_counts, tied
from sandmle.authoring.procedural.media.waves import loudness, series_bytes, sound_bytes
from sandmle.authoring.procedural.words import common_words
from sandmle.records import ColumnSpec, PredictionKind

TRACE_PREFIX = "t_"
_KEYS = "ABCDEFGH"


def draw_image_shape(rng: np.random.Generator) -> tuple[int, int, int]:
    """Returns height, width and channels of a task's pictures."""
    size = int(rng.choice([16, 20, 24]))
    return size, size, int(rng.choice([1, 3]))


def assemble(
    plan: TaskPlan, context: Context, samples: dict[Medium, list[Sample]], rows: Rows, rng: np.random.Generator
) -> Material:
    """Returns the media of a task.

    Args:
        plan: The plan.
        context: Where sizes and words come from.
        samples: What every insight adds, by medium.
        rows: The rows, or the pieces that they are made of.
        rng: For what does not count: filler sentences, background, the order of parts.
    """
    material = Material()
    for medium, found in samples.items():
        _ADD[medium](material, _Job(plan, context, found, rows, rng))
    return material


class _Job:
    """What there is to assemble of one medium."""

    def __init__(
        self, plan: TaskPlan, context: Context, samples: list[Sample], rows: Rows, rng: np.random.Generator
    ) -> None:
        self.plan, self.context, self.samples, self.rows, self.rng = plan, context, samples, rows, rng
        self.k = rows.n_pieces
        self.n_rows = rows.n // rows.n_pieces

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Returns values of pieces # [n, ...] as those of rows # [n_rows, n_pieces, ...]."""
        return values.reshape(self.n_rows, self.k, *values.shape[1:])

    @property
    def all_rows(self) -> np.ndarray:
        return np.arange(self.n_rows)


def _add_text(material: Material, job: _Job) -> None:
    texts = _texts(job)
    about = f"What was written about the {job.plan.entity}"
    if job.k == 1:
        material.add_column(ColumnSpec(name="note", type="text", description=about), texts)
        return
    material.input_specs.append(ColumnSpec(name="note", type="text"))
    material.inputs["note"] = texts
    parts = job.by_row(texts)
    if job.plan.target.kind is PredictionKind.PERMUTATION:
        material.names = np.tile(np.array(list(_KEYS[: job.k]), dtype=object), (job.n_rows, 1))
        told = [" | ".join(f"{key}: {text}" for key, text in zip(_KEYS, row, strict=False)) for row in parts]
        about = f"{job.k} entries about the {job.plan.entity}, each with its letter, separated by |"
        name = "entries"
    else:
        material.names = parts
        told = [" ".join(row) for row in parts]
        about, name = f"{about}, {job.k} sentences", "passage"
    spec = ColumnSpec(name=name, type="text", description=about)
    material.add_column(spec, np.array(told, dtype=object), is_input=False)


def _texts(job: _Job) -> np.ndarray:
    sources = [sample.sentences for sample in job.samples if sample.sentences is not None]
    words, rng, n = common_words(), job.rng, job.rows.n
    filler = np.array(words.neutral, dtype=object)[rng.integers(len(words.neutral), size=(n, 2))]
    count = rng.integers(1, 3, size=n) if job.k == 1 else np.zeros(n, dtype=int)
    shuffle = rng.random((n, 64))
    texts = []
    for row in range(n):
        parts = [sentence for source in sources for sentence in source[row]] + filler[row, : count[row]].tolist()
        order = np.argsort(shuffle[row, : len(parts)])
        chosen = [parts[at] for at in order]
        # A piece is one sentence, so that the pieces of a passage can be told apart.
        texts.append(_sentence(", ".join(chosen)) if job.k > 1 else " ".join(_sentence(part) for part in chosen))
    return np.array(texts, dtype=object)


def _sentence(text: str) -> str:
    ended = text if text[-1] in ".!?" else f"{text}."
    return ended[0].upper() + ended[1:]


def _add_trace(material: Material, job: _Job) -> None:
    traces = [sample.trace for sample in job.samples if sample.trace is not None]
    _, unit, meaning = job.context.pool.take("traces")
    total = np.round(np.sum(traces, axis=0) + 0.15 * job.rng.normal(size=traces[0].shape), 3)
    in_columns = job.k == 1 and job.plan.series_form == "columns"
    for step in range(job.context.trace_length):
        label = f"{TRACE_PREFIX}{step:02d}"
        spec = ColumnSpec(name=label, type="number", description=f"{meaning}, sample {step}", unit=unit)
        if in_columns:
            material.add_column(spec, total[:, step])
        else:
            material.input_specs.append(spec)
            material.inputs[label] = total[:, step]
    if not in_columns:
        grouped = job.by_row(total)
        each = "a column `value`" if job.k == 1 else f"the columns `value_1` to `value_{job.k}`, one for each piece"
        words = f"A CSV file with {job.context.trace_length} steps in order of time and {each} ({meaning}, {unit})."
        files = MediaFiles("series", "series", ".csv", words, lambda row: series_bytes(grouped[row]), job.all_rows)
        material.add_files(files, f"{meaning} over time, as a path below ./input")


def _add_sound(material: Material, job: _Job) -> None:
    sounds = [sample.sound for sample in job.samples if sample.sound is not None]
    total = np.sum(sounds, axis=0).astype(np.float32)
    total += np.float32(0.02) * job.rng.standard_normal(total.shape, dtype=np.float32)
    total = np.clip(total, -1, 1)
    material.blocks.append(loudness(total))
    grouped = job.by_row(total)
    parts = "" if job.k == 1 else f", made of {job.k} pieces of equal length one after the other"
    words = f"A WAV file (mono, 8 bit, 4000 samples a second, {total.shape[1] * job.k} samples){parts}."
    files = MediaFiles("audio", "audio", ".wav", words, lambda row: sound_bytes(grouped[row].ravel()), job.all_rows)
    material.add_files(files, "Recording, as a path below ./input")


def _add_picture(material: Material, job: _Job) -> None:
    height, width, channels = job.context.image_shape
    _add_canvases(material, job, ("image", "images"), (height, width), channels, "grey" if channels == 1 else "colour")


def _add_video(material: Material, job: _Job) -> None:
    height, width = job.context.frame_shape
    n_frames = job.context.n_frames
    what = f"{n_frames} frames of {width} x {height} pixels from left to right, grey"
    _add_canvases(material, job, ("video", "videos"), (height, n_frames * width), 1, what)


def _add_canvases(
    material: Material, job: _Job, names: tuple[str, str], shape: tuple[int, int], channels: int, what: str
) -> None:
    layers = [layer for sample in job.samples for layer in sample.layers]
    pixels = painted(layers, job.rows.n, shape, channels, job.rng)
    is_video = names[0] == "video"
    material.blocks.append(thumbnails(pixels, 2 if is_video else 8, 2 * job.context.n_frames if is_video else 8))
    about = "Video" if is_video else "Picture"
    if job.k == 1:
        words = f"A PNG file of {shape[1]} x {shape[0]} pixels: {what}."

        def write(row: int) -> bytes:
            return png_bytes(pixels[row], compress_level=COMPRESS_LEVEL)

    else:
        grid = (job.k, 1) if is_video else job.plan.grid
        board = Board.draw(job.rng, job.n_rows, grid, shape, is_round=job.plan.is_round and not is_video)
        material.board = material.board or board
        tiles = job.by_row(pixels)
        size = f"{board.shape[1]} x {board.shape[0]}"
        frames = "round" if board.is_round else "rectangular"
        words = (
            f"A PNG file of {size} pixels: {job.k} pieces in {frames} bright frames on a dark ground, in {grid[0]} "
            f"rows of {grid[1]}; inside each frame {what}."
        )

        def write(row: int) -> bytes:
            return png_bytes(board.paint(tiles[row], row), compress_level=COMPRESS_LEVEL)

    files = MediaFiles(names[0], names[1], ".png", words, write, job.all_rows)
    material.add_files(files, f"{about}, as a path below ./input")


def _add_letters(material: Material, job: _Job) -> None:
    sources = [sample.letters for sample in job.samples if sample.letters is not None]
    shuffle = job.rng.random((job.rows.n, len(sources)))
    joined = ["".join(sources[at][row] for at in np.argsort(shuffle[row], kind="stable")) for row in range(job.rows.n)]
    material.blocks.append(np.array([[text.count(letter) / len(text) for letter in ALPHABET] for text in joined]))
    words = np.array(joined, dtype=object)
    about = f"Sequence of the letters {', '.join(ALPHABET)}"
    if job.k > 1:
        words = np.array([" ".join(row) for row in job.by_row(words)], dtype=object)
        about += f", {job.k} pieces separated by spaces"
    spec = ColumnSpec(name="sequence", type="text" if job.k > 1 else "code", description=about)
    material.add_column(spec, words, is_input=False)


def _add_graph(material: Material, job: _Job) -> None:
    sources = [sample.webs for sample in job.samples if sample.webs is not None]
    graphs: list[Web] = []
    for row in range(job.rows.n):
        order = job.rng.permutation(len(sources))
        graphs.append(tied([sources[at][row] for at in order], job.rng))
    material.blocks.append(node_counts(graphs))
    words = 'A JSON file: under "nodes" the kind and weight of each node, under "edges" pairs of node numbers from 0.'
    files = MediaFiles("graph", "graphs", ".json", words, lambda row: graph_bytes(graphs[row]), job.all_rows)
    material.add_files(files, "Graph, as a path below ./input")


def _add_cloud(material: Material, job: _Job) -> None:
    sources = [sample.points for sample in job.samples if sample.points is not None]
    sensors = np.repeat(np.arange(1, len(sources) + 1), [points.shape[1] for points in sources])
    clouds = np.round(np.concatenate(sources, axis=1), 2)
    order = job.rng.permutation(len(sensors))
    clouds, sensors = clouds[:, order], sensors[order]
    material.blocks.append(cloud_means(clouds, sensors))
    grouped = job.by_row(clouds)
    each = "" if job.k == 1 else "the number of the piece (`piece`), "
    words = f"A CSV file of points: {each}the sensor that saw it (`sensor`), its place (`x`, `y`, `z`) and `strength`."
    files = MediaFiles("points", "points", ".csv", words, lambda row: cloud_bytes(grouped[row], sensors), job.all_rows)
    material.add_files(files, "Point cloud, as a path below ./input")


_ADD = {
    "text": _add_text,
    "trace": _add_trace,
    "sound": _add_sound,
    "image": _add_picture,
    "video": _add_video,
    "letters": _add_letters,
    "graph": _add_graph,
    "cloud": _add_cloud,
}
