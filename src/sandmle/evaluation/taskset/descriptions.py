"""How alike the descriptions of a task set are."""

from collections.abc import Mapping

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from sandmle.evaluation.statistics import Spread, spread
from sandmle.records import Record

NEAR = 0.8
"""Part of the shingles that two near-duplicates have in common."""
_SHINGLE = 4
_BLOCK = 256
_MOST_PAIRS = 10


class SimilarPair(Record):
    """Two descriptions with much in common."""

    first: str
    second: str
    similarity: float


class Similarity(Record):
    """How alike descriptions are: Jaccard similarity of their four-word shingles, numbers left out."""

    nearest: Spread
    """Of each description to the one most like it."""
    n_near: int
    """Descriptions with a near-duplicate (0.8 or more)."""
    closest: tuple[SimilarPair, ...] = ()


def similarity_of(texts: Mapping[str, str]) -> Similarity:
    """Compares all descriptions with all others.

    Args:
        texts: By task id.
    """
    names = sorted(texts)
    if len(names) < 2:
        return Similarity(nearest=spread([]), n_near=0)
    vectorizer = CountVectorizer(ngram_range=(_SHINGLE, _SHINGLE), binary=True, token_pattern=r"(?u)[^\W\d_]+")
    shingles = vectorizer.fit_transform([texts[name] for name in names]).astype(np.float32)
    sizes = np.asarray(shingles.sum(axis=1)).ravel()
    best, partner = np.zeros(len(names)), np.zeros(len(names), dtype=int)
    for start in range(0, len(names), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(names)))
        common = np.asarray((shingles[rows] @ shingles.T).todense())  # [n_block, n_texts]
        jaccard = common / np.maximum(sizes[rows][:, None] + sizes[None, :] - common, 1)
        jaccard[np.arange(len(rows)), rows] = -1
        partner[rows] = jaccard.argmax(axis=1)
        best[rows] = jaccard.max(axis=1).clip(min=0)
    pairs = {}
    for at in np.argsort(-best, kind="stable"):
        first, second = sorted((int(at), int(partner[at])))
        pairs[first, second] = SimilarPair(
            first=names[first], second=names[second], similarity=round(float(best[at]), 4)
        )
    return Similarity(
        nearest=spread([round(float(value), 4) for value in best]),
        n_near=int((best >= NEAR).sum()),
        closest=tuple(pairs.values())[:_MOST_PAIRS],
    )
