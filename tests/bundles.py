"""Small, valid, hand-made tasks for tests: no author, no grading, no sandbox.

``draft("binary")`` gives a :class:`BundleDraft` that every check of the gate should pass; ``saved(draft, folder)`` puts
it on disk; ``table`` and ``with_table`` read and change one of its tables, to inject a fault. Kinds: ``binary`` (AUC),
``multiclass`` (log loss), ``regression`` (RMSE), ``text`` (accuracy on labels), ``image`` (8 x 8 PNG, AUC).
"""

import functools
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sandmle.records import (
    ColumnSpec,
    Direction,
    Ladder,
    Modality,
    PredictionKind,
    Provenance,
    Rung,
    StructuralDNA,
    TargetSpec,
    TaskKind,
    TaskSpec,
    Threshold,
    Thresholds,
    Tier,
)
from sandmle.tasks import Bundle, BundleDraft, write_bundle

KINDS = ("binary", "multiclass", "regression", "text", "image")
N_CALIBRATION = 3000
_COLOURS = ("amber", "blue", "green", "white")
_CLASSES = ("low", "middle", "high")
_WORDS = tuple(
    "ash bay cedar dune elm fern grove heath isle jetty knoll lake marsh oak pond quay reed shore tarn".split()
)
_UP, _DOWN = ("cedar", "lake", "reed"), ("dune", "marsh", "quay")


@dataclass(frozen=True)
class Drawn:
    """Rows of a rule: what is seen, what the rule says without noise, and the answers."""

    frame: pd.DataFrame
    numbers: np.ndarray  # [n_rows, n_features], for the baselines
    clean: np.ndarray  # [n_rows] or [n_rows, n_classes]: the oracle's prediction
    answers: np.ndarray  # [n_rows]
    images: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Kind:
    """What a kind of hand-made task has of its own."""

    draw: Callable[[np.random.Generator, int], Drawn]
    score: Callable[[np.ndarray, np.ndarray], float]
    spec: dict[str, Any]
    target: TargetSpec
    description: str
    n_private: int


def table(draft: BundleDraft, path: str) -> pd.DataFrame:
    """Reads a table of a draft; ids, categories and labels stay text."""
    return pd.read_csv(io.BytesIO(draft.files[path]), dtype={draft.spec.id_column: str}, keep_default_na=True)


def with_table(draft: BundleDraft, path: str, frame: pd.DataFrame) -> BundleDraft:
    """Returns the draft with one table replaced."""
    return with_file(draft, path, _csv(frame))


def with_file(draft: BundleDraft, path: str, data: bytes) -> BundleDraft:
    """Returns the draft with one file replaced or added."""
    return replace(draft, files={**draft.files, path: data})


def with_spec(draft: BundleDraft, **changes: Any) -> BundleDraft:
    """Returns the draft with some fields of its spec changed."""
    return replace(draft, spec=draft.spec.replace(**changes))


def saved(draft: BundleDraft, folder: Path) -> Bundle:
    """Writes the draft into ``folder`` and returns the bundle."""
    return write_bundle(draft, folder)


@functools.lru_cache(maxsize=64)
def draft(kind: str = "binary", rng_seed: int = 0, n_train: int = 150, n_private: int | None = None) -> BundleDraft:
    """Returns a valid task of a kind; the same arguments give the same bytes."""
    made = _KINDS[kind]
    rng = np.random.default_rng([KINDS.index(kind), rng_seed])
    n_private = n_private or made.n_private
    n_public = 300 if n_private >= 1000 else 60
    train, test = made.draw(rng, n_train), made.draw(rng, n_public + n_private)
    ladder = _ladder(made, train, made.draw(rng, N_CALIBRATION), rng, n_private)
    names = rng.choice(0x1000000, n_train + n_public + n_private, replace=False)
    ids = np.array([f"r{name:06x}" for name in names])
    leaderboard = np.array(["public"] * n_public + ["private"] * n_private)[rng.permutation(n_public + n_private)]
    id_column = "record_id"
    files: dict[str, bytes] = {}
    frames = []
    for drawn, own_ids in ((train, ids[:n_train]), (test, ids[n_train:])):
        frame = drawn.frame.copy()
        frame.insert(0, id_column, own_ids)
        if drawn.images:
            frame["image"] = [f"images/{own_id}.png" for own_id in own_ids]
            files.update(
                {f"public/images/{own_id}.png": png for own_id, png in zip(own_ids, drawn.images, strict=True)}
            )
        frames.append(frame)
    columns = list(made.target.columns)
    trained = frames[0].copy()
    if made.target.kind is PredictionKind.CLASS_PROBABILITIES:
        for label in columns:
            trained[label] = (train.answers == label).astype(int)
        answered = pd.DataFrame({label: (test.answers == label).astype(int) for label in columns})
        sample = pd.DataFrame(
            {label: round(float(np.mean(train.answers == label)), 4) for label in columns},
            index=range(len(test.answers)),
        )
    else:
        trained[columns[0]] = train.answers
        answered = pd.DataFrame({columns[0]: test.answers})
        sample = pd.DataFrame({columns[0]: [_constant(made, train.answers)] * len(test.answers)})
    clean = (
        pd.DataFrame(test.clean, columns=columns).round(6)
        if test.clean.ndim == 2
        else pd.DataFrame({columns[0]: test.clean})
    )
    for frame in (answered, sample, clean):
        frame.insert(0, id_column, ids[n_train:])
    answered["leaderboard"] = leaderboard
    files["public/train.csv"] = _csv(trained)
    files["public/test.csv"] = _csv(frames[1])
    files["public/sample_submission.csv"] = _csv(sample)
    files["private/answers.csv"] = _csv(answered)
    files["private/oracle.csv"] = _csv(clean)
    files["provenance/ladder.json"] = ladder.to_json().encode()
    files["description.md"] = made.description.encode()
    spec = TaskSpec(
        task_id=f"hand-{kind}-{rng_seed}",
        title=f"Hand-made {kind}",
        domain="workshop",
        id_column=id_column,
        target=made.target,
        columns=_column_specs(frames[0], id_column),
        n_train=n_train,
        n_public=n_public,
        n_private=n_private,
        thresholds=_thresholds(ladder),
        provenance=Provenance(author="hand", author_version="1", rng_seed=rng_seed),
        **made.spec,
    )
    return BundleDraft(spec=spec, files=dict(sorted(files.items())))


def _csv(frame: pd.DataFrame) -> bytes:
    data: str = frame.to_csv(index=False, lineterminator="\n")
    return data.encode()


def _constant(made: Kind, answers: np.ndarray) -> Any:
    if made.target.kind is PredictionKind.VALUES:
        return round(float(answers.mean()), 3)
    if made.target.kind is PredictionKind.PROBABILITY:
        return 0.5
    values, counts = np.unique(answers, return_counts=True)
    return values[counts.argmax()]


def _column_specs(frame: pd.DataFrame, id_column: str) -> tuple[ColumnSpec, ...]:
    def kind(name: str) -> Any:
        if name == id_column:
            return "id"
        if name in ("image", "note"):
            return {"image": "path", "note": "text"}[name]
        return "number" if pd.api.types.is_numeric_dtype(frame[name]) else "category"

    return tuple(ColumnSpec(name=name, type=kind(name)) for name in frame.columns)


def _tabular(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    size, load, age = rng.normal(50, 10, n), rng.gamma(2.0, 3.0, n), rng.uniform(0, 9, n)
    drift = rng.normal(0, 1, n)
    colour = rng.choice(_COLOURS, n)
    signal = 0.9 * (size - 50) / 10 - 0.5 * np.log1p(load) + 0.9 * np.sin(age) + 1.2 * (colour == "blue")
    frame = pd.DataFrame(
        {"size": size.round(2), "load": load.round(3), "age": age.round(2), "drift": drift.round(3), "colour": colour}
    )
    numbers = np.column_stack([(size - 50) / 10, load / 6, age / 3, drift, *(colour == name for name in _COLOURS)])
    frame.loc[rng.random(n) < 0.03, "load"] = np.nan
    return frame, numbers.astype(float), signal - signal.mean()


def _draw_binary(rng: np.random.Generator, n: int) -> Drawn:
    frame, numbers, signal = _tabular(rng, n)
    clean = 1 / (1 + np.exp(-2.5 * signal))
    return Drawn(frame, numbers, clean.round(6), (rng.random(n) < clean).astype(int))


def _draw_multiclass(rng: np.random.Generator, n: int) -> Drawn:
    frame, numbers, signal = _tabular(rng, n)
    logits = np.column_stack([-2 * signal - 1, np.zeros(n), 2 * signal - 1])
    clean = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    picks = (rng.random(n)[:, None] > clean.cumsum(axis=1)).sum(axis=1)
    return Drawn(frame, numbers, clean, np.array(_CLASSES)[picks.clip(max=2)])


def _draw_regression(rng: np.random.Generator, n: int) -> Drawn:
    frame, numbers, signal = _tabular(rng, n)
    clean = 20 + 4 * signal
    return Drawn(frame, numbers, clean.round(4), (clean + rng.normal(0, 1.5, n)).round(3))


def _draw_text(rng: np.random.Generator, n: int) -> Drawn:
    texts = [" ".join(rng.choice(_WORDS, rng.integers(8, 20))) for _ in range(n)]
    counts = np.array([[text.split().count(word) for word in _WORDS] for text in texts], dtype=float)
    weights = np.array([(word in _UP) - float(word in _DOWN) for word in _WORDS])
    signal = counts @ weights
    clean = 1 / (1 + np.exp(-4.0 * signal))
    answers = np.where(rng.random(n) < clean, "urgent", "calm")
    return Drawn(pd.DataFrame({"note": texts}), counts, np.where(clean > 0.5, "urgent", "calm"), answers)


def _draw_image(rng: np.random.Generator, n: int) -> Drawn:
    tilt, level = rng.normal(0, 1, n), rng.uniform(90, 160, n)
    ramp = np.linspace(-1, 1, 8)
    pixels = level[:, None, None] + 14 * tilt[:, None, None] * ramp[None, :, None] + rng.normal(0, 25, (n, 8, 8))
    pixels = pixels.clip(0, 255).astype(np.uint8)
    clean = 1 / (1 + np.exp(-4.0 * tilt))
    flat = pixels.reshape(n, -1) / 64.0
    return Drawn(
        pd.DataFrame(index=range(n)),
        flat,
        clean.round(6),
        (rng.random(n) < clean).astype(int),
        tuple(map(_png, pixels)),
    )


def _png(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="PNG", compress_level=0)
    return out.getvalue()


def _baselines(made: Kind, train: Drawn) -> dict[Tier, list[Any]]:
    if made.target.kind is PredictionKind.VALUES:
        weak = [KNeighborsRegressor(15), DecisionTreeRegressor(max_depth=2, random_state=0), KNeighborsRegressor(40)]
        return {Tier.WEAK: weak, Tier.STANDARD: [LinearRegression()]}
    weak = [KNeighborsClassifier(15), DecisionTreeClassifier(max_depth=2, random_state=0), KNeighborsClassifier(40)]
    return {Tier.WEAK: weak, Tier.STANDARD: [LogisticRegression(max_iter=1000)]}


def _predict(made: Kind, model: Any, numbers: np.ndarray) -> np.ndarray:
    if made.target.kind is PredictionKind.PROBABILITY:
        return np.asarray(model.predict_proba(numbers))[:, 1]
    if made.target.kind is PredictionKind.CLASS_PROBABILITIES:
        shares = np.asarray(model.predict_proba(numbers))[:, [list(model.classes_).index(name) for name in _CLASSES]]
        return (shares + 0.01) / (shares + 0.01).sum(axis=1, keepdims=True)
    return np.asarray(model.predict(numbers))


def _ladder(made: Kind, train: Drawn, fresh: Drawn, rng: np.random.Generator, n_private: int) -> Ladder:
    """Scores baselines on rows that nobody is graded on."""

    def rung(name: str, tier: Tier, predicted: np.ndarray) -> Rung:
        draws = rng.integers(0, len(fresh.answers), (20, n_private))
        spread = float(np.std([made.score(fresh.answers[rows], predicted[rows]) for rows in draws]))
        return Rung(
            name=name, tier=tier, score=round(made.score(fresh.answers, predicted), 6), standard_error=round(spread, 6)
        )

    n = len(fresh.answers)
    if made.target.kind is PredictionKind.CLASS_PROBABILITIES:
        dummy = np.tile([np.mean(train.answers == name) for name in _CLASSES], (n, 1))
    else:
        dummy = np.array([_constant(made, train.answers)] * n)
    rungs = [rung("constant", Tier.DUMMY, dummy)]
    for tier, models in _baselines(made, train).items():
        for model in models:
            model.fit(train.numbers, train.answers)
            rungs.append(rung(f"{type(model).__name__}-{len(rungs)}", tier, _predict(made, model, fresh.numbers)))
    rungs.append(rung("oracle", Tier.ORACLE, fresh.clean))
    return Ladder(metric=made.spec["metric"], direction=made.spec["direction"], n_rows=n, rungs=tuple(rungs))


def _thresholds(ladder: Ladder) -> Thresholds:
    dummy = ladder.best(Tier.DUMMY).score
    weak = float(np.median([rung.score for rung in ladder.of(Tier.WEAK)]))
    oracle = ladder.best(Tier.ORACLE).score
    best = weak + 0.75 * (oracle - weak)  # stands for a rule-aware solver
    floor = dummy + 0.2 * (best - dummy)
    median = floor if ladder.direction.better(floor, weak) else weak
    gold = median + 0.9 * (best - median)
    error = ladder.best(Tier.WEAK).standard_error

    def at(share: float) -> Threshold:
        return Threshold(score=round(median + share * (gold - median), 6), standard_error=error)

    return Thresholds(preset="calibrated", median=at(0), bronze=at(1 / 3), silver=at(2 / 3), gold=at(1))


def _spec(
    kind: TaskKind,
    prediction: PredictionKind,
    metric: str,
    direction: Direction,
    modality: Modality,
    n_classes: int | None,
) -> dict[str, Any]:
    dna = StructuralDNA(
        modalities=(modality,),
        task_kind=kind,
        prediction_kind=prediction,
        n_classes=n_classes,
        metric=metric,
        direction=direction,
    )
    return {"modalities": (modality,), "task_kind": kind, "metric": metric, "direction": direction, "dna": dna}


def _text(goal: str, metric: str, columns: str, target: str) -> str:
    return f"""# Workshop records

{goal}

## Evaluation

Submissions are scored by {metric}.

## Files

- `train.csv`: rows with answers
- `test.csv`: rows without
- `sample_submission.csv`: a valid submission

Columns: `record_id`, {columns}. Give {target} for every `record_id`.
"""


_TABLE_COLUMNS = "`size`, `load`, `age`, `drift`, `colour`"
_UP_, _DOWN_ = Direction.MAXIMIZE, Direction.MINIMIZE


def _rmse(truth: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.sqrt(np.mean((truth - predicted) ** 2)))


def _log_loss(truth: np.ndarray, predicted: np.ndarray) -> float:
    order = np.argsort(_CLASSES)
    return float(log_loss(truth, predicted[:, order], labels=sorted(_CLASSES)))


def _auc(truth: np.ndarray, predicted: np.ndarray) -> float:
    return float(roc_auc_score(truth, predicted))


_KINDS = {
    "binary": Kind(
        _draw_binary,
        _auc,
        _spec(TaskKind.BINARY, PredictionKind.PROBABILITY, "roc_auc", _UP_, Modality.TABULAR, 2),
        TargetSpec(kind=PredictionKind.PROBABILITY, columns=("failed",), labels=("0", "1")),
        _text(
            "Tell which records failed.",
            "the area under the ROC curve (AUC); higher is better",
            _TABLE_COLUMNS,
            "the probability that `failed` is 1 (not 0)",
        ),
        2000,
    ),
    "multiclass": Kind(
        _draw_multiclass,
        _log_loss,
        _spec(TaskKind.MULTICLASS, PredictionKind.CLASS_PROBABILITIES, "log_loss", _DOWN_, Modality.TABULAR, 3),
        TargetSpec(kind=PredictionKind.CLASS_PROBABILITIES, columns=_CLASSES, labels=_CLASSES),
        _text(
            "Tell the grade of each record: low, middle or high.",
            "log loss; lower is better",
            _TABLE_COLUMNS,
            "a probability in each of the columns `low`, `middle` and `high`",
        ),
        1200,
    ),
    "regression": Kind(
        _draw_regression,
        _rmse,
        _spec(TaskKind.REGRESSION, PredictionKind.VALUES, "rmse", _DOWN_, Modality.TABULAR, None),
        TargetSpec(kind=PredictionKind.VALUES, columns=("wear",)),
        _text(
            "Estimate the wear.",
            "the root mean squared error (RMSE); lower is better",
            _TABLE_COLUMNS,
            "a number `wear`",
        ),
        1000,
    ),
    "text": Kind(
        _draw_text,
        lambda truth, predicted: float(accuracy_score(truth, predicted)),
        _spec(TaskKind.BINARY, PredictionKind.LABEL, "accuracy", _UP_, Modality.TEXT, 2),
        TargetSpec(kind=PredictionKind.LABEL, columns=("tone",), labels=("calm", "urgent")),
        _text("Tell the tone of each note.", "accuracy; higher is better", "`note`", "the `tone`, `calm` or `urgent`,"),
        2000,
    ),
    "image": Kind(
        _draw_image,
        _auc,
        _spec(TaskKind.BINARY, PredictionKind.PROBABILITY, "roc_auc", _UP_, Modality.IMAGE, 2),
        TargetSpec(kind=PredictionKind.PROBABILITY, columns=("failed",), labels=("0", "1")),
        _text(
            "Tell which parts failed from pictures in `images/`.",
            "the area under the ROC curve (AUC); higher is better",
            "`image`",
            "the probability that `failed` is 1 (not 0)",
        ),
        2000,
    ),
}
