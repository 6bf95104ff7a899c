"""Is a medal skill or luck? Solvers are trained again on other rows of the same rule.

The other rows come out of the test: as many as train.csv has are drawn from it, with their answers. Both fits are
scored on the private rows that were not drawn, so nothing but the training rows differs.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from sandmle.errors import BundleError
from sandmle.gate import GateContext
from sandmle.grading import AnswerKey, MetricUndefined, Predictions
from sandmle.grading.cells import CellError, Form, parse_cells
from sandmle.grading.thresholds import above_median, medal_of
from sandmle.parallel import map_items
from sandmle.records import Direction, Medal, PredictionKind, Record
from sandmle.tasks import load_bundle

_SOLVED = (
    PredictionKind.LABEL,
    PredictionKind.PROBABILITY,
    PredictionKind.CLASS_PROBABILITIES,
    PredictionKind.VALUES,
)
_EDGE = 0.005
_FEWEST_ROWS = 500
_MEDIAN = "median"
_LEVELS = ("none", _MEDIAN, "bronze", "silver", "gold")


class Retrained(Record):
    """One task: each solver's score and level with its own training rows and with others."""

    task_id: str
    family: str
    direction: Direction
    scores: dict[str, tuple[float, float]]
    levels: dict[str, tuple[str, str]]
    """none, median, bronze, silver or gold."""


class RetrainingSummary(Record):
    """What retraining tells of a task set."""

    n_tasks: int
    """Tasks whose inputs and answers the solvers can read."""
    n_left_out: int
    n_solvers: int
    same_level: float | None
    """Share of solvers and tasks with the same level (none, median, bronze, silver, gold) both times."""
    same_level_by_chance: float | None
    """What that share would be if levels were dealt out by their frequencies."""
    same_medal: float | None
    """The same with median counted as none."""
    same_order: float | None
    """Share of tasks on which no two solvers change places by level (a tie both ways is no change)."""
    rank_same_task: float | None
    """Mean rank correlation of solvers between the two fits on one task: the ceiling."""
    rank_same_family: float | None
    rank_other_family: float | None


def retrain(folders: Sequence[Path], *, families: Mapping[str, str], workers: int = 1) -> Iterator[Retrained | None]:
    """Trains the solvers twice on each task.

    Args:
        folders: The tasks.
        families: The tasks' families, by folder name.
        workers: Processes.

    Yields:
        One result a task as they finish; None where the solvers cannot read inputs or answers.
    """
    for outcome in map_items(_Retrain(dict(families)), folders, workers=workers):
        yield outcome.result


@dataclass(frozen=True)
class _Retrain:
    families: dict[str, str]

    def __call__(self, folder: Path) -> Retrained | None:
        with threadpool_limits(1):
            return retrain_task(folder, self.families.get(folder.name, ""))


def retrain_task(folder: Path, family: str) -> Retrained | None:
    """Trains the solvers twice on one task; None where they cannot read its inputs or answers."""
    context = GateContext(load_bundle(folder, verify=False), "calibrated")
    data = _data(context)
    if data is None:
        return None
    spec = context.spec
    scores: dict[str, tuple[float, float]] = {}
    levels: dict[str, tuple[str, str]] = {}
    for name, solver in SOLVERS.items():
        try:
            both = [data.key.score(Predictions(_predict(solver, x, y, data))) for x, y in data.fits]
        except (ValueError, MetricUndefined):  # a class that one of the draws lacks
            continue
        scores[name] = (both[0], both[1])
        levels[name] = (_level(both[0], context), _level(both[1], context))
    return Retrained(task_id=spec.task_id, family=family, direction=spec.direction, scores=scores, levels=levels)


def summarize_retraining(results: Sequence[Retrained | None]) -> RetrainingSummary:
    """Adds up the results of all tasks."""
    done = [result for result in results if result is not None and result.levels]
    pairs = [pair for result in done for pair in result.levels.values()]
    flat = [tuple("none" if level == _MEDIAN else level for level in pair) for pair in pairs]
    ranked = [result for result in done if len(result.scores) == len(SOLVERS)]
    vectors = [_orders(result) for result in ranked]
    same = [_correlation(first, second) for first, second in vectors]
    between: dict[bool, list[float]] = defaultdict(list)
    for (one, (first, _)), (other, (second, _)) in itertools.combinations(zip(ranked, vectors, strict=True), 2):
        between[one.family == other.family].append(_correlation(first, second))
    return RetrainingSummary(
        n_tasks=len(done),
        n_left_out=len(results) - len(done),
        n_solvers=len(SOLVERS),
        same_level=_mean([float(first == second) for first, second in pairs]),
        same_level_by_chance=_chance(pairs),
        same_medal=_mean([float(first == second) for first, second in flat]),
        same_order=_mean([float(_keeps_order(result)) for result in done]),
        rank_same_task=_mean(same),
        rank_same_family=_mean(between[True]),
        rank_other_family=_mean(between[False]),
    )


@dataclass(frozen=True)
class _Data:
    """A task as numbers: two sets of training rows, and all rows to predict in the order of the answers."""

    kind: PredictionKind
    fits: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    features: np.ndarray  # [n_answers, n_features]
    key: AnswerKey
    n_labels: int


def _data(context: GateContext) -> _Data | None:
    key, target = context.grader.key, context.spec.target
    form = Form(target, key.metric, is_answer=True)
    if target.kind not in _SOLVED or form.columns != target.columns or not context.inputs:
        return None
    if not set(form.columns) <= set(context.train.columns):
        return None
    try:
        y_train = parse_cells(form, {name: list(context.train[name]) for name in form.columns})
        truth = key.truth.values
    except (CellError, BundleError):
        return None
    x_train, x_test = (
        np.column_stack([getattr(column, part) for column in context.inputs]) for part in ("train", "test")
    )
    middle = np.nan_to_num(np.nanmedian(np.vstack([x_train, x_test]), axis=0))
    x_train, x_test = (np.where(np.isnan(x), middle, x) for x in (x_train, x_test))
    place = {row_id: at for at, row_id in enumerate(context.test[context.spec.id_column])}
    features = x_test[[place[row_id] for row_id in key.ids]]
    rng = np.random.default_rng(int(context.spec.task_hash[:12], 16))
    drawn = rng.choice(len(features), min(len(x_train), len(features) // 3), replace=False)
    left = np.setdiff1d(np.flatnonzero(key.leaderboard == "private"), drawn)
    if len(left) < _FEWEST_ROWS:
        return None
    return _Data(
        kind=target.kind,
        fits=((x_train, y_train), (features[drawn], truth[drawn])),
        features=features,
        key=replace(key, selected=left),
        n_labels=len(target.columns) if target.kind is PredictionKind.CLASS_PROBABILITIES else len(target.labels),
    )


def _predict(solver: Callable[[bool], Any], x: np.ndarray, y: np.ndarray, data: _Data) -> np.ndarray:
    if data.kind is PredictionKind.VALUES:
        made = [np.asarray(solver(False).fit(x, goal).predict(data.features)) for goal in y.T]
        return np.column_stack(made)
    codes = y.argmax(axis=1) if data.kind is PredictionKind.CLASS_PROBABILITIES else y.astype(int)
    model = solver(True).fit(x, codes)
    if data.kind is PredictionKind.LABEL:
        return np.asarray(model.predict(data.features))
    shares = np.full((len(data.features), max(2, data.n_labels)), _EDGE)
    shares[:, model.classes_] += model.predict_proba(data.features)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares[:, 1] if data.kind is PredictionKind.PROBABILITY else shares


def _linear(is_classifier: bool) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300) if is_classifier else Ridge())


def _neighbours(n: int) -> Callable[[bool], Any]:
    def make(is_classifier: bool) -> Any:
        from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), KNeighborsClassifier(n) if is_classifier else KNeighborsRegressor(n))

    return make


def _tree(is_classifier: bool) -> Any:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    made = DecisionTreeClassifier if is_classifier else DecisionTreeRegressor
    return made(max_depth=4, min_samples_leaf=5, random_state=0)


def _forest(is_classifier: bool) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    made = ExtraTreesClassifier if is_classifier else ExtraTreesRegressor
    return made(60, min_samples_leaf=2, random_state=0)


def _boosting(is_classifier: bool) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    made = LGBMClassifier if is_classifier else LGBMRegressor
    return made(n_estimators=60, min_child_samples=8, num_leaves=15, verbose=-1, n_jobs=1, random_state=0)


SOLVERS: dict[str, Callable[[bool], Any]] = {
    "linear": _linear,
    "neighbours_5": _neighbours(5),
    "neighbours_25": _neighbours(25),
    "tree": _tree,
    "forest": _forest,
    "boosting": _boosting,
}
"""Plain solvers on the table's columns as numbers; True asks for a classifier."""


def _level(score: float, context: GateContext) -> str:
    spec = context.spec
    medal = medal_of(score, spec.thresholds, spec.direction)
    if medal is Medal.NONE:
        return _MEDIAN if above_median(score, spec.thresholds, spec.direction) else "none"
    return medal.value


def _keeps_order(result: Retrained) -> bool:
    heights = [(_LEVELS.index(first), _LEVELS.index(second)) for first, second in result.levels.values()]
    return all((one[0] - other[0]) * (one[1] - other[1]) >= 0 for one, other in itertools.combinations(heights, 2))


def _orders(result: Retrained) -> tuple[list[float], list[float]]:
    """Returns how good each solver is, more is better, for both fits."""
    names = sorted(result.scores)
    first, second = ([result.direction.gain(result.scores[name][at], 0.0) for name in names] for at in (0, 1))
    return first, second


def _correlation(first: Sequence[float], second: Sequence[float]) -> float:
    if len(set(first)) < 2 or len(set(second)) < 2:
        return 0.0
    return float(spearmanr(first, second).statistic)


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 4) if values else None


def _chance(pairs: Sequence[tuple[str, str]]) -> float | None:
    if not pairs:
        return None
    firsts, seconds = (Counter(pair[at] for pair in pairs) for at in (0, 1))
    return round(sum(firsts[level] * seconds[level] for level in firsts) / len(pairs) ** 2, 4)
