"""Loads the vocabulary of the domains and hands out its words without repeats."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import yaml
from pydantic import Field

from sandmle.errors import AuthoringError
from sandmle.records import Record


class Entity(Record):
    """What one row is about."""

    word: str
    one: str
    many: str
    id: str


class ImageSubject(Record):
    """What the pictures of a domain show."""

    subject: str
    detail: str


class TargetWords(Record):
    """Names and meanings of targets, by the kind of target: tuples in the order of the YAML file's comment."""

    binary: tuple[tuple[str, str], ...]
    value: tuple[tuple[str, str, str, float, float], ...]
    """name, unit, meaning, low, high"""
    ordinal: tuple[tuple[str, str], ...]
    classes: tuple[tuple[str, str, tuple[str, ...]], ...]
    labels: tuple[tuple[str, str, tuple[str, ...]], ...]


class Vocabulary(Record):
    """The words of one domain."""

    domain: str
    share: float = Field(gt=0)
    """How often the domain is drawn, relative to the others (paper, section 3: mix of domains)."""
    places: tuple[str, ...]
    entities: tuple[Entity, ...]
    numbers: tuple[tuple[str, str, float, float, int, str], ...]
    """name, unit, low, high, digits, meaning"""
    dates: tuple[tuple[str, str], ...]
    categories: tuple[tuple[str, str, tuple[str, ...]], ...]
    codes: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, str], ...]
    places_columns: tuple[tuple[str, str, str], ...]
    traces: tuple[tuple[str, str, str], ...]
    targets: TargetWords
    topics: dict[str, tuple[str, ...]]
    aspects: tuple[str, ...]
    events: tuple[str, ...]
    images: tuple[ImageSubject, ...]


class CommonWords(Record):
    """Words that every domain shares."""

    good: tuple[str, ...]
    bad: tuple[str, ...]
    neutral: tuple[str, ...]
    openers: tuple[str, ...]


def _read(name: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((files("sandmle.authoring.vocabulary") / name).read_bytes(), Loader=loader)


@cache
def vocabularies() -> tuple[Vocabulary, ...]:
    """Returns the vocabularies of all domains, sorted by name."""
    folder = files("sandmle.authoring.vocabulary")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    found = [Vocabulary.model_validate(_read(name)) for name in names if name != "common.yaml"]
    return tuple(sorted(found, key=lambda vocabulary: vocabulary.domain))


@cache
def common_words() -> CommonWords:
    """Returns the words that every domain shares."""
    return CommonWords.model_validate(_read("common.yaml"))


def vocabulary_of(domain: str) -> Vocabulary:
    """Returns the words of a domain.

    Raises:
        AuthoringError: There is no such domain.
    """
    for vocabulary in vocabularies():
        if vocabulary.domain == domain:
            return vocabulary
    raise AuthoringError(f"no vocabulary for the domain {domain!r}")


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, and how a standard normal latent becomes one of its values."""

    name: str
    unit: str
    low: float
    high: float
    digits: int
    meaning: str
    is_log: bool

    def values(self, latent: np.ndarray) -> np.ndarray:
        """Returns published values for latents # [n_rows], all between low and high."""
        inside = np.clip(latent, -2.5, 2.5)
        if self.is_log:
            return np.asarray(np.round(np.exp(self._log_mid() + inside * self._log_step()), self.digits))
        middle = (self.low + self.high) / 2
        return np.asarray(np.round(middle + inside * (self.high - self.low) / 5, self.digits))

    def standard(self, values: np.ndarray) -> np.ndarray:
        """Returns the latents behind values # [n_rows]; the inverse of ``values`` but for rounding."""
        if self.is_log:
            smallest = 10.0**-self.digits
            return np.asarray((np.log(np.maximum(values, smallest)) - self._log_mid()) / self._log_step())
        return (values - (self.low + self.high) / 2) / ((self.high - self.low) / 5)

    def _log_mid(self) -> float:
        return float((np.log(self.low) + np.log(self.high)) / 2)

    def _log_step(self) -> float:
        return float((np.log(self.high) - np.log(self.low)) / 5)


class Pool:
    """The names of one domain that a task has not used yet, in random order."""

    def __init__(self, vocabulary: Vocabulary, rng: np.random.Generator, taken: tuple[str, ...] = ()) -> None:
        self.vocabulary = vocabulary
        self._rng = rng
        self._left: dict[str, list[Any]] = {}
        for kind in ("numbers", "dates", "categories", "codes", "groups", "places_columns", "traces"):
            entries = [entry for entry in getattr(vocabulary, kind) if entry[0] not in taken]
            self._left[kind] = [entries[index] for index in rng.permutation(len(entries))]

    def count(self, kind: str) -> int:
        """Returns how many names of a kind are left."""
        return len(self._left[kind])

    def take(self, kind: str) -> Any:
        """Returns the next vocabulary entry of a kind, as a tuple.

        Raises:
            AuthoringError: None is left.
        """
        if not self._left[kind]:
            raise AuthoringError(f"the domain {self.vocabulary.domain} has no unused {kind} left")
        return self._left[kind].pop()

    def number(self, *, log: bool | None = None, units: tuple[str, ...] = ()) -> NumberColumn:
        """Returns an unused number column.

        Args:
            log: Spread its values evenly on a log scale (positive columns only); None leaves it to chance.
            units: The units that it may have; empty for any.

        Raises:
            AuthoringError: None is left.
        """
        left = self._left["numbers"]
        fits = [
            at
            for at, (_, unit, low, high, *_rest) in enumerate(left)
            if (not log or high > 4 * low > 0) and (not units or unit in units)
        ]
        if not fits:
            raise AuthoringError(f"the domain {self.vocabulary.domain} has no unused numbers of this kind left")
        name, unit, low, high, digits, meaning = left.pop(fits[-1])
        can_log = high > 4 * low > 0
        is_log = can_log and (bool(self._rng.integers(2)) if log is None else log)
        return NumberColumn(name, unit, low, high, digits, meaning, is_log)
