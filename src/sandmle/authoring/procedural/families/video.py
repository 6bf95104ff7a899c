"""Families of short videos: each paints onto all frames of a row, which stand side by side on one canvas."""

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


class _Video(LatentFamily):
    """A family whose features are latents of the video."""

    medium: Medium = "video"

    def _sample(self, opacity: np.ndarray, tone: FloatArray | float, *latents: FloatArray) -> Sample:
        """Joins the frames # [n_rows, n_frames, height, width] of one layer of one brightness."""
        n, n_frames, height, width = opacity.shape
        flat = opacity.transpose(0, 2, 1, 3).reshape(n, height, n_frames * width)
        colour = np.repeat(np.broadcast_to(np.asarray(tone, dtype=np.float32), (n,))[:, None], 3, axis=1)
        return Sample(latents=self.named(*latents), layers=[(flat.astype(np.float32), colour)])


def _params(context: Context) -> dict[str, object]:
    return {"frame": context.frame_shape, "n_frames": context.n_frames}


def _spot(frame: tuple[int, int], top: FloatArray, left: FloatArray, radius: FloatArray | float) -> np.ndarray:
    """Returns soft spots at places that wrap round at the rim, both # [n_rows, n_frames], as opacities."""
    high, wide = (np.arange(size, dtype=np.float32) for size in frame)
    down = np.abs(high[None, None, :] - np.mod(top, frame[0])[:, :, None])
    right = np.abs(wide[None, None, :] - np.mod(left, frame[1])[:, :, None])
    down, right = np.minimum(down, frame[0] - down), np.minimum(right, frame[1] - right)
    far = np.square(down)[:, :, :, None] + np.square(right)[:, :, None, :]
    return np.asarray(np.exp(-far / (2 * np.square(np.asarray(radius, dtype=np.float32)))), dtype=np.float32)


class VideoGlow(_Video):
    """How bright the scene is, and how it grows brighter from frame to frame."""

    name = "video_glow"
    graded = True
    latents = ("brightness", "growth")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The brightness of the scene counts, and how it grows from the first frame to the last."
        return Insight(self.name, (), words, _params(context))

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        (height, width), n_frames = insight.params["frame"], insight.params["n_frames"]
        brightness, growth = rng.normal(size=(2, rows.n))
        ramp = np.linspace(-1, 1, n_frames)
        strength = np.clip(0.3 + 0.09 * brightness[:, None] + 0.09 * growth[:, None] * ramp, 0, 1)
        opacity = np.broadcast_to(strength[:, :, None, None], (rows.n, n_frames, height, width))
        return self._sample(opacity, 0.75, brightness, growth)


class VideoCorner(_Video):
    """How bright one corner is, over all frames."""

    name = "video_corner"
    graded = True
    latents = ("tone",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        corner = (int(rng.integers(2)), int(rng.integers(2)))
        where = f"{('upper', 'lower')[corner[0]]} {('left', 'right')[corner[1]]}"
        return Insight(
            self.name, (), f"The brightness of the {where} corner counts.", {**_params(context), "at": corner}
        )

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        (height, width), n_frames = insight.params["frame"], insight.params["n_frames"]
        lower, right = insight.params["at"]
        tone = rng.normal(size=rows.n)
        opacity = np.zeros((rows.n, n_frames, height, width), dtype=np.float32)
        top, left = lower * (height - 4), right * (width - 4)
        opacity[:, :, top : top + 4, left : left + 4] = 0.7
        return self._sample(opacity, np.clip(0.45 + 0.2 * tone, 0, 1), tone)


class VideoSpeed(_Video):
    """How fast the bright spot moves, wherever it goes."""

    name = "video_speed"
    graded = False
    latents = ("speed",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = (
            "How far the bright spot moves from frame to frame counts, not where to; it comes back at the other rim."
        )
        return Insight(self.name, (), words, _params(context))

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        frame, steps = insight.params["frame"], np.arange(insight.params["n_frames"])[None, :]
        speed, angle = rng.uniform(-1.7, 1.7, size=rows.n), rng.uniform(0, 2 * np.pi, size=rows.n)
        start = rng.uniform(0, 10, size=(2, rows.n, 1))
        step = (1.7 + 0.85 * speed)[:, None] * steps
        spot = _spot(frame, start[0] + step * np.sin(angle)[:, None], start[1] + step * np.cos(angle)[:, None], 1.0)
        return self._sample(0.9 * spot, 1.0, speed)


class VideoTurn(_Video):
    """The direction in which the dark spot moves."""

    name = "video_turn"
    graded = False
    latents = ("across", "down")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The direction in which the dark spot moves counts, as cosine and sine of its angle, not where it is."
        return Insight(self.name, (), words, _params(context))

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        frame, steps = insight.params["frame"], np.arange(insight.params["n_frames"])[None, :]
        angle, start = rng.uniform(0, 2 * np.pi, size=rows.n), rng.uniform(0, 10, size=(2, rows.n, 1))
        across, down = np.cos(angle), np.sin(angle)
        spot = _spot(frame, start[0] + 1.8 * steps * down[:, None], start[1] + 1.8 * steps * across[:, None], 1.1)
        return self._sample(0.95 * spot, 0.0, np.sqrt(2) * across, np.sqrt(2) * down)


class VideoFlashes(_Video):
    """In how many frames the lamp is lit."""

    name = "video_flashes"
    graded = False
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = (
            "The number of frames in which the small lamp is lit counts; a lit lamp is the fainter, the more there are."
        )
        return Insight(self.name, (), words, _params(context))

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        frame, n_frames = insight.params["frame"], insight.params["n_frames"]
        count = rng.integers(0, n_frames + 1, size=rows.n)
        rank = np.argsort(np.argsort(rng.random((rows.n, n_frames)), axis=1), axis=1)
        place = np.round(rng.uniform(0, 10, size=(2, rows.n, 1))) * np.ones((1, 1, n_frames))
        lit = (rank < count[:, None])[:, :, None, None] * _spot(frame, place[0], place[1], 0.5)
        height = 0.95 / np.sqrt(np.maximum(count, 1))[:, None, None, None] * 1.2
        return self._sample(np.clip(height * lit, 0, 1), 1.0, (count - n_frames / 2) / (0.29 * (n_frames + 1)))
