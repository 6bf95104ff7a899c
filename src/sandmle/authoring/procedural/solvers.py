"""The solvers of the ladder: a few standard learners that serve every kind of target, single-threaded."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import lightgbm
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import SplineTransformer
from sklearn.tree import DecisionTreeRegressor

from sandmle.authoring.procedural.families.base import FloatArray
from sandmle.authoring.procedural.heads import Mode

# Most boosted models per task; beyond, one boosted model a label costs too much.
_MOST_BOOSTED = 3


@dataclass(frozen=True)
class Solver:
    """A learner with its settings."""

    name: str
    kind: str
    params: dict[str, Any] = field(default_factory=dict)

    def predict(
        self, x_train: FloatArray, y_train: np.ndarray, x_other: FloatArray, mode: Mode, n_levels: int
    ) -> FloatArray:
        """Fits on the training rows and returns predictions for the others, in the head's mode.

        Args:
            x_train: Standardised columns # [n_train, n_columns]
            y_train: Targets in the head's mode.
            x_other: Standardised columns # [n_other, n_columns]
            mode: The head's mode.
            n_levels: Number of classes in the mode ``classes``.
        """
        targets = np.eye(n_levels)[y_train] if mode == "classes" else y_train.astype(float)
        raw = _LEARNERS[self.kind](self.params, x_train, y_train, targets, x_other, mode)
        if mode == "values":
            return np.asarray(raw)
        chances = np.clip(raw, 1e-3, 1 - 1e-3)
        return np.asarray(chances / chances.sum(axis=1, keepdims=True) if mode == "classes" else chances)


def _linear(params: dict[str, Any], x: FloatArray, y: np.ndarray, t: FloatArray, z: FloatArray, mode: Mode) -> Any:
    if mode == "values" or not np.isin(t, (0.0, 1.0)).all() or (mode == "labels" and t.shape[1] > _MOST_BOOSTED):
        return _ridge(1.0 / params["c"], x, t, z)
    if mode == "classes":
        return _logistic(params["c"], x, y, z, t.shape[1])
    return np.column_stack([_logistic(params["c"], x, t[:, at].astype(int), z, 2)[:, 1] for at in range(t.shape[1])])


def _spline(params: dict[str, Any], x: FloatArray, y: np.ndarray, t: FloatArray, z: FloatArray, mode: Mode) -> Any:
    bend = SplineTransformer(n_knots=4, degree=2, include_bias=False, extrapolation="linear").fit(x)
    wide_x, wide_z = bend.transform(x), bend.transform(z)
    mean, spread = wide_x.mean(axis=0), np.maximum(wide_x.std(axis=0), 1e-6)
    return _linear(params, (wide_x - mean) / spread, y, t, (wide_z - mean) / spread, mode)


def _components(params: dict[str, Any], x: FloatArray, y: np.ndarray, t: FloatArray, z: FloatArray, mode: Mode) -> Any:
    """A linear model on the leading principal components."""
    n = min(params["n_components"], x.shape[1], len(x) - 1)
    _, size, axes = np.linalg.svd(x, full_matrices=False)
    spread = np.maximum(size[:n] / np.sqrt(len(x)), 1e-6)
    return _linear(params, x @ axes[:n].T / spread, y, t, z @ axes[:n].T / spread, mode)


def _ridge(alpha: float, x: FloatArray, t: FloatArray, z: FloatArray) -> FloatArray:
    scale = np.maximum(t.std(axis=0), 1e-9)
    model = Ridge(alpha=alpha).fit(x, t / scale)
    return np.asarray(np.asarray(model.predict(z)).reshape(len(z), -1) * scale)


def _logistic(c: float, x: FloatArray, y: np.ndarray, z: FloatArray, n_levels: int) -> FloatArray:
    chances = np.full((len(z), n_levels), 1e-3)
    levels = np.unique(y)
    if len(levels) == 1:
        chances[:, levels[0]] = 1.0
        return chances
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=c, max_iter=60).fit(x, y)
    chances[:, model.classes_] = model.predict_proba(z)
    return chances


def _with(make: Callable[..., Any]) -> Callable[..., Any]:
    def learn(params: dict[str, Any], x: FloatArray, y: np.ndarray, t: FloatArray, z: FloatArray, mode: Mode) -> Any:
        model = make(**params).fit(x, t if t.shape[1] > 1 else t[:, 0])
        return np.asarray(model.predict(z)).reshape(len(z), -1)

    return learn


def _boosted(params: dict[str, Any], x: FloatArray, y: np.ndarray, t: FloatArray, z: FloatArray, mode: Mode) -> Any:
    binary = mode != "values" and bool(np.isin(t, (0.0, 1.0)).all())
    if t.shape[1] > _MOST_BOOSTED:
        return _with(ExtraTreesRegressor)(_FOREST | {"max_features": 0.3}, x, y, t, z, mode)
    columns = [1] if mode == "classes" and t.shape[1] == 2 else range(t.shape[1])
    found = []
    for at in columns:
        scale = 1.0 if binary else max(float(t[:, at].std()), 1e-9)
        settings = {
            "objective": "binary" if binary else "regression",
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
            "seed": 0,
            **params,
        }
        rounds = settings.pop("rounds")
        label = t[:, at] / scale
        if binary and len(np.unique(label)) == 1:
            found.append(np.full(len(z), label[0]))
            continue
        data = lightgbm.Dataset(x, label, params={"verbose": -1, "min_data_in_bin": 1})
        found.append(np.asarray(lightgbm.train(settings, data, num_boost_round=rounds).predict(z)) * scale)
    if mode == "classes" and t.shape[1] == 2:
        return np.column_stack([1 - found[0], found[0]])
    return np.column_stack(found)


_FOREST: dict[str, Any] = {"n_estimators": 40, "min_samples_leaf": 2, "max_features": "sqrt", "random_state": 0}
_LEARNERS: dict[str, Callable[..., Any]] = {
    "linear": _linear,
    "components": _components,
    "spline": _spline,
    "neighbours": _with(KNeighborsRegressor),
    "tree": _with(DecisionTreeRegressor),
    "forest": _with(RandomForestRegressor),
    "extra": _with(ExtraTreesRegressor),
    "boosted": _boosted,
}

WEAK = (
    Solver("linear", "linear", {"c": 1.0}),
    Solver("neighbours", "neighbours", {"n_neighbors": 7}),
    Solver("small_forest", "forest", _FOREST | {"n_estimators": 12, "max_depth": 4}),
    Solver("small_boosted", "boosted", {"rounds": 15, "num_leaves": 4, "min_data_in_leaf": 10, "learning_rate": 0.1}),
)
STANDARD = (
    Solver("forest", "forest", _FOREST),
    Solver("boosted", "boosted", {"rounds": 60, "num_leaves": 8, "min_data_in_leaf": 5, "learning_rate": 0.08}),
)
RAW_CANDIDATES = (
    Solver("linear_strong", "linear", {"c": 0.03}),
    Solver("linear_middle", "linear", {"c": 0.3}),
    Solver("linear_loose", "linear", {"c": 3.0}),
    Solver("components", "components", {"c": 0.3, "n_components": 12}),
    Solver("extra", "extra", _FOREST | {"n_estimators": 25}),
    Solver("boosted", "boosted", {"rounds": 40, "num_leaves": 6, "min_data_in_leaf": 6, "learning_rate": 0.1}),
)
PARTIAL = Solver("linear", "linear", {"c": 0.1})
AWARE_CANDIDATES = (
    Solver("linear_middle", "linear", {"c": 0.1}),
    Solver("linear_loose", "linear", {"c": 3.0}),
    Solver("spline_middle", "spline", {"c": 0.1}),
    Solver("spline_loose", "spline", {"c": 1.0}),
    Solver("boosted", "boosted", {"rounds": 60, "num_leaves": 4, "min_data_in_leaf": 6, "learning_rate": 0.1}),
)
