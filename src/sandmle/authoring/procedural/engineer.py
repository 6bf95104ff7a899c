"""A good feature engineer who does not know the rule: every usual feature of every kind of column, then selection.

Used by ``survey.py`` only, to see whether gold can be won from public data; no threshold depends on it.
"""

import itertools
import re
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sandmle.authoring.procedural.dataset import Dataset
from sandmle.authoring.procedural.encoding import encode_raw, filled, standardise
from sandmle.authoring.procedural.families.base import FloatArray

_MOST_KEPT = (6, 12, 24)


def engineered(dataset: Dataset, train: np.ndarray, other: np.ndarray) -> list[tuple[FloatArray, FloatArray]]:
    """Returns views with the most telling features, each as train and other rows # [n_rows, n_features]."""
    at = np.concatenate([train, other])
    parts = [*_tables(dataset, at), *_texts(dataset, at, len(train))]
    if dataset.pixels is not None:
        parts.append(_pictures(dataset.pixels[at]))
    trace = [spec.name for spec in dataset.specs if re.fullmatch(r"t_\d+", spec.name)]
    if trace:
        parts.append(_traces(np.column_stack([dataset.columns[name][at] for name in trace])))
    wide = np.hstack([part for part in parts if part.shape[1]]) if parts else np.empty((len(at), 0))
    raw = encode_raw(dataset, train, other)
    wide_train, wide_other = standardise(*filled(wide[: len(train)], wide[len(train) :]))
    every = (np.hstack([raw[0], wide_train]), np.hstack([raw[1], wide_other]))
    kept = _telling(every[0], dataset.y[train], dataset.head.mode == "classes", dataset.head.n_levels())
    return [(every[0][:, kept[:most]], every[1][:, kept[:most]]) for most in _MOST_KEPT]


def _telling(x: FloatArray, y: np.ndarray, is_label: bool, n_levels: int) -> np.ndarray:
    """Returns the columns that go best with the target: the strongest correlation with any output, distinct ones."""
    targets = np.eye(n_levels)[y] if is_label else y.astype(float)
    targets = (targets - targets.mean(axis=0)) / np.maximum(targets.std(axis=0), 1e-9)
    ranks = np.argsort(np.argsort(x, axis=0, kind="stable"), axis=0, kind="stable").astype(float)
    ranks = (ranks - ranks.mean(axis=0)) / np.maximum(ranks.std(axis=0), 1e-9)
    strength = np.maximum(np.abs(x.T @ targets), np.abs(ranks.T @ targets)).max(axis=1) / len(x)
    kept: list[int] = []
    for column in np.argsort(-strength, kind="stable"):
        close = [abs(float(x[:, column] @ x[:, other])) / len(x) for other in kept]
        if not close or max(close) < 0.95:
            kept.append(int(column))
        if len(kept) == _MOST_KEPT[-1]:
            break
    return np.array(kept)


def _tables(dataset: Dataset, at: np.ndarray) -> list[FloatArray]:
    numbers: dict[str, FloatArray] = {}
    dates: list[FloatArray] = []
    groups: list[np.ndarray] = []
    found: list[FloatArray] = []
    for spec in dataset.specs:
        values = dataset.columns[spec.name][at]
        if spec.type == "number" and not re.fullmatch(r"t_\d+", spec.name):
            numbers[spec.name] = values.astype(float)
        elif spec.type == "datetime":
            days = np.where(np.isnat(values), np.nan, values.astype("datetime64[m]").astype(np.int64) / 1440.0)
            dates.append(days)
            turns = [2 * np.pi * days / length for length in (1.0, 7.0, 365.25)]
            found.append(np.column_stack([part(turn) for turn in turns for part in (np.sin, np.cos)]))
        elif spec.type == "code":
            found.append(_code(values))
        elif spec.type == "category":
            groups.append(np.unique(values.astype(str), return_inverse=True)[1])
    found += [np.column_stack([a - b]) for a, b in itertools.combinations(dates, 2)]
    found += _number_features(numbers, groups)
    return found


def _number_features(numbers: dict[str, FloatArray], groups: list[np.ndarray]) -> list[FloatArray]:
    logs = {name: np.log(values) for name, values in numbers.items() if np.nanmin(values) > 0}
    standard = {name: (v - np.nanmean(v)) / max(float(np.nanstd(v)), 1e-9) for name, v in numbers.items()}
    found = [np.column_stack([values]) for values in logs.values()]
    for a, b in itertools.combinations(standard, 2):
        found.append(np.column_stack([standard[a] * standard[b], np.sign(standard[a] * standard[b])]))
        if a in logs and b in logs:
            found.append(np.column_stack([logs[a] - logs[b], logs[a] + logs[b]]))
    for member in groups:
        for values in standard.values():
            usual = np.array([_median(values[member == group]) for group in range(int(member.max()) + 1)])
            found.append(np.column_stack([values - usual[member]]))
            # A unit beside a number: the value on a log scale, each group brought to the same middle.
    for member in groups:
        for values in logs.values():
            usual = np.array([_median(values[member == group]) for group in range(int(member.max()) + 1)])
            found.append(np.column_stack([values - usual[member]]))
    families: dict[str, list[FloatArray]] = {}
    for name, values in numbers.items():
        families.setdefault(name.rsplit("_", 1)[0], []).append(values)
    for values_of in families.values():
        if len(values_of) > 2:
            block = np.column_stack(values_of)
            found.append(np.column_stack([block.mean(axis=1), np.log(block.std(axis=1) + 1e-3)]))
    return found


def _median(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else 0.0


def _code(values: np.ndarray) -> FloatArray:
    length = max(len(code) for code in values)
    characters = np.array([list(code.ljust(length)) for code in values])
    found = []
    for place in characters.T:
        letters = np.unique(place)
        if len(letters) <= 12:
            found += [(place == letter).astype(float) for letter in letters]
        digit = np.array([float(c) if c.isdigit() else np.nan for c in place])
        if not np.isnan(digit).all():
            found += [digit, digit % 2]
    return np.column_stack(found)


def _texts(dataset: Dataset, at: np.ndarray, n_train: int) -> list[FloatArray]:
    found = []
    for spec in dataset.specs:
        if spec.type != "text":
            continue
        texts = dataset.columns[spec.name][at].tolist()
        vectorizer = TfidfVectorizer(ngram_range=(1, 4), min_df=4, max_features=4000, binary=True, use_idf=False)
        vectorizer.fit(texts[:n_train])
        found.append(vectorizer.transform(texts).toarray())
        numbers = [[float(n) for n in re.findall(r"\d+(?:\.\d+)?", text)] for text in texts]
        hours = [re.search(r"(\d+(?:\.\d+)?) (hour|minute)", text) for text in texts]
        time = [float(h[1]) * (60 if h[2] == "hour" else 1) if h else np.nan for h in hours]
        columns: list[Any] = [
            [text.count("!") for text in texts],
            [text.count(";") for text in texts],
            [len(text.split()) for text in texts],
            [len(text) for text in texts],
            [len(n) for n in numbers],
            [n[0] if n else np.nan for n in numbers],
            np.log(time),
        ]
        found.append(np.column_stack(columns).astype(float))
    return found


def _traces(trace: FloatArray) -> FloatArray:
    trace = np.where(np.isnan(trace), np.nanmean(trace), trace)
    time = np.linspace(-1, 1, trace.shape[1])
    flat = trace - trace.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(flat, axis=1))[:, 1:]
    middle = (power[:, 5:] * np.arange(5, power.shape[1])).sum(axis=1) / power[:, 5:].sum(axis=1)
    high = (trace > trace.mean(axis=1, keepdims=True) + 1.5).sum(axis=1)
    columns = [trace.mean(axis=1), trace.std(axis=1), flat @ time, np.diff(trace, axis=1).std(axis=1)]
    columns += [trace.max(axis=1), trace.min(axis=1), high, middle, np.argmax(power[:, 5:], axis=1)]
    columns += [np.argmax(trace, axis=1), np.argmin(trace, axis=1)]
    return np.column_stack([*columns, np.log(power + 1e-3)]).astype(float)


def _pictures(pixels: np.ndarray) -> FloatArray:
    values = pixels.astype(np.float32) / 255.0
    grey = values.mean(axis=-1)
    n, height, width = grey.shape
    half = (height // 2, width // 2)
    columns = [values[..., channel].mean(axis=(1, 2)) for channel in range(values.shape[-1])]
    columns += [
        grey[:, top : top + half[0], left : left + half[1]].mean(axis=(1, 2))
        for top in (0, half[0])
        for left in (0, half[1])
    ]
    columns += [grey.std(axis=(1, 2)), np.median(grey, axis=(1, 2))]
    for cut in (0.05, 0.12, 0.2, 0.8, 0.9):
        columns.append(((grey < cut) if cut < 0.5 else (grey > cut)).sum(axis=(1, 2)))
    inner = grey[:, 1:-1, 1:-1]
    around = np.stack(
        [grey[:, 1 + a : height - 1 + a, 1 + b : width - 1 + b] for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))]
    )
    columns.append(((inner > around.max(axis=0) + 0.02) & (inner > 0.75)).sum(axis=(1, 2)))
    down, right = np.diff(grey, axis=1)[:, :, :-1], np.diff(grey, axis=2)[:, :-1, :]
    angle, size = 2 * np.arctan2(down, right), np.hypot(down, right)
    columns += [
        (size * np.cos(angle)).mean(axis=(1, 2)),
        (size * np.sin(angle)).mean(axis=(1, 2)),
        size.mean(axis=(1, 2)),
    ]
    dark = (grey < 0.12).reshape(n, -1).astype(np.float64)
    rows, cols = (part.reshape(-1).astype(float) for part in np.mgrid[:height, :width])
    mass = np.maximum(dark.sum(axis=1), 1)
    columns.append(
        np.sqrt(
            np.maximum(dark @ (rows**2 + cols**2) / mass - ((dark @ rows) / mass) ** 2 - ((dark @ cols) / mass) ** 2, 0)
        )
    )
    return np.column_stack(columns).astype(float)
