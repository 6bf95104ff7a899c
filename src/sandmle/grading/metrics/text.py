"""Metrics of text: edit distances, word overlap, extracted spans."""

from collections.abc import Sequence

import numpy as np

from sandmle.errors import ConfigError
from sandmle.grading.metrics.base import (
    Floats,
    Metric,
    MetricUndefined,
    OfMeans,
    Params,
    Truth,
    Values,
    f1_of_means,
    ratio_of_means,
)
from sandmle.records import Direction, PredictionKind

_TEXT = (PredictionKind.TEXT,)


def _units(text: str, unit: str) -> Sequence[str]:
    if unit == "character":
        return text
    if unit == "word":
        return text.split()
    raise ConfigError(f"the unit of an edit distance is {unit!r}; give character or word")


def _edits(truth: Truth, prediction: Values, params: Params) -> Floats:
    from rapidfuzz.distance import Levenshtein

    unit = params["unit"]
    rows = []
    for true, predicted in zip(truth.values, prediction, strict=True):
        wanted = _units(true, unit)
        rows.append((Levenshtein.distance(_units(predicted, unit), wanted), len(wanted)))
    return np.array(rows, dtype=float)


def _require_text(truth: Truth, params: Params) -> None:
    if not any(text.strip() for text in truth.values):
        raise MetricUndefined("the metric is undefined: all answers are empty")


def _jaccard(truth: Truth, prediction: Values, params: Params) -> Floats:
    shares = []
    for true, predicted in zip(truth.values, prediction, strict=True):
        wanted, given = {*true.lower().split()}, {*predicted.lower().split()}
        shares.append(len(wanted & given) / len(wanted | given) if wanted or given else 1.0)
    return np.array(shares)[:, None]


def _spans(truth: Truth, prediction: Values, params: Params) -> Floats:
    true = np.array([text.strip() for text in truth.values], dtype=object)
    predicted = np.array([text.strip() for text in prediction], dtype=object)
    return np.column_stack([(true == predicted) & (true != ""), predicted != "", true != ""]).astype(float)


LEVENSHTEIN = Metric(
    name="levenshtein",
    title="mean Levenshtein distance",
    direction=Direction.MINIMIZE,
    kinds=_TEXT,
    best=0.0,
    calculation=OfMeans(_edits),
    words=("The smallest number of characters to insert, delete or replace to reach the answer, averaged over rows."),
    formula=r"\frac{1}{n}\sum_i \mathrm{lev}(\hat y_i, y_i)",
    defaults={"unit": "character"},
)
NORMALISED_LEVENSHTEIN = Metric(
    name="normalised_levenshtein",
    title="normalised Levenshtein distance",
    direction=Direction.MINIMIZE,
    kinds=_TEXT,
    best=0.0,
    calculation=OfMeans(_edits, ratio_of_means),
    require=_require_text,
    words=(
        "The number of items to insert, delete or replace to reach the answers, over the number of items in all "
        "answers. Items are separated by spaces. It may exceed 1."
    ),
    formula=r"\frac{\sum_i \mathrm{lev}(\hat y_i, y_i)}{\sum_i |y_i|}",
    defaults={"unit": "word"},
)
WORD_JACCARD = Metric(
    name="word_jaccard",
    title="mean word-level Jaccard",
    direction=Direction.MAXIMIZE,
    kinds=_TEXT,
    best=1.0,
    calculation=OfMeans(_jaccard),
    words=(
        "Words in common over words in either text, in lower case and split at spaces, averaged over rows. Two "
        "empty texts count 1."
    ),
    formula=r"\frac{1}{n}\sum_i \frac{|\hat W_i \cap W_i|}{|\hat W_i \cup W_i|}",
)
SPAN_F1 = Metric(
    name="span_f1",
    title="micro F1 of answers",
    direction=Direction.MAXIMIZE,
    kinds=_TEXT,
    best=1.0,
    calculation=OfMeans(_spans, f1_of_means),
    require=_require_text,
    words=(
        "F1 over all rows: a hit is an answer given exactly (but for spaces around it). An empty cell means that "
        "there is no answer; it costs no precision, and misses an answer that exists."
    ),
    formula=(
        r"\frac{2\,|\{i: \hat y_i = y_i \ne \varnothing\}|}"
        r"{|\{i: \hat y_i \ne \varnothing\}| + |\{i: y_i \ne \varnothing\}|}"
    ),
)
