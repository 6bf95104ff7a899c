"""Families of point clouds: each adds points of one sensor, with a place and a strength."""

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

_POINTS = 8


class _Cloud(LatentFamily):
    """A family whose features are latents of the cloud."""

    medium: Medium = "cloud"

    def _sample(self, places: FloatArray, strength: FloatArray, *latents: FloatArray) -> Sample:
        points = np.concatenate([places, strength[:, :, None]], axis=2)
        return Sample(latents=self.named(*latents), points=points)


def _scatter(rng: np.random.Generator, n: int, spread: float) -> FloatArray:
    """Returns places around the origin # [n, n_points, 3]."""
    return np.asarray(spread * rng.normal(size=(n, _POINTS, 3)))


def _strength(rng: np.random.Generator, n: int) -> FloatArray:
    return np.asarray(rng.uniform(0.5, 1.5, size=(n, _POINTS)))


def _centred(places: FloatArray) -> FloatArray:
    return np.asarray(places - places.mean(axis=1, keepdims=True))


class CloudHeight(_Cloud):
    """How high the points lie on average, and how strong they are."""

    name = "cloud_height"
    graded = True
    latents = ("height", "strength")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        return Insight(self.name, (), "The mean height (z) of its sensor's points counts, and their mean strength.", {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        height, strong = rng.normal(size=(2, rows.n))
        places = _centred(_scatter(rng, rows.n, 0.4))
        places[:, :, 2] += 0.5 * height[:, None]
        strength = 1.0 + 0.25 * strong[:, None] + 0.1 * rng.normal(size=(rows.n, _POINTS))
        return self._sample(places, strength, height, strong)


class CloudPlace(_Cloud):
    """Where the points lie in the plane."""

    name = "cloud_place"
    graded = True
    latents = ("x", "y")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        return Insight(self.name, (), "Where the middle of its sensor's points lies in x and y counts.", {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        middle = rng.normal(size=(rows.n, 2))
        places = _centred(_scatter(rng, rows.n, 0.4))
        places[:, :, :2] += 0.5 * middle[:, None, :]
        return self._sample(places, _strength(rng, rows.n), *middle.T)


class CloudSpread(_Cloud):
    """How wide the points are scattered, wherever they are."""

    name = "cloud_spread"
    graded = False
    latents = ("spread",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        return Insight(self.name, (), "How wide its sensor's points are scattered counts, on a log scale.", {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        spread = rng.normal(size=rows.n)
        places = _centred(_scatter(rng, rows.n, 1.0))
        places /= np.sqrt(np.square(places).mean(axis=(1, 2), keepdims=True))
        places = 0.4 * np.exp(0.5 * spread)[:, None, None] * places + rng.normal(0, 0.5, size=(rows.n, 1, 3))
        return self._sample(places, _strength(rng, rows.n), spread)


class CloudAxis(_Cloud):
    """The direction in the plane along which the points lie."""

    name = "cloud_axis"
    graded = False
    latents = ("straight", "diagonal")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The direction of the long axis of its sensor's points counts, as cosine and sine of twice its angle."
        return Insight(self.name, (), words, {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        angle = rng.uniform(0, np.pi, size=rows.n)
        along = rng.uniform(-1, 1, size=(rows.n, _POINTS))
        places = _scatter(rng, rows.n, 0.12) + rng.normal(0, 0.4, size=(rows.n, 1, 3))
        places[:, :, 0] += along * np.cos(angle)[:, None]
        places[:, :, 1] += along * np.sin(angle)[:, None]
        latents = np.sqrt(2) * np.cos(2 * angle), np.sqrt(2) * np.sin(2 * angle)
        return self._sample(places, _strength(rng, rows.n), *latents)


class CloudClumps(_Cloud):
    """In how many clumps the points lie, whatever their number."""

    name = "cloud_clumps"
    graded = False
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        return Insight(self.name, (), "The number of clumps of its sensor's points counts (1 to 4).", {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        count = rng.integers(1, 5, size=rows.n)
        corners = np.array([[-1, -1, 0], [1, 1, 0], [-1, 1, 0], [1, -1, 0]], dtype=float)
        order = np.argsort(rng.random((rows.n, 4)), axis=1)
        clump = np.take_along_axis(order, np.arange(_POINTS)[None, :] % count[:, None], axis=1)
        places = 0.7 * corners[clump] + _scatter(rng, rows.n, 0.1)
        return self._sample(places, _strength(rng, rows.n), (count - 2.5) / 1.1)


class CloudTilt(_Cloud):
    """Whether strong points lie high or low."""

    name = "cloud_tilt"
    graded = False
    latents = ("tilt",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "How the strength of its sensor's points goes with their height counts, as a slope."
        return Insight(self.name, (), words, {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        tilt = rng.uniform(-1.7, 1.7, size=rows.n)
        places = _centred(_scatter(rng, rows.n, 0.5))
        strength = 1.0 + 0.35 * tilt[:, None] * places[:, :, 2] + 0.05 * rng.normal(size=(rows.n, _POINTS))
        return self._sample(places, strength, tilt)
