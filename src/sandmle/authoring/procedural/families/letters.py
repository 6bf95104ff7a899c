"""Families of strings of letters: each adds a stretch, and the stretches of a row stand in random order."""

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

ALPHABET = "ACGTN"
_STRETCH = 12


class _Letters(LatentFamily):
    """A family whose features are latents of the string."""

    medium: Medium = "letters"

    def _sample(self, letters: list[str], *latents: FloatArray) -> Sample:
        return Sample(latents=self.named(*latents), letters=letters)


def _words(codes: np.ndarray) -> list[str]:
    """Returns strings of letters for their numbers # [n_rows, length]."""
    table = np.array(list(ALPHABET))
    return ["".join(row) for row in table[codes]]


class LetterShare(_Letters):
    """The shares of two letters."""

    name = "letter_share"
    graded = True
    latents = ("first", "second")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        first, second = (int(at) for at in rng.permutation(4)[:2])
        words = f"How often {ALPHABET[first]} and {ALPHABET[second]} occur counts."
        return Insight(self.name, (), words, {"which": (first, second)})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        lean = rng.normal(size=(2, rows.n))
        logits = np.zeros((rows.n, 5))
        for at, code in enumerate(insight.params["which"]):
            logits[:, code] = 1.1 * lean[at]
        noisy = logits[:, None, :] + rng.gumbel(size=(rows.n, 2 * _STRETCH, 5))
        return self._sample(_words(noisy.argmax(axis=2)), *lean)


class LetterPairs(_Letters):
    """The number of one pair of neighbours, among as many of each letter."""

    name = "letter_pairs"
    graded = True
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        first, second = (ALPHABET[at] for at in rng.permutation(4)[:2])
        words = f"The number of {first}{second} counts (0 to 5)."
        return Insight(self.name, (), words, {"pair": first + second})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        first, second = insight.params["pair"]
        count = rng.integers(0, 6, size=rows.n)
        order = np.argsort(rng.random((rows.n, 5)), axis=1)
        letters = [
            "N".join((first + second if slot < number else second + first) for slot in row)
            for row, number in zip(order, count, strict=True)
        ]
        return self._sample(letters, (count - 2.5) / 1.7)


class LetterRun(_Letters):
    """The length of the longest run of one letter."""

    name = "letter_run"
    graded = False
    latents = ("length",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        letter = ALPHABET[int(rng.integers(4))]
        words = f"The length of the longest run of {letter} counts (2 to 9), not how many {letter} there are."
        return Insight(self.name, (), words, {"letter": letter})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        letter = insight.params["letter"]
        others = [other for other in ALPHABET if other != letter]
        length = rng.integers(2, 10, size=rows.n)
        filler = rng.integers(4, size=(rows.n, 20))
        letters = []
        for row, run in enumerate(length.tolist()):
            # The rest of the nine stand alone, so that their number tells nothing.
            alone = "".join(letter + others[at] for at in filler[row, : 9 - run])
            letters.append("".join(others[at] for at in filler[row, 9:11]) + letter * run + others[0] + alone)
        return self._sample(letters, (length - 5.5) / 2.3)


class LetterGap(_Letters):
    """How far apart two marks stand."""

    name = "letter_gap"
    graded = False
    latents = ("gap",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        first, second = (ALPHABET[at] for at in rng.permutation(4)[:2])
        marks = (first * 2 + second, second * 2 + first)
        words = f"The number of letters between {marks[0]} and {marks[1]} counts."
        return Insight(self.name, (), words, {"marks": marks})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        first, second = insight.params["marks"]
        others = np.array([letter for letter in ALPHABET if letter not in first])
        gap = rng.integers(0, 10, size=rows.n)
        filler = others[rng.integers(len(others), size=(rows.n, 12))]
        letters = []
        for row, size in enumerate(gap.tolist()):
            text = "".join(filler[row])
            letters.append(text[:1] + first + text[1 : 1 + size] + second + text[1 + size : 11])
        return self._sample(letters, (gap - 4.5) / 2.9)


class LetterMirror(_Letters):
    """Whether a stretch reads the same backwards."""

    name = "letter_mirror"
    graded = False
    latents = ("mirror",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "Whether the stretch between the two NN reads the same backwards counts, or else as itself repeated."
        return Insight(self.name, (), words, {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        is_mirror = rng.random(rows.n) < 0.5
        halves = _words(np.argsort(rng.random((rows.n, 4)), axis=1))
        letters = [
            f"NN{half}{half[::-1] if mirrored else half}NN" for half, mirrored in zip(halves, is_mirror, strict=True)
        ]
        return self._sample(letters, np.where(is_mirror, 1.0, -1.0))
