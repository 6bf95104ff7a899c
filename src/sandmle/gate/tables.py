"""Columns as numbers, in a way that needs to know little about them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from sandmle.records.task import ColumnType

_MOST_INDICATORS = 30


@dataclass(frozen=True)
class Column:
    """One input column, as numbers.

    Attributes:
        name: The column.
        is_number: The cells themselves are numbers; otherwise ``train`` and ``test`` stand for them.
        train: Numbers of the training rows, NaN where empty.  # [n_train]
        test: Numbers of the test rows, NaN where empty.  # [n_test]
    """

    name: str
    is_number: bool
    train: np.ndarray
    test: np.ndarray


def encode_column(name: str, kind: ColumnType | None, train: pd.Series, test: pd.Series) -> Column:
    """Turns text cells into numbers: numbers and dates by value, few-valued text by code, other text by length."""
    both = pd.concat([train, test], ignore_index=True)
    numbers = pd.to_numeric(both.where(both != ""), errors="coerce")
    is_number = bool(numbers.notna().sum() >= 0.99 * (both != "").sum()) and bool(numbers.notna().any())
    if not is_number:
        numbers = _text_numbers(both, kind)
    values = np.asarray(numbers, dtype=float)
    return Column(name, is_number, values[: len(train)], values[len(train) :])


def _text_numbers(cells: pd.Series, kind: ColumnType | None) -> pd.Series:
    if kind == "datetime":
        times = pd.to_datetime(cells, errors="coerce", format="mixed", utc=True)
        if times.notna().any():
            return (times - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    if kind == "text":
        return cells.str.len().astype(float)
    levels = sorted(set(cells))
    return cells.map({level: float(code) for code, level in enumerate(levels)}).where(cells != "")


def joined_rows(frame: pd.DataFrame) -> pd.Series:
    """Returns one text a row, equal where all cells are."""
    columns = [frame[name].tolist() for name in frame.columns]
    return pd.Series(["\x1f".join(cells) for cells in zip(*columns, strict=True)], index=frame.index, dtype=object)


def target_views(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Returns numbers that stand for targets of any form: values, indicators of labels, lengths of longer cells.

    Args:
        frame: Target columns as text cells.
    """
    views: dict[str, np.ndarray] = {}
    for name in frame.columns:
        cells = frame[name]
        numbers = pd.to_numeric(cells.where(cells != ""), errors="coerce")
        if numbers.notna().mean() > 0.99:
            views[name] = np.asarray(numbers.fillna(numbers.median()), dtype=float)
            continue
        views[f"{name} length"] = np.asarray(cells.str.len(), dtype=float)
        counts = cells.value_counts()
        if len(counts) <= 0.5 * len(cells):
            views[f"{name} code"] = np.asarray(rankdata(cells.map({v: i for i, v in enumerate(sorted(counts.index))})))
            common = sorted(counts.index, key=lambda value: (-counts[value], value))[:_MOST_INDICATORS]
            views.update({f"{name} is {value}": np.asarray(cells == value, dtype=float) for value in common})
    return {name: values for name, values in views.items() if np.ptp(values) > 0}
