"""The contract of a fault, and the leak that most of them have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from sandmle.gate.base import GateContext, Regenerate
from sandmle.grading import Predictions
from sandmle.grading.cells import CellError, Form, parse_cells
from sandmle.records import PredictionKind, TaskSpec
from sandmle.sandbox.base import Sandbox

TRAIN, TEST, SAMPLE = "public/train.csv", "public/test.csv", "public/sample_submission.csv"
ANSWERS, ORACLE = "private/answers.csv", "private/oracle.csv"
_EDGE = 0.01


@dataclass(frozen=True)
class Injection:
    """A task with a fault in it.

    Attributes:
        files: The files that changed or are new, by path in the bundle; None removes one.
        spec: The spec, where it changed.
        cheat: What somebody would submit who knows of the leak and of nothing else; None for other faults.
        must_find: For faults that are no leak: this strength spoils the task for certain.
        after: Called with the folder when it is written: file times.
        regenerate: Handed to the gate.
        sandbox: Handed to the gate.
    """

    files: Mapping[str, bytes | None] = field(default_factory=dict)
    spec: TaskSpec | None = None
    cheat: Predictions | None = None
    must_find: bool = False
    after: Callable[[Path], None] | None = None
    regenerate: Regenerate | None = None
    sandbox: Sandbox | None = None


Inject = Callable[[GateContext, float, np.random.Generator], Injection | None]
"""Puts the fault into a task at a strength from 0 to 1; None where the task has no place for it."""


@dataclass(frozen=True)
class Fault:
    """One way to spoil a task.

    Attributes:
        name: The name in tables.
        words: What it is.
        checks: The checks that are there for it.
        inject: Puts it in.
    """

    name: str
    words: str
    checks: tuple[str, ...]
    inject: Inject


@dataclass(frozen=True)
class Leak:
    """Numbers that give answers away. A row shows its own answer, or with the rest of the chance that of another row.

    Attributes:
        train: One number a training row ``# [n_train]``.
        test: One number a test row, in the order of test.csv ``# [n_test]``.
        cheat: The submission that these numbers alone lead to.
    """

    train: np.ndarray
    test: np.ndarray
    cheat: Predictions


def draw_leak(context: GateContext, strength: float, rng: np.random.Generator) -> Leak | None:
    """Draws a leak; None where answers have no numbers that could leak.

    Args:
        context: The sound task.
        strength: Share of the rows that show their own answer.
        rng: Says which.
    """
    key, target = context.grader.key, context.spec.target
    form = Form(target, key.metric, is_answer=True)
    truth = key.truth.values
    if target.kind not in _NUMBERS or not set(form.columns) <= set(context.train.columns):
        return None
    try:
        known = parse_cells(form, {name: list(context.train[name]) for name in form.columns})
    except CellError:
        return None
    own, other = _sources(len(truth), strength, rng), _sources(len(known), strength, rng)
    numbers = _NUMBERS[target.kind]
    rows = [key.position[row_id] for row_id in context.test[context.spec.id_column]]
    return Leak(
        train=numbers(known)[other],
        test=numbers(truth)[own][rows],
        cheat=Predictions(_guess(context, truth, _seen(target.kind, truth)[own], strength)),
    )


def _seen(kind: PredictionKind, truth: np.ndarray) -> np.ndarray:
    """Returns what the leaked numbers tell of each row's answer: of shares only the largest, so the usual ones then."""
    if kind is not PredictionKind.CLASS_PROBABILITIES:
        return truth
    largest = truth.argmax(axis=1)
    return np.array([truth[largest == label].mean(axis=0) for label in largest])


def _sources(n_rows: int, strength: float, rng: np.random.Generator) -> np.ndarray:
    """Returns for each row the row whose answer it shows."""
    own = rng.random(n_rows) < strength
    return np.where(own, np.arange(n_rows), rng.integers(0, n_rows, n_rows))


def _guess(context: GateContext, truth: np.ndarray, seen: np.ndarray, strength: float) -> np.ndarray:
    target = context.spec.target
    if target.kind is PredictionKind.LABEL:
        return np.asarray(seen)
    mean = truth.mean(axis=0)
    guess = strength * seen.astype(float) + (1 - strength) * mean
    if target.kind is PredictionKind.CLASS_PROBABILITIES:
        guess = (guess + _EDGE) / (guess + _EDGE).sum(axis=1, keepdims=True)
    elif target.kind is not PredictionKind.PROBABILITY:  # only the first of several columns leaks
        guess[:, 1:] = mean[1:]
        n_more = len(target.columns) - guess.shape[1]
        guess = np.hstack([guess, np.tile(truth.std(axis=0)[:1], (len(guess), n_more))])
    return np.asarray(guess)


_NUMBERS: dict[PredictionKind, Callable[[np.ndarray], np.ndarray]] = {
    PredictionKind.LABEL: lambda values: values.astype(float),
    PredictionKind.PROBABILITY: lambda values: values.astype(float),
    PredictionKind.CLASS_PROBABILITIES: lambda values: values.argmax(axis=1).astype(float),
    PredictionKind.LABEL_PROBABILITIES: lambda values: values[:, 0].astype(float),
    PredictionKind.VALUES: lambda values: values[:, 0].astype(float),
}


def jittered(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns numbers in the same order, equal ones in a random order among themselves."""
    places = np.argsort(np.lexsort((rng.random(len(values)), values)), kind="stable")
    return np.asarray(places, dtype=float)


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Returns a table of text cells as the bundle's bytes."""
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text.encode()


def renamed_ids(context: GateContext, new_ids: Mapping[str, str]) -> dict[str, bytes | None]:
    """Returns all tables with other ids."""
    name = context.spec.id_column
    files: dict[str, bytes | None] = {}
    for path in (TRAIN, TEST, ANSWERS, SAMPLE, ORACLE):
        if path in context.spec.files:
            frame = context.table(path)
            files[path] = csv_bytes(frame.assign(**{name: frame[name].map(new_ids)}))
    return files
