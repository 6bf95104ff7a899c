"""Families of small graphs: each adds a web of nodes and edges, and the webs of a row are tied together."""

import itertools

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
    Web,
)


class _Graph(LatentFamily):
    """A family whose features are latents of the graph."""

    medium: Medium = "graph"

    def _sample(self, webs: list[Web], *latents: FloatArray) -> Sample:
        return Sample(latents=self.named(*latents), webs=webs)


def _path(n: int) -> tuple[tuple[int, int], ...]:
    return tuple((at, at + 1) for at in range(n - 1))


class NodeWeights(_Graph):
    """The mean weight of the nodes of one kind."""

    name = "node_weights"
    graded = True
    latents = ("mean",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        kind = "PQ"[int(rng.integers(2))]
        return Insight(self.name, (), f"The mean weight of the nodes of kind {kind} counts.", {"kind": kind})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        kind, mean = insight.params["kind"], rng.normal(size=rows.n)
        weights = 1.0 + 0.25 * mean[:, None] + 0.08 * rng.normal(size=(rows.n, 4))
        webs = [Web(kind * 4, tuple(row), _path(4)) for row in np.round(weights, 3).tolist()]
        return self._sample(webs, mean)


class NodeKinds(_Graph):
    """How many nodes are of each of two kinds, among as many nodes."""

    name = "node_kinds"
    graded = True
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        return Insight(self.name, (), "The number of nodes of kind R counts (0 to 5); the others are S.", {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        count = rng.integers(0, 6, size=rows.n)
        weights = np.round(rng.uniform(0.5, 1.5, size=(rows.n, 5)), 3).tolist()
        webs = [
            Web("R" * number + "S" * (5 - number), tuple(row), _path(5))
            for number, row in zip(count.tolist(), weights, strict=True)
        ]
        return self._sample(webs, (count - 2.5) / 1.7)


class Rings(_Graph):
    """The number of triangles, among as many rings."""

    name = "rings"
    graded = False
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        return Insight(
            self.name, (), "The number of triangles counts (0 to 3); the others of three rings are squares.", {}
        )

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        count = rng.integers(0, 4, size=rows.n)
        weights = np.round(rng.uniform(0.5, 1.5, size=(rows.n, 12)), 3).tolist()
        webs = []
        for number, row in zip(count.tolist(), weights, strict=True):
            closing = [(4 * at, 4 * at + (2 if at < number else 3)) for at in range(3)]
            webs.append(Web("C" * 12, tuple(row), (*_path(12), *closing)))
        return self._sample(webs, (count - 1.5) / 1.1)


class Hub(_Graph):
    """How many neighbours the best connected node of one kind has."""

    name = "hub"
    graded = False
    latents = ("degree",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        return Insight(self.name, (), "The number of neighbours of the node of kind H counts (1 to 7).", {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        degree = rng.integers(1, 8, size=rows.n)
        weights = np.round(rng.uniform(0.5, 1.5, size=(rows.n, 8)), 3).tolist()
        webs = []
        for number, row in zip(degree.tolist(), weights, strict=True):
            # The tie to the rest is the last leaf, and leaves that are not at the hub stand in a row.
            edges = [(7, 8 - at) for at in range(2, number + 1)]
            edges += [(at, at + 1) for at in range(7 - number)] + [(7 - number, 7)]
            webs.append(Web("C" * 7 + "H", tuple(row), tuple(edges)))
        return self._sample(webs, (degree - 4) / 2.0)


class Distance(_Graph):
    """How many steps it is from one marked node to the other."""

    name = "distance"
    graded = False
    latents = ("steps",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        return Insight(self.name, (), "The number of steps between the two nodes of kind M counts (1 to 6).", {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        steps = rng.integers(1, 7, size=rows.n)
        weights = np.round(rng.uniform(0.5, 1.5, size=(rows.n, 8)), 3).tolist()
        webs = []
        for number, row in zip(steps.tolist(), weights, strict=True):
            kinds = "CM" + "C" * (number - 1) + "M" + "C" * (6 - number)
            webs.append(Web(kinds[:8], tuple(row), _path(8)))
        return self._sample(webs, (steps - 3.5) / 1.7)


class MixedEdges(_Graph):
    """How many edges join nodes of unlike kinds, among as many nodes of each kind."""

    name = "mixed_edges"
    graded = False
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The number of edges between a node of kind A and one of kind B counts (1, 3, 5 or 7)."
        return Insight(self.name, (), words, {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        patterns = ("AAAABBBB", "AABBBAAB", "ABBAABAB", "ABABABAB")
        mixed = [sum(a != b for a, b in itertools.pairwise(text)) for text in patterns]
        which = rng.integers(4, size=rows.n)
        weights = np.round(rng.uniform(0.5, 1.5, size=(rows.n, 8)), 3).tolist()
        webs = [Web(patterns[at], tuple(row), _path(8)) for at, row in zip(which.tolist(), weights, strict=True)]
        count = np.array(mixed)[which]
        return self._sample(webs, (count - 4.0) / 2.2)
