"""Families of sensor traces: columns t_00, t_01, ... of one signal in the order of time."""

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


class _Trace(LatentFamily):
    """A family whose features are latents of the trace."""

    medium: Medium = "trace"

    def _sample(self, trace: FloatArray, *latents: FloatArray) -> Sample:
        return Sample(latents=self.named(*latents), trace=trace)


class TraceLevel(_Trace):
    """Mean and slope of the trace."""

    name = "trace_level"
    graded = True
    latents = ("level", "slope")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The mean of the trace and its slope count."
        return Insight(self.name, (), words, {"length": context.trace_length})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        time = np.linspace(-1, 1, insight.params["length"])
        level, slope = rng.normal(size=(2, rows.n))
        return self._sample(0.7 * level[:, None] + 0.6 * slope[:, None] * time, level, slope)


class TraceWindow(_Trace):
    """The height of a bump at one place of the trace."""

    name = "trace_window"
    graded = True
    latents = ("height",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        centre = int(rng.integers(6, context.trace_length - 6))
        words = f"The height of the bump around sample {centre} counts."
        return Insight(self.name, (), words, {"length": context.trace_length, "centre": centre})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        steps = np.arange(insight.params["length"])
        bump = np.exp(-0.5 * np.square((steps - insight.params["centre"]) / 2.0))
        height = rng.normal(size=rows.n)
        return self._sample(1.2 * height[:, None] * bump, height)


class TraceWave(_Trace):
    """The strength of an oscillation that starts at any phase."""

    name = "trace_wave"
    graded = False
    latents = ("strength",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        cycles = int(rng.integers(3, 7))
        words = f"The amplitude of the oscillation with {cycles} cycles over the trace counts, on a log scale."
        return Insight(self.name, (), words, {"length": context.trace_length, "cycles": cycles})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        time = np.arange(insight.params["length"]) / insight.params["length"]
        strength, phase = rng.normal(size=rows.n), rng.uniform(0, 2 * np.pi, size=rows.n)
        angle = 2 * np.pi * insight.params["cycles"] * time + phase[:, None]
        return self._sample(np.exp(0.5 * strength - 0.5)[:, None] * np.sin(angle), strength)


class TracePitch(_Trace):
    """The frequency of an oscillation that starts at any phase."""

    name = "trace_pitch"
    graded = False
    latents = ("pitch",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The frequency of the fast oscillation counts (8 to 13 cycles over the trace)."
        return Insight(self.name, (), words, {"length": context.trace_length})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        time = np.arange(insight.params["length"]) / insight.params["length"]
        pitch, phase = rng.uniform(-1.7, 1.7, size=rows.n), rng.uniform(0, 2 * np.pi, size=rows.n)
        angle = 2 * np.pi * (10.5 + 1.45 * pitch)[:, None] * time + phase[:, None]
        return self._sample(0.8 * np.sin(angle), pitch)


class TraceSpikes(_Trace):
    """The number of spikes, wherever they are."""

    name = "trace_spikes"
    graded = False
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The number of upward spikes counts (0 to 5)."
        return Insight(self.name, (), words, {"length": context.trace_length})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        length = insight.params["length"]
        count = rng.integers(0, 6, size=rows.n)
        places = np.argsort(rng.random((rows.n, length)), axis=1)
        trace = np.zeros((rows.n, length))
        for at in range(5):
            here = count > at
            trace[here, places[here, at]] += 3.0
        # A slow offset hides what the spikes add to the mean.
        trace -= (3.0 * count / length)[:, None]
        return self._sample(trace, (count - 2.5) / 1.7)


class TraceGap(_Trace):
    """The time between two bumps, wherever they are."""

    name = "trace_gap"
    graded = False
    latents = ("gap",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The number of samples between the two dips counts."
        return Insight(self.name, (), words, {"length": context.trace_length})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        length = insight.params["length"]
        gap = rng.integers(3, 15, size=rows.n)
        first = (rng.random(rows.n) * (length - 4 - gap)).astype(int) + 2
        steps = np.arange(length)
        dips = [np.exp(-0.5 * np.square(steps - place[:, None])) for place in (first, first + gap)]
        return self._sample(-2.5 * (dips[0] + dips[1]), (gap - 8.5) / 3.5)
