"""What ids and file names could tell: their order, their last digits, the words in them."""

import re
from collections.abc import Sequence

import numpy as np

_MOST_TAGS = 20
_MODULI = (2, 3)


def natural_rank(names: Sequence[str]) -> np.ndarray:
    """Returns the place of each name when numbers in names are compared as numbers ``# [n]``."""
    order = sorted(range(len(names)), key=lambda index: (_parts(names[index]), index))
    ranks = np.empty(len(names))
    ranks[order] = np.arange(len(names))
    return ranks


def name_cues(what: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns numbers taken from names alone, each of which should say nothing about the row.

    Args:
        what: What is named, for the cues' own names.
        names: One name a row.
    """
    cues = {f"length of {what}": np.array([float(len(name)) for name in names])}
    numbers = np.array([_last_number(name) for name in names], dtype=float)
    for modulus in _MODULI:
        cues[f"last number of {what} modulo {modulus}"] = np.mod(numbers, modulus)
    tags = [re.sub(r"[\d\W_]+", " ", name).strip() for name in names]
    distinct = sorted(set(tags))
    if 2 <= len(distinct) <= _MOST_TAGS:
        cues.update({f"{tag!r} in {what}": np.array([float(tag == own) for own in tags]) for tag in distinct})
    return cues


def _parts(name: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]


def _last_number(name: str) -> int:
    found = re.findall(r"[0-9]+", name)
    return int(found[-1][-9:]) if found else 0
