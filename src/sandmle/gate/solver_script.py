"""The independent solver: what a careful engineer does first, with no knowledge of the rule.

The gate sends the source of ``solver_features`` and of this file into the sandbox, where they run as one script: it
reads ``./input`` and writes ``./submission.csv``. It knows no more than the description says. It is no part of the
package's interface.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.stats import spearmanr
from sklearn import metrics
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sandmle.gate.solver_features import Data, Matrix, build_features

N_FOLDS = 3
LABELLED = ("label", "probability", "ranked_labels", "label_set")
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6)


# --- models -------------------------------------------------------------------------------------------------------


def class_models(data: Data, n_classes: int, *, is_one_of_many: bool = False) -> list[Any]:
    """Returns classifiers to choose from; fewer where the same is done for every label."""
    if is_one_of_many:
        return [linear(data.n_single, LogisticRegression(C=c, max_iter=200)) for c in (0.01, 0.1, 1.0)]
    found = [linear(data.n_single, LogisticRegression(C=c, max_iter=300)) for c in (0.01, 0.1, 1.0)]
    if data.x.shape[1] > data.n_single:
        found.append(linear(data.x.shape[1], LogisticRegression(C=0.03, max_iter=300)))
    if n_classes <= 8:
        found += [LGBMClassifier(**boosting()), LGBMClassifier(**boosting() | {"n_estimators": 20, "num_leaves": 4})]
    found.append(ExtraTreesClassifier(40, min_samples_leaf=3, max_features=0.2, random_state=0))
    return found


def value_models(data: Data) -> list[Any]:
    """Returns regressors to choose from."""
    widths = sorted({data.n_single, data.x.shape[1]})
    ridges = [linear(width, RidgeCV(np.logspace(-1, 4, 8))) for width in widths]
    trees = ExtraTreesRegressor(40, min_samples_leaf=3, max_features=0.3, random_state=0)
    return [*ridges, LGBMRegressor(**boosting()), trees]


def linear(n_columns: int, model: Any) -> Any:
    """Returns a linear model on the first columns, which are scaled."""
    return make_pipeline(FunctionTransformer(lambda x: x[:, :n_columns]), model)


def boosting() -> dict[str, Any]:
    """Returns settings for a hundred rows."""
    return {
        "n_estimators": 50, "learning_rate": 0.1, "num_leaves": 7, "min_child_samples": 8, "colsample_bytree": 0.5,
        "subsample": 0.8, "subsample_freq": 1, "n_jobs": 1, "verbosity": -1, "random_state": 0, "deterministic": True,
    }  # fmt: skip


def probabilities(model: Any, features: Matrix, n_classes: int) -> Matrix:
    """Returns one column a class, also for classes that the model has not seen."""
    full = np.full((len(features), n_classes), 1e-4)
    full[:, model.classes_.astype(int)] = model.predict_proba(features)
    return np.asarray(full / full.sum(axis=1, keepdims=True))


def predict_classes(
    data: Data, codes: Matrix, n_classes: int, score: Any, *, is_one_of_many: bool = False
) -> tuple[Matrix, Matrix]:
    """Returns held-out probabilities of the training rows and those of fresh rows, by the best of the models."""
    x, fresh, _ = data
    if len(np.unique(codes)) < 2:
        rows = np.eye(n_classes)[int(codes[0])]
        return np.tile(rows, (len(x), 1)), np.tile(rows, (len(fresh), 1))
    everything = []
    for model in class_models(data, n_classes, is_one_of_many=is_one_of_many):
        held = np.zeros((len(x), n_classes))
        for fitted, out in folds(len(x)):
            if len(np.unique(codes[fitted])) < 2:
                held[out] = np.bincount(codes[fitted], minlength=n_classes) / len(fitted)
                continue
            held[out] = probabilities(model.fit(x[fitted], codes[fitted]), x[out], n_classes)
        everything.append((held, probabilities(model.fit(x, codes), fresh, n_classes)))
    return best_or_blend(everything, score)


def predict_values(data: Data, y: Matrix, score: Any) -> tuple[Matrix, Matrix]:
    """Returns held-out values of the training rows and those of fresh rows, by the best of the models."""
    x, fresh, _ = data
    everything = []
    for model in value_models(data):
        held = np.zeros(len(x))
        for fitted, out in folds(len(x)):
            held[out] = model.fit(x[fitted], y[fitted]).predict(x[out])
        everything.append((held, np.asarray(model.fit(x, y).predict(fresh))))
    low, high = y.min() - 0.1 * np.ptp(y), y.max() + 0.1 * np.ptp(y)
    return best_or_blend([(held.clip(low, high), predicted.clip(low, high)) for held, predicted in everything], score)


def best_or_blend(pairs: list[tuple[Matrix, Matrix]], score: Any) -> tuple[Matrix, Matrix]:
    """Returns the pair with the best held-out score, or the mean of the two or three best."""
    pairs = sorted(pairs, key=lambda pair: -score(pair[0]))
    blends = [
        (np.mean([held for held, _ in pairs[:n]], axis=0), np.mean([predicted for _, predicted in pairs[:n]], axis=0))
        for n in (1, 2, 3)
    ]
    return max(blends, key=lambda pair: score(pair[0]))


def folds(n: int) -> Any:
    """Returns the same folds each time."""
    return KFold(N_FOLDS, shuffle=True, random_state=0).split(np.zeros(n))


# --- the metric, as far as choosing goes --------------------------------------------------------------------------


def class_score(metric: str, codes: Matrix) -> Any:
    """Returns a function of probabilities; more is better."""

    def score(chances: Matrix) -> float:
        if "qwk" in metric or "kappa" in metric:
            return float(metrics.cohen_kappa_score(codes, chances.argmax(axis=1), weights="quadratic"))
        if "auc" in metric and chances.shape[1] == 2 and len(np.unique(codes)) == 2:
            return float(metrics.roc_auc_score(codes, chances[:, 1]))
        return -log_loss(chances, codes)  # for accuracy and its like too: counts of so few rows are too coarse

    return score


def log_loss(chances: Matrix, codes: Matrix) -> float:
    """Returns the mean negative log probability."""
    return float(-np.log(np.clip(chances[np.arange(len(codes)), codes], 1e-6, 1)).mean())


def value_score(metric: str, y: Matrix) -> Any:
    """Returns a function of predicted values; more is better."""

    def score(predicted: Matrix) -> float:
        if "spearman" in metric or "pearson" in metric:
            return float(np.nan_to_num(spearmanr(y, predicted).statistic))
        if "mae" in metric or "absolute" in metric:
            return -float(np.abs(y - predicted).mean())
        return -float(((y - predicted) ** 2).mean())

    return score


def best_threshold(metric: str, truth: Matrix, chances: Matrix) -> float:
    """Returns the cut of the positive class that is best on held-out rows."""

    def value(cut: float) -> float:
        picked = (chances >= cut).astype(int)
        if "f1" in metric:
            return float(
                metrics.f1_score(truth, picked, average="binary" if "macro" not in metric else "macro", zero_division=0)
            )
        if "mcc" in metric or "matthews" in metric:
            return float(metrics.matthews_corrcoef(truth, picked))
        # Of a hundred rows, a few go either way: another cut than the middle has to be worth it.
        return float(metrics.accuracy_score(truth, picked)) - 0.15 * abs(cut - 0.5)

    return max(THRESHOLDS, key=value)


def best_weights(metric: str, codes: Matrix, chances: Matrix) -> Matrix:
    """Returns weights of the classes: where rare ones count as much as common ones, they deserve more guesses."""
    shares = (np.bincount(codes, minlength=chances.shape[1]) + 1) / (len(codes) + chances.shape[1])
    if "macro" not in metric and "balanced" not in metric:
        return np.ones_like(shares)

    def value(power: float) -> float:
        picked = (chances * shares**-power).argmax(axis=1)
        return float(metrics.f1_score(codes, picked, average="macro", zero_division=0))

    return np.asarray(shares ** -max((0.0, 0.4, 0.8), key=value))


# --- one way of answering for each kind of prediction -------------------------------------------------------------


def answer(task: dict[str, Any], train: pd.DataFrame, data: Data, sample: pd.DataFrame) -> pd.DataFrame:
    """Fills the sample submission."""
    kind, columns = task["kind"], task["columns"]
    known = [name for name in columns if name in train.columns]
    filled = sample.copy()
    if kind == "values":
        filled = fill_values(task["metric"], columns, train, data, filled)
        filled[columns] = filled[columns].clip(task["low"], task["high"])
        return filled
    if kind == "label_probabilities" or (
        kind == "class_probabilities" and known == columns and is_soft(train[columns])
    ):
        shares = np.column_stack([one_share(train[name], data, len(columns) > 2) for name in columns])
        filled[columns] = shares / shares.sum(axis=1, keepdims=True) if kind == "class_probabilities" else shares
        return filled
    if kind == "label_set":
        return fill_sets(task, train, data, filled)
    return fill_labels(task, train, data, filled)


def fill_labels(task: dict[str, Any], train: pd.DataFrame, data: Data, filled: pd.DataFrame) -> pd.DataFrame:
    """Predicts the one label of each row and writes it as the task wants it."""
    kind, columns, metric = task["kind"], task["columns"], task["metric"]
    labels: list[str] = columns if kind == "class_probabilities" else task["labels"] or ["0", "1"]
    codes = label_codes(task, train, labels)
    held, chances = predict_classes(data, codes, len(labels), class_score(metric, codes))
    if kind == "class_probabilities":
        filled[columns] = chances
    elif kind == "probability" and "f1" in metric:
        cut = best_threshold(metric, (codes == len(labels) - 1).astype(int), held[:, -1])
        filled[columns[0]] = (chances[:, -1] >= cut).astype(float)
    elif kind == "probability":
        filled[columns[0]] = chances[:, -1].round(6)
    elif kind == "ranked_labels":
        order = np.argsort(-chances, axis=1, kind="stable")[:, : task["max_items"] or 5]
        filled[columns[0]] = [" ".join(labels[at] for at in row) for row in order]
    elif len(labels) == 2:
        cut = best_threshold(metric, (codes == 1).astype(int), held[:, 1])
        filled[columns[0]] = np.where(chances[:, 1] >= cut, labels[1], labels[0])
    else:
        weights = best_weights(metric, codes, held)
        filled[columns[0]] = [labels[at] for at in (chances * weights).argmax(axis=1)]
    return filled


def label_codes(task: dict[str, Any], train: pd.DataFrame, labels: list[str]) -> Matrix:
    """Returns the position of each training row's label ``# [n_train]``."""
    columns = task["columns"]
    if len(columns) > 1 and set(columns) <= set(train.columns):
        return np.asarray(train[columns].to_numpy(dtype=float).argmax(axis=1))
    own = train[columns[0] if columns[0] in train.columns else task["train_targets"][0]].astype(str)
    return np.array([place(cell.split()[0] if task["kind"] == "ranked_labels" else cell, labels) for cell in own])


def place(cell: str, labels: list[str]) -> int:
    """Returns the position of a label; 1.0 stands for 1."""
    if cell in labels:
        return labels.index(cell)
    return next((at for at, label in enumerate(labels) if float(label) == float(cell)), 0)


def is_soft(frame: pd.DataFrame) -> bool:
    """Tells shares from indicators."""
    return bool(((frame > 0) & (frame < 1)).any().any())


def one_share(target: pd.Series, data: Data, is_one_of_many: bool) -> Matrix:
    """Returns chances of an indicator, or values of a share, between 0 and 1."""
    y = target.to_numpy(dtype=float)
    if is_soft(target.to_frame()):
        return predict_values(data, y, value_score("rmse", y))[1].clip(0.001, 0.999)
    codes = y.astype(int)
    score = class_score("log_loss", codes)
    return predict_classes(data, codes, 2, score, is_one_of_many=is_one_of_many)[1][:, 1]


def fill_values(metric: str, columns: list[str], train: pd.DataFrame, data: Data, filled: pd.DataFrame) -> pd.DataFrame:
    """Predicts each column by itself; a column without training values gets the usual error of the first."""
    error = 1.0
    if "angular" in metric:
        return fill_angles(columns, train, data, filled)
    for name in columns:
        if name not in train.columns:
            filled[name] = error
            continue
        y = train[name].to_numpy(dtype=float)
        is_log = bool("rmsle" in metric and y.min() >= 0)
        goal = np.log1p(y) if is_log else y
        held, predicted = predict_values(data, goal, value_score(metric, goal))
        if "mae" in metric and y.min() >= 0:  # of a skewed target: its middle, not its mean
            in_logs = [np.expm1(each) for each in predict_values(data, np.log1p(y), value_score(metric, np.log1p(y)))]
            held, predicted = max((held, predicted), in_logs, key=lambda pair: value_score(metric, y)(pair[0]))
        error = float(np.abs(held - goal).mean() * 1.4)
        filled[name] = np.maximum(np.expm1(predicted), 0) if is_log else predicted
    return filled


def fill_angles(columns: list[str], train: pd.DataFrame, data: Data, filled: pd.DataFrame) -> pd.DataFrame:
    """Predicts directions as points on the unit sphere: angles jump where they close."""
    azimuth, zenith = (train[name].to_numpy(dtype=float) for name in columns)
    axes = (np.cos(azimuth) * np.sin(zenith), np.sin(azimuth) * np.sin(zenith), np.cos(zenith))
    x, y, z = (predict_values(data, axis, value_score("rmse", axis))[1] for axis in axes)
    filled[columns[0]] = np.mod(np.arctan2(y, x), 2 * np.pi)
    filled[columns[1]] = np.arctan2(np.hypot(x, y), z)
    return filled


def fill_sets(task: dict[str, Any], train: pd.DataFrame, data: Data, filled: pd.DataFrame) -> pd.DataFrame:
    """Predicts each label by itself and writes those that are likely enough."""
    labels, name = task["labels"], task["columns"][0]
    own = [set(str(cell).split()) for cell in train[name].fillna("")]
    truth, kept, chances = [], [], []
    for label in labels:
        codes = np.array([int(label in cell) for cell in own])
        held, predicted = predict_classes(
            data, codes, 2, class_score("log_loss", codes), is_one_of_many=len(labels) > 2
        )
        truth.append(codes)
        kept.append(held[:, 1])
        chances.append(predicted[:, 1])
    cut = max(THRESHOLDS, key=lambda cut: pooled_f1(np.array(truth), np.array(kept) >= cut))
    picked = np.transpose(chances) >= cut
    filled[name] = [" ".join(label for label, is_in in zip(labels, row, strict=True) if is_in) for row in picked]
    return filled


def pooled_f1(truth: Matrix, picked: Matrix) -> float:
    """Returns the F1 of all labels of all rows together."""
    return float(2 * (truth * picked).sum() / max(1, truth.sum() + picked.sum()))


def main(task: dict[str, Any]) -> None:
    """Reads, learns, predicts, writes."""
    warnings.simplefilter("ignore")
    folder = Path(task["input"])
    sample = pd.read_csv(folder / "sample_submission.csv", dtype={task["id_column"]: str})
    task["columns"] = task["columns"] or [name for name in sample.columns if name != task["id_column"]]
    as_text = dict.fromkeys([task["id_column"], *(task["columns"] if task["kind"] in LABELLED else [])], str)
    train, test = (pd.read_csv(folder / f"{name}.csv", dtype={**as_text}) for name in ("train", "test"))
    sample = sample.set_index(task["id_column"]).loc[test[task["id_column"]]]
    inputs = [name for name in test.columns if name != task["id_column"]]
    data = build_features(train[inputs], test[inputs], folder)
    task["train_targets"] = [name for name in train.columns if name not in test.columns]
    answer(task, train, data, sample.reset_index()).to_csv(task["output"], index=False)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else TASK)  # type: ignore[name-defined]  # noqa: F821
