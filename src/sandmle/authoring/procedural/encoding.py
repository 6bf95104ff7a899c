"""Plain encodings of public data: what a solver sees who engineers nothing."""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sandmle.authoring.procedural.dataset import Dataset
from sandmle.authoring.procedural.families.base import FloatArray

_MOST_LEVELS = 12
_BLOCK_SIZE = 4.0
_CLIP = 4.0
_MOST_TERMS = 300


def encode_raw(dataset: Dataset, train: np.ndarray, other: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """Returns train and other rows as numbers # [n_rows, n_columns].

    Numbers and dates (as days) are standardised and clipped, categories become one-hot columns, codes ranks, texts
    tf-idf weights, media what their ``blocks`` hold; texts and media weigh as much as a handful of numbers.

    Args:
        dataset: The rows.
        train: Numbers of the rows that a solver may fit on.
        other: Numbers of the rows that it predicts.
    """
    parts: list[tuple[FloatArray, FloatArray]] = []
    numbers: list[tuple[FloatArray, FloatArray]] = []
    for spec in dataset.input_specs:
        values = dataset.inputs[spec.name]
        if spec.type in ("number", "integer"):
            numbers.append((values[train, None].astype(float), values[other, None].astype(float)))
        elif spec.type == "datetime":
            days = np.where(np.isnat(values), np.nan, values.astype("datetime64[m]").astype(np.int64) / 1440.0)
            numbers.append((days[train, None], days[other, None]))
        elif spec.type in ("category", "code", "boolean"):
            parts.append(_levels(values[train], values[other]))
        elif spec.type == "text":
            parts.append(_weighted(*_texts(values[train], values[other])))
    if numbers:
        parts.append(standardise(*filled(np.hstack([n[0] for n in numbers]), np.hstack([n[1] for n in numbers]))))
    for block in dataset.blocks:
        parts.append(_weighted(*standardise(block[train], block[other])))
    return np.hstack([part[0] for part in parts]), np.hstack([part[1] for part in parts])


def encode_aware(
    dataset: Dataset, which: tuple[int, ...], train: np.ndarray, other: np.ndarray
) -> tuple[FloatArray, FloatArray]:
    """Returns the features of some insights, missing ones filled # [n_rows, n_features]."""
    features = np.hstack([dataset.aware[at] for at in which])
    return standardise(*filled(features[train], features[other]))


def standardise(train: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scales columns to mean 0 and deviation 1 on the training rows and clips them; constant columns become 0."""
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread = np.where(spread > 1e-9, spread, np.inf)
    return np.clip((train - mean) / spread, -_CLIP, _CLIP), np.clip((other - mean) / spread, -_CLIP, _CLIP)


def _weighted(train: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centres a block of columns and scales it as a whole, so that its many columns count like a few."""
    mean = train.mean(axis=0)
    size = float(np.sqrt(np.mean(np.sum(np.square(train - mean), axis=1))))
    return (train - mean) * (_BLOCK_SIZE / max(size, 1e-9)), (other - mean) * (_BLOCK_SIZE / max(size, 1e-9))


def filled(train: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Replaces missing numbers by the training rows' medians."""
    known = ~np.isnan(train)
    middle = np.array([np.median(train[ok, at]) if ok.any() else 0.0 for at, ok in enumerate(known.T)])
    return np.where(known, train, middle), np.where(np.isnan(other), middle, other)


def _levels(train: np.ndarray, other: np.ndarray) -> tuple[FloatArray, FloatArray]:
    levels = sorted(set(train.tolist()))
    if len(levels) <= _MOST_LEVELS:
        return _one_hot(train, levels), _one_hot(other, levels)
    ranks = np.array(levels, dtype=str)
    return standardise(
        np.searchsorted(ranks, train.astype(str))[:, None].astype(float),
        np.searchsorted(ranks, other.astype(str))[:, None].astype(float),
    )


def _one_hot(values: np.ndarray, levels: list[str]) -> FloatArray:
    return np.column_stack([(values == level).astype(float) for level in levels])


def _texts(train: np.ndarray, other: np.ndarray) -> tuple[FloatArray, FloatArray]:
    vectorizer = TfidfVectorizer(max_features=_MOST_TERMS, min_df=2)
    weights = vectorizer.fit_transform(train.tolist())
    return weights.toarray(), vectorizer.transform(other.tolist()).toarray()
