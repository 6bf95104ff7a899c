"""The ladder: what solvers of rising skill score on the calibration draw, by the grader's own code path."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sandmle.authoring.procedural.dataset import CALIBRATION, TRAIN, Dataset
from sandmle.authoring.procedural.encoding import encode_aware, encode_raw
from sandmle.authoring.procedural.families import FAMILIES
from sandmle.authoring.procedural.families.base import FloatArray
from sandmle.authoring.procedural.heads import Cells
from sandmle.authoring.procedural.publish import bare_answers, bare_submission, scoring_rule
from sandmle.authoring.procedural.solvers import AWARE_CANDIDATES, PARTIAL, RAW_CANDIDATES, STANDARD, WEAK, Solver
from sandmle.authoring.randomness import digest_of
from sandmle.errors import AuthoringError
from sandmle.grading import AnswerKey, Predictions, SubmissionProblem, read_submission
from sandmle.records import Ladder, Rung, Tier

_FOLDS = 4
_BLENDED = 3
Views = tuple[FloatArray, FloatArray]


@dataclass
class Course:
    """Where the solvers run: the rows, the keys to score by, and the rungs so far."""

    dataset: Dataset
    train_key: AnswerKey
    calibration_key: AnswerKey
    rungs: list[Rung]

    @classmethod
    def of(cls, dataset: Dataset) -> "Course":
        """Returns a course without rungs."""
        return cls(dataset, answer_key(dataset, TRAIN), answer_key(dataset, CALIBRATION), [])

    def gain(self, part: int, predictions: FloatArray, option: float) -> float:
        """Returns how good predictions for all rows of TRAIN or CALIBRATION are; more is better."""
        key = self.train_key if part == TRAIN else self.calibration_key
        cells = self.dataset.decoded(self.dataset.rows_where(part), predictions, option)
        return self.dataset.plan.direction.gain(key.score(self.read(key, cells)), 0.0)

    def read(self, key: AnswerKey, cells: Cells) -> Predictions:
        """Sends predictions through the same reader as an agent's submission."""
        found = read_submission(key, bare_submission(self.dataset, cells))
        if isinstance(found, SubmissionProblem):
            raise AuthoringError(f"a baseline's submission is refused: {found.message}")
        return found

    def add(self, name: str, tier: Tier, cells: Cells, *, with_error: bool = False) -> None:
        """Scores predictions for the calibration rows and adds the rung.

        Args:
            name: Name of the rung.
            tier: Its tier.
            cells: The submission's columns.
            with_error: Also estimate the standard error. Where it takes a bootstrap it costs more than the solver, and
                the thresholds' errors lie between those of a few rungs.
        """
        plan, key = self.dataset.plan, self.calibration_key
        table = self.read(key, cells)
        seed = int.from_bytes(digest_of("error", plan.task_id, name)[:4], "big")
        error = key.standard_error(table, n_rows=plan.n_private, rng_seed=seed) if with_error else None
        self.rungs.append(Rung(name=name, tier=tier, score=key.score(table), standard_error=error))

    def add_predictions(
        self, name: str, tier: Tier, predictions: FloatArray, option: float, *, with_error: bool = False
    ) -> None:
        """Adds the rung of predictions in the head's mode, written as ``option`` says."""
        cells = self.dataset.decoded(self.dataset.rows_where(CALIBRATION), predictions, option)
        self.add(name, tier, cells, with_error=with_error)


def climb(dataset: Dataset, constant_option: float, oracle_option: float) -> Ladder:
    """Returns the scores of all baselines of a task.

    Args:
        dataset: The rows.
        constant_option: How the dummy's predictions are written.
        oracle_option: How the hidden rule's predictions are written.
    """
    train, other = dataset.where(TRAIN), dataset.where(CALIBRATION)
    course = Course.of(dataset)
    options = dataset.head.options(dataset.y[train])
    constant = dataset.constant(dataset.rows_where(CALIBRATION), constant_option)
    course.add("constant", Tier.DUMMY, constant, with_error=True)

    raw = encode_raw(dataset, train, other)
    for tier, solvers in ((Tier.WEAK, WEAK), (Tier.STANDARD, STANDARD)):
        for solver in solvers:
            course.add_predictions(
                f"raw_{solver.name}", tier, _fitted(dataset, solver, raw), options[0], with_error=solver is WEAK[0]
            )
    course.add_predictions("raw_tuned", Tier.TUNED, *tuned(course, [raw], RAW_CANDIDATES), with_error=True)

    everything = tuple(range(len(dataset.insights)))
    for at in everything:
        insight = dataset.insights[at]
        if not FAMILIES[insight.family].graded:
            one = encode_aware(dataset, (at,), train, other)
            both = (np.hstack([raw[0], one[0]]), np.hstack([raw[1], one[1]]))
            found = _fitted(dataset, PARTIAL, both)
            course.add_predictions(f"knows_{insight.family}_{at}", Tier.RULE_AWARE, found, options[0])
    aware = encode_aware(dataset, everything, train, other)
    course.add_predictions("knows_all", Tier.RULE_AWARE, *tuned(course, [aware], AWARE_CANDIDATES), with_error=True)

    oracle = dataset.oracle[other]
    course.add_predictions("hidden_rule", Tier.ORACLE, oracle, oracle_option, with_error=True)
    plan = dataset.plan
    return Ladder(metric=plan.metric, direction=plan.direction, n_rows=plan.n_calibration, rungs=tuple(course.rungs))


def best_constant_option(dataset: Dataset) -> float:
    """Returns the way to write what looks at no feature that suits the training rows best."""
    options = dataset.head.constant_options(dataset.y[dataset.where(TRAIN)])
    if len(options) == 1:
        return options[0]
    course, at = Course.of(dataset), dataset.rows_where(TRAIN)

    def gain(option: float) -> float:
        score = course.train_key.score(course.read(course.train_key, dataset.constant(at, option)))
        return dataset.plan.direction.gain(score, 0.0)

    return max(options, key=gain)


def best_oracle_option(dataset: Dataset) -> float:
    """Returns the way to write predictions that suits the hidden rule best on the calibration rows."""
    options = dataset.head.options(dataset.y[dataset.where(TRAIN)])
    if len(options) == 1:
        return options[0]
    course, oracle = Course.of(dataset), dataset.oracle[dataset.where(CALIBRATION)]
    return max(options, key=lambda option: course.gain(CALIBRATION, oracle, option))


def answer_key(dataset: Dataset, part: int) -> AnswerKey:
    """Returns the answers of all rows of a part."""
    return AnswerKey.parse(scoring_rule(dataset.plan), bare_answers(dataset, part))


def _fitted(dataset: Dataset, solver: Solver, views: Views) -> FloatArray:
    y_train = dataset.y[dataset.where(TRAIN)]
    return solver.predict(views[0], y_train, views[1], dataset.head.mode, dataset.head.n_levels())


def tuned(course: Course, views: Sequence[Views], candidates: tuple[Solver, ...]) -> tuple[FloatArray, float]:
    """Blends the best pairs of view and solver; all is chosen by cross-validation on the task's own metric.

    Returns:
        Predictions for the calibration rows, and the option to write them by.
    """
    dataset = course.dataset
    train = dataset.where(TRAIN)
    y = dataset.y[train]
    folds, options = _folds(dataset, train), dataset.head.options(y)
    tried: list[tuple[float, int, FloatArray]] = []
    pairs = list(itertools.product(views, candidates))
    for at, (view, solver) in enumerate(pairs):
        held_out = _out_of_fold(solver, view[0], y, folds, dataset)
        tried.append((max(course.gain(TRAIN, held_out, option) for option in options), -at, held_out))
    best = sorted(tried, key=lambda entry: entry[:2], reverse=True)[:_BLENDED]
    blend = np.mean([held_out for _, _, held_out in best], axis=0)
    option = max(options, key=lambda option: course.gain(TRAIN, blend, option))
    chosen = [pairs[-at] for _, at, _ in best]
    return np.mean([_fitted(dataset, solver, view) for view, solver in chosen], axis=0), option


def _out_of_fold(solver: Solver, x: FloatArray, y: np.ndarray, folds: np.ndarray, dataset: Dataset) -> FloatArray:
    found: list[tuple[np.ndarray, FloatArray]] = []
    for fold in range(_FOLDS):
        held = folds == fold
        guess = solver.predict(x[~held], y[~held], x[held], dataset.head.mode, dataset.head.n_levels())
        found.append((held, guess))
    held_out = np.empty((len(y), found[0][1].shape[1]))
    for held, guess in found:
        held_out[held] = guess
    return held_out


def _folds(dataset: Dataset, train: np.ndarray) -> np.ndarray:
    """Returns the fold of every training row; rows of one entity and pieces of one row share theirs.

    Labels are spread evenly where nothing binds rows.
    """
    entity = dataset.rows.entity[train]
    if dataset.plan.dna.groups:
        return np.asarray(entity % _FOLDS)
    if dataset.rows.n_pieces > 1:
        return np.asarray(np.arange(len(train)) // dataset.rows.n_pieces % _FOLDS)
    y = dataset.y[train]
    order = np.argsort(y if y.ndim == 1 else y[:, 0], kind="stable")
    folds = np.empty(len(train), dtype=int)
    folds[order] = np.arange(len(train)) % _FOLDS
    return folds
