"""Families of short sounds: each adds to the waveform, in a band of its own."""

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

RATE_HZ = 4000


class _Sound(LatentFamily):
    """A family whose features are latents of the sound."""

    medium: Medium = "sound"

    def _sample(self, sound: FloatArray, *latents: FloatArray) -> Sample:
        return Sample(latents=self.named(*latents), sound=sound)


def _time_s(insight: Insight) -> FloatArray:
    return np.asarray(np.arange(insight.params["length"]) / RATE_HZ)[None, :]


def _phase(rng: np.random.Generator, n: int) -> FloatArray:
    return np.asarray(rng.uniform(0, 2 * np.pi, size=(n, 1)))


def _bursts(places: FloatArray, time_s: FloatArray, width_s: float) -> FloatArray:
    """Returns bell-shaped bursts at places in seconds # [n_rows, n_samples]."""
    return np.asarray(np.exp(-0.5 * np.square((time_s - places[:, None]) / width_s)))


class SoundLevel(_Sound):
    """How loud the hum is, and how much louder its second half is than its first."""

    name = "sound_level"
    graded = True
    latents = ("loudness", "swell")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        hum_hz = int(rng.integers(80, 160))
        words = f"The loudness of the hum at {hum_hz} Hz counts, and how it grows from the first half to the second."
        return Insight(self.name, (), words, {"length": context.sound_length, "hum_hz": hum_hz})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        time_s = _time_s(insight)
        loudness, swell = rng.normal(size=(2, rows.n))
        rise = np.linspace(-1, 1, time_s.shape[1])[None, :]
        height = 0.15 * np.exp(0.5 * loudness[:, None] + 0.5 * swell[:, None] * rise)
        wave = np.sin(2 * np.pi * insight.params["hum_hz"] * time_s + _phase(rng, rows.n))
        return self._sample(height * wave, loudness, swell)


class SoundHiss(_Sound):
    """How strong the noise is at one place of the sound."""

    name = "sound_hiss"
    graded = True
    latents = ("strength",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        place = float(np.round(rng.uniform(0.25, 0.75), 2))
        words = f"The strength of the noise at {place:.0%} of the sound's length counts, on a log scale."
        return Insight(self.name, (), words, {"length": context.sound_length, "place": place})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        time_s = _time_s(insight)
        end_s = float(time_s[0, -1])
        strength = rng.normal(size=rows.n)
        shape = _bursts(np.full(rows.n, insight.params["place"] * end_s), time_s, 0.08 * end_s)
        noise = rng.standard_normal((rows.n, time_s.shape[1]), dtype=np.float32)
        return self._sample(0.12 * np.exp(0.6 * strength)[:, None] * shape * noise, strength)


class SoundPitch(_Sound):
    """The pitch of the steady tone, whatever its loudness."""

    name = "sound_pitch"
    graded = False
    latents = ("pitch",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The pitch of the steady tone counts (300 to 600 Hz), not its loudness."
        return Insight(self.name, (), words, {"length": context.sound_length})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        pitch, loudness = rng.uniform(-1.7, 1.7, size=rows.n), rng.normal(size=(rows.n, 1))
        angle = 2 * np.pi * (450 + 88 * pitch)[:, None] * _time_s(insight) + _phase(rng, rows.n)
        return self._sample(0.12 * np.exp(0.3 * loudness) * np.sin(angle), pitch)


class SoundBeeps(_Sound):
    """The number of short beeps, wherever they are."""

    name = "sound_beeps"
    graded = False
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The number of short beeps at 1000 Hz counts (0 to 5); they share one loudness, however many they are."
        return Insight(self.name, (), words, {"length": context.sound_length})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        time_s = _time_s(insight)
        end_s = float(time_s[0, -1])
        count = rng.integers(0, 6, size=rows.n)
        slots = np.argsort(rng.random((rows.n, 8)), axis=1)
        envelope = np.zeros((rows.n, time_s.shape[1]))
        for at in range(5):
            place = (slots[:, at] + rng.uniform(0.35, 0.65, size=rows.n)) / 8 * end_s
            envelope += (count > at)[:, None] * _bursts(place, time_s, 0.004)
        height = 0.45 / np.sqrt(np.maximum(count, 1))
        return self._sample(height[:, None] * envelope * np.sin(2 * np.pi * 1000 * time_s), (count - 2.5) / 1.7)


class SoundSweep(_Sound):
    """Whether the high tone rises or falls, and how steeply."""

    name = "sound_sweep"
    graded = False
    latents = ("slope",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "Whether the tone around 1500 Hz rises or falls counts, and how steeply."
        return Insight(self.name, (), words, {"length": context.sound_length})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        time_s = _time_s(insight)
        end_s = float(time_s[0, -1])
        slope = rng.uniform(-1.7, 1.7, size=rows.n)
        bend = 130 * slope[:, None] * (np.square(time_s) / end_s - time_s)
        angle = 2 * np.pi * (1500 * time_s + bend) + _phase(rng, rows.n)
        return self._sample(0.15 * np.sin(angle), slope)


class SoundTremolo(_Sound):
    """How fast the loudness of a tone swings."""

    name = "sound_tremolo"
    graded = False
    latents = ("rate",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "How fast the loudness of the tone at 750 Hz swings counts (3 to 10 swings over the sound)."
        return Insight(self.name, (), words, {"length": context.sound_length})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        time_s = _time_s(insight)
        rate = rng.uniform(-1.7, 1.7, size=rows.n)
        swings = (6.5 + 2.05 * rate)[:, None]
        swing = 1 + 0.9 * np.sin(2 * np.pi * swings * time_s / float(time_s[0, -1]) + _phase(rng, rows.n))
        return self._sample(0.1 * swing * np.sin(2 * np.pi * 750 * time_s), rate)
