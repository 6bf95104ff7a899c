"""Families of small pictures: each paints layers onto a row's canvas."""

import numpy as np
from typing_extensions import override

from sandmle.authoring.procedural.families.base import (
    Context,
    FloatArray,
    Insight,
    LatentFamily,
    Medium,
    Rows,
    Sample,
)

Layer = tuple[np.ndarray, np.ndarray]


class _Image(LatentFamily):
    """A family whose features are latents of the picture."""

    medium: Medium = "image"

    def _sample(self, layers: list[Layer], *latents: FloatArray) -> Sample:
        return Sample(latents=self.named(*latents), layers=layers)


def _ink(*channels: float) -> np.ndarray:
    return np.array([channels], dtype=np.float32)


def _grid(shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows # [1, height, 1] and columns # [1, 1, width] of the pixels."""
    return np.arange(shape[0], dtype=np.float32)[None, :, None], np.arange(shape[1], dtype=np.float32)[None, None, :]


def _places(
    rng: np.random.Generator, n: int, shape: tuple[int, int, int], margin: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns random rows and columns of pixels, each # [n, 1, 1]."""
    top = rng.uniform(margin, shape[0] - 1 - margin, size=(n, 1, 1)).astype(np.float32)
    left = rng.uniform(margin, shape[1] - 1 - margin, size=(n, 1, 1)).astype(np.float32)
    return top, left


class Tint(_Image):
    """Brightness of the whole picture, and of its right side against its left."""

    name = "tint"
    graded = True
    latents = ("brightness", "gradient")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The brightness of the background counts, and how much brighter its right side is than its left."
        return Insight(self.name, (), words, {"shape": context.image_shape})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        shape = insight.params["shape"]
        brightness, gradient = rng.normal(size=(2, rows.n))
        flat = np.full((rows.n, *shape[:2]), 0.5, dtype=np.float32)
        ramp = np.broadcast_to(0.5 * _grid(shape)[1] / (shape[1] - 1), flat.shape)
        tone = np.clip(0.42 + 0.14 * brightness, 0, 1)
        colour = np.column_stack([tone, tone * 0.9 + 0.05, tone * 0.8 + 0.1]).astype(np.float32)
        side = np.clip(0.42 + 0.22 * gradient, 0, 1)[:, None].astype(np.float32)
        layers = [(flat, colour), (ramp, np.repeat(side, 3, axis=1))]
        return self._sample(layers, brightness, gradient)


class Patch(_Image):
    """Brightness of one quarter of the picture."""

    name = "patch"
    graded = True
    latents = ("tone",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        height, width, _ = context.image_shape
        lower, right = (int(side) for side in rng.integers(2, size=2))
        words = f"The brightness of the {'lower' if lower else 'upper'} {'right' if right else 'left'} quarter counts."
        params = {"shape": context.image_shape, "top": lower * height // 2, "left": right * width // 2}
        return Insight(self.name, (), words, params)

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        shape, top, left = (insight.params[key] for key in ("shape", "top", "left"))
        tone = rng.normal(size=rows.n)
        opacity = np.zeros((rows.n, *shape[:2]), dtype=np.float32)
        opacity[:, top : top + shape[0] // 2, left : left + shape[1] // 2] = 0.6
        grey = np.clip(0.45 + 0.22 * tone, 0, 1)[:, None].astype(np.float32)
        return self._sample([(opacity, np.repeat(grey, 3, axis=1))], tone)


class Dots(_Image):
    """The number of small bright dots, wherever they are."""

    name = "dots"
    graded = False
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The number of small bright dots counts (0 to 5)."
        return Insight(self.name, (), words, {"shape": context.image_shape})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        shape = insight.params["shape"]
        count = rng.integers(0, 6, size=rows.n)
        high, wide = _grid(shape)
        opacity = np.zeros((rows.n, *shape[:2]), dtype=np.float32)
        for at in range(5):
            top, left = _places(rng, rows.n, shape, 1.0)
            dot = np.square(high - np.round(top)) + np.square(wide - np.round(left)) < 1.5
            opacity[dot & (count > at)[:, None, None]] = 0.9
        colour = np.repeat(_ink(0.97, 0.93, 0.75), rows.n, axis=0)
        return self._sample([(opacity, colour)], (count - 2.5) / 1.7)


class Shape(_Image):
    """The shape of the large dark figure: disc, ring, bar or cross."""

    name = "shape"
    graded = False
    latents = ("disc", "ring", "bar")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The shape of the dark figure counts: disc, ring, upright bar or cross, wherever it is."
        return Insight(self.name, (), words, {"shape": context.image_shape})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        canvas = insight.params["shape"]
        which = rng.integers(4, size=rows.n)
        top, left = _places(rng, rows.n, canvas, 3.5)
        high, wide = _grid(canvas)
        down, right = np.abs(high - top), np.abs(wide - left)
        far = np.square(down) + np.square(right)
        figures = (
            far < 8.0,
            (far < 12.5) & (far > 4.0),
            (down < 3.6) & (right < 1.8),
            ((down < 3.6) & (right < 0.9)) | ((right < 3.6) & (down < 0.9)),
        )
        opacity = np.zeros((rows.n, *canvas[:2]), dtype=np.float32)
        for at, figure in enumerate(figures):
            opacity[figure & (which == at)[:, None, None]] = 0.85
        colour = np.repeat(_ink(0.08, 0.12, 0.2), rows.n, axis=0)
        return self._sample([(opacity, colour)], *((which == at) * 2.3 - 0.58 for at in range(3)))


class Stripes(_Image):
    """The direction of fine stripes over the picture."""

    name = "stripes"
    graded = False
    latents = ("straight", "diagonal")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        period = float(np.round(rng.uniform(3.0, 4.5), 2))
        words = (
            f"The direction of the fine stripes counts (period {period} pixels), as cosine and sine of twice its angle."
        )
        return Insight(self.name, (), words, {"shape": context.image_shape, "period": period})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        canvas, period = insight.params["shape"], insight.params["period"]
        angle = rng.uniform(0, np.pi, size=rows.n)
        phase = rng.uniform(0, 2 * np.pi, size=(rows.n, 1, 1)).astype(np.float32)
        high, wide = _grid(canvas)
        down, right = (part(angle).astype(np.float32)[:, None, None] for part in (np.sin, np.cos))
        wave = np.sin(2 * np.pi / period * (down * high + right * wide) + phase)
        colour = np.repeat(_ink(0.9, 0.9, 0.85), rows.n, axis=0)
        return self._sample(
            [(0.12 + 0.12 * wave, colour)], np.sqrt(2) * np.cos(2 * angle), np.sqrt(2) * np.sin(2 * angle)
        )


class PairDistance(_Image):
    """The distance of two dark marks, wherever they are."""

    name = "pair_distance"
    graded = False
    latents = ("distance",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The distance between the two black marks counts."
        return Insight(self.name, (), words, {"shape": context.image_shape})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        canvas = insight.params["shape"]
        longest = min(canvas[:2]) - 5.0
        distance = rng.uniform(3.0, longest, size=rows.n)
        angle = rng.uniform(0, 2 * np.pi, size=rows.n)
        high, wide = _grid(canvas)
        step = np.column_stack([np.sin(angle), np.cos(angle)]) * distance[:, None]
        room = np.array(canvas[:2]) - 3.0 - np.abs(step)
        start = 1.0 + rng.random((rows.n, 2)) * room + np.maximum(-step, 0)
        opacity = np.zeros((rows.n, *canvas[:2]), dtype=np.float32)
        for place in (start, start + step):
            spot = np.round(place).astype(np.float32)
            near = (np.abs(high - spot[:, 0, None, None]) < 1.5) & (np.abs(wide - spot[:, 1, None, None]) < 1.5)
            opacity[near] = 0.95
        colour = np.repeat(_ink(0.02, 0.02, 0.02), rows.n, axis=0)
        middle, spread = (3.0 + longest) / 2, (longest - 3.0) / np.sqrt(12)
        return self._sample([(opacity, colour)], (distance - middle) / spread)
