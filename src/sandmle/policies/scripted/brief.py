"""What a task's description says: metric, direction, and how a prediction is to look."""

import re
from dataclasses import dataclass, replace

# Words in a description, by the metric that they mean; the first match wins, so the special ones stand first.
_WORDS: tuple[tuple[str, str], ...] = (
    ("laplace", "laplace"),
    ("probabilistic f1", "probabilistic_f1"),
    ("kl divergence", "kl_divergence"),
    ("kullback", "kl_divergence"),
    ("log loss", "log_loss"),
    ("cross-entropy", "log_loss"),
    ("label-ranking average precision", "lwlrap"),
    ("lwlrap", "lwlrap"),
    ("average precision at", "map_at_k"),
    ("map@", "map_at_k"),
    ("map at", "map_at_k"),
    ("average precision", "average_precision"),
    ("roc", "roc_auc"),
    ("auc", "roc_auc"),
    ("ndcg", "ndcg"),
    ("concordance", "c_index"),
    ("kappa", "qwk"),
    ("qwk", "qwk"),
    ("matthews", "mcc"),
    ("mcc", "mcc"),
    ("macro f1", "macro_f1"),
    ("micro f1", "micro_f1"),
    ("f0.5", "f_half"),
    ("f1", "f1"),
    ("jaccard", "jaccard"),
    ("balanced accuracy", "balanced_accuracy"),
    ("accuracy", "accuracy"),
    ("error rate", "accuracy"),
    ("spearman", "spearman"),
    ("pearson", "pearson"),
    ("logarithmic error", "rmsle"),
    ("rmsle", "rmsle"),
    ("rmse", "rmse"),
    ("squared error", "rmse"),
    ("angular", "angular"),
    ("absolute error", "mae"),
    ("absolute percentage", "mae"),
    ("mae", "mae"),
    ("mape", "mae"),
    ("brier", "brier"),
)
_LINE = re.compile(
    r"metric[*_`]*\s*:[*_`\s]*(?P<name>[^(\n]+?)[*_`]*\s*\((?P<way>higher|lower) is better", re.IGNORECASE
)

# How a description names what a row's pieces are put together to; the first match wins.
_PIECE_WORDS: tuple[tuple[str, str], ...] = (
    (r"run[- ]lengths?", "mask"),
    (r"boxes in one cell", "boxes"),
    (r"letters? of the row's entries", "order"),
    (r"word (?:by|for) word", "span"),
    (r"one word for each piece", "words"),
)
_PIECES = re.compile(r"(\d+) (?:pieces|sentences|entries)", re.IGNORECASE)
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
_BELOW = re.compile(rf"(?:values|is) below {_NUMBER}", re.IGNORECASE)
_ABOVE = re.compile(rf"(?:(?:values|is)(?: below \S+ or)? above) {_NUMBER}", re.IGNORECASE)


@dataclass(frozen=True)
class Brief:
    """What the description tells.

    Attributes:
        text: The whole description.
        metric_name: The metric as the description calls it.
        metric: The metric as the engineers know it; empty when they do not.
        higher_is_better: The direction.
        low: Smallest value that is taken; None where none is named.
        high: Largest value that is taken.
        pieces: What a prediction is made of, where a row is made of pieces: mask, boxes, order, span or words.
        n_pieces: Pieces in a row.
    """

    text: str
    metric_name: str
    metric: str
    higher_is_better: bool
    low: float | None = None
    high: float | None = None
    pieces: str = ""
    n_pieces: int = 1


def read_brief(text: str) -> Brief:
    """Reads a task's description: the line "Metric: NAME (higher is better)", or else the words in the text."""
    line = _LINE.search(text)
    name = line["name"].strip() if line else ""
    metric = _known(name) or _known(text)
    way = line["way"].lower() if line else ("lower" if "lower is better" in text.lower() else "higher")
    low, high = read_bounds(text)
    pieces, n_pieces = _read_pieces(text)
    return Brief(
        text=text,
        metric_name=name or metric or "score",
        metric=metric,
        higher_is_better=way == "higher",
        low=low,
        high=high,
        pieces=pieces,
        n_pieces=n_pieces,
    )


def brief_of_pieces(brief: Brief) -> Brief:
    """Returns what there is to do for each piece: its place in an order, or chances of what it is."""
    if brief.pieces == "order":
        return replace(brief, text="", metric="rmse", higher_is_better=False)
    return replace(brief, text="", metric="log_loss", higher_is_better=False)


def _read_pieces(text: str) -> tuple[str, int]:
    found = _PIECES.search(text)
    kind = next((kind for words, kind in _PIECE_WORDS if re.search(words, text, re.IGNORECASE)), "")
    return (kind, int(found[1])) if found and kind else ("", 1)


def read_bounds(text: str) -> tuple[float | None, float | None]:
    """Returns the smallest and the largest value that a text says is taken; None where it names none."""
    low, high = _BELOW.search(text), _ABOVE.search(text)
    return (float(low[1]) if low else None, float(high[1]) if high else None)


def _known(text: str) -> str:
    plain = text.lower().replace("_", " ")
    return next((metric for words, metric in _WORDS if words in plain), "")
