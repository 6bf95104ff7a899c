"""Cells of text to values, by prediction kind: the one conversion for answers and for submissions."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.grading.metrics.base import Boxes, Floats, Metric, Role, Values, objects
from sandmle.grading.rule import SUM_TOLERANCE
from sandmle.records import PredictionKind, TargetSpec

LARGEST = 1e30
"""No number may be larger in size, so that no metric overflows."""
MAX_TEXT_CHARS = 10_000
MAX_BOXES = 100
MAX_LABELS_IN_CELL = 10_000
_SHOWN_LABELS = 12
_MAX_LABEL_DIGITS = 400
_EXACT = Context(prec=2 * _MAX_LABEL_DIGITS)

Columns = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Form:
    """What the cells are held against.

    Attributes:
        target: The task's target.
        metric: The task's metric.
        is_answer: The cells are answers, not predictions.
        sum_tolerance: How far the sum of a row of class probabilities may be from one.
    """

    target: TargetSpec
    metric: Metric
    is_answer: bool
    sum_tolerance: float = SUM_TOLERANCE

    @property
    def columns(self) -> tuple[str, ...]:
        """Target columns that the file has."""
        return self.target.columns[: self.metric.n_answer_columns] if self.is_answer else self.target.columns

    @cached_property
    def known(self) -> frozenset[str]:
        """The target's labels."""
        return frozenset(self.target.labels)


class CellError(Exception):
    """A cell that is not what it should be.

    Attributes:
        row: Position of the row.
        column: Name of the column; empty when the whole row is meant.
        reason: What is wrong, without the place.
    """

    def __init__(self, row: int, column: str, reason: str) -> None:
        super().__init__(reason)
        self.row, self.column, self.reason = row, column, reason


def parse_cells(form: Form, columns: Columns) -> Values:
    """Returns the values of all rows, see :data:`sandmle.grading.metrics.base.Values`.

    Raises:
        CellError: A cell is not what the target asks for.
    """
    return _PARSERS[form.target.kind](form, columns)


def parse_role(role: Role, name: str, cells: Sequence[str]) -> NDArray[Any]:
    """Returns a further answer column in the form that its role asks for ``# [n_rows]``.

    Raises:
        CellError: A cell is not what the role asks for.
    """
    if role.kind == "group":
        return np.unique(np.array(cells, dtype=object), return_inverse=True)[1]
    if role.kind == "number":
        return numbers(name, cells, None, None)
    return _codes(name, cells, ("0", "1")).astype(bool)


def numbers(name: str, cells: Sequence[str], low: float | None, high: float | None) -> Floats:
    """Returns a column of finite numbers within bounds ``# [n_rows]``.

    Raises:
        CellError: A cell is no such number.
    """
    try:
        values = np.array([float(cell) for cell in cells], dtype=float)
        good = np.abs(values) <= LARGEST  # false for NaN
        if low is not None:
            good &= values >= low
        if high is not None:
            good &= values <= high
        text = "".join(cells)
        if good.all() and text.isascii() and "_" not in text:
            return values
    except ValueError:
        pass  # the loop below finds and names the cell
    for row, cell in enumerate(cells):
        reason = _number_problem(cell, low, high)
        if reason:
            raise CellError(row, name, reason)
    return values


def _number_problem(cell: str, low: float | None, high: float | None) -> str:
    if not cell.strip():
        return "is empty; a number is needed"
    try:
        # Python's float also reads 1_000 and the digits of other scripts.
        value = float(cell) if cell.isascii() and "_" not in cell else None
    except ValueError:
        value = None
    if value is None:
        return f"holds {shown(cell)}, which is not a number"
    if not math.isfinite(value):
        return f"holds {shown(cell)}, which is not a finite number"
    if abs(value) > LARGEST:
        return f"holds {shown(cell)}, which is larger in size than {LARGEST:g}"
    if low is not None and value < low:
        return f"holds {shown(cell)}, which is below {low:g}"
    if high is not None and value > high:
        return f"holds {shown(cell)}, which is above {high:g}"
    return ""


def shown(text: str, limit: int = 60) -> str:
    """Returns text quoted and cut, for a message."""
    return repr(text if len(text) <= limit else text[:limit] + "...")


def canonical_labels(labels: Sequence[str]) -> dict[str, int]:
    """Returns positions of labels by their other spellings: ``1.0`` for ``1``, ``true`` for ``1`` or ``True``.

    Other spellings count only where they are unambiguous; true and false only in a set of two.
    """
    numeric = {_number_form(label): code for code, label in enumerate(labels)}
    if None not in numeric and len(numeric) == len(labels):
        spellings = {str(form): code for form, code in numeric.items()}
        if set(spellings) == {"0", "1"}:
            spellings |= {"false": spellings["0"], "true": spellings["1"]}
        return spellings
    if len(labels) == 2 and {label.lower() for label in labels} == {"false", "true"}:
        spellings = {label.lower(): code for code, label in enumerate(labels)}
        return spellings | {"0": spellings["false"], "1": spellings["true"]}
    return {}


def _number_form(text: str) -> str | None:
    """One spelling for equal numbers, exact at any length; None for what is not a number."""
    if "_" in text or not text.isascii() or len(text) > _MAX_LABEL_DIGITS:
        return None
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value.adjusted()) > _MAX_LABEL_DIGITS:
        return None
    return "0" if value == 0 else f"{value.normalize(_EXACT):f}"


def _codes(name: str, cells: Sequence[str], labels: Sequence[str]) -> NDArray[np.int64]:
    exact = {label: code for code, label in enumerate(labels)}
    codes = [exact.get(cell, -1) for cell in cells]
    if -1 in codes:
        spellings = canonical_labels(labels)
        for row, code in enumerate(codes):
            if code >= 0:
                continue
            cell = cells[row].strip()
            found = exact.get(cell, spellings.get(cell.lower(), spellings.get(_number_form(cell) or "")))
            if found is None:
                raise CellError(row, name, _label_problem(cells[row], labels))
            codes[row] = found
    return np.array(codes, dtype=np.int64)


def _label_problem(cell: str, labels: Sequence[str]) -> str:
    some = ", ".join(repr(label) for label in labels[:_SHOWN_LABELS])
    more = f" and {len(labels) - _SHOWN_LABELS} more" if len(labels) > _SHOWN_LABELS else ""
    what = "is empty" if not cell else f"holds {shown(cell)}"
    return f"{what}; the labels are {some}{more}"


def _label(form: Form, columns: Columns) -> Values:
    return _codes(form.columns[0], columns[form.columns[0]], form.target.labels)


def _bounds(form: Form) -> tuple[float | None, float | None]:
    low, high = form.target.low, form.target.high
    if form.metric.numbers == "unit":
        return (0.0 if low is None else max(low, 0.0)), (1.0 if high is None else min(high, 1.0))
    if form.metric.numbers == "non_negative":
        return (0.0 if low is None else max(low, 0.0)), high
    return low, high


def _probability(form: Form, columns: Columns) -> Values:
    name = form.columns[0]
    if form.is_answer:
        return _codes(name, columns[name], form.target.labels or ("0", "1")).astype(float)
    return numbers(name, columns[name], *_bounds(form))


def _values(form: Form, columns: Columns) -> Values:
    return np.column_stack([numbers(name, columns[name], *_bounds(form)) for name in form.columns])


def _class_probabilities(form: Form, columns: Columns) -> Values:
    if not form.is_answer and not form.metric.rows_sum_to_one:
        return _values(form, columns)
    low, high = (0.0, 1.0) if form.is_answer else _bounds(form)
    values = np.column_stack([numbers(name, columns[name], low, high) for name in form.columns])
    sums = values.sum(axis=1)
    wrong = np.abs(sums - 1) > form.sum_tolerance
    if wrong.any():
        row = int(wrong.argmax())
        raise CellError(
            row, "", f"sums to {sums[row]:.6g} over the {len(form.columns)} class columns; it must sum to 1"
        )
    return values


def _label_probabilities(form: Form, columns: Columns) -> Values:
    if form.is_answer:
        return np.column_stack([_codes(name, columns[name], ("0", "1")) for name in form.columns]).astype(float)
    return _values(form, columns)


def _each_cell(form: Form, columns: Columns, parse: Callable[[Form, str], Any]) -> Values:
    name = form.columns[0]
    items = []
    for row, cell in enumerate(columns[name]):
        try:
            items.append(parse(form, cell))
        except ValueError as error:
            raise CellError(row, name, str(error)) from error
    return objects(items)


def _words(cell: str) -> list[str]:
    if len(cell) > MAX_LABELS_IN_CELL:
        words = cell.split(None, MAX_LABELS_IN_CELL)
        if len(words) > MAX_LABELS_IN_CELL:
            raise ValueError(f"holds more than {MAX_LABELS_IN_CELL} items")
        return words
    return cell.split()


def _known_words(form: Form, cell: str) -> tuple[str, ...]:
    words = _words(cell)
    if form.known:
        strange = next((word for word in words if word not in form.known), None)
        if strange is not None:
            raise ValueError(_label_problem(strange, form.target.labels))
    return tuple(words)


def _label_set_cell(form: Form, cell: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_known_words(form, cell)))


def _ranked_cell(form: Form, cell: str) -> tuple[str, ...]:
    words = _known_words(form, cell)
    if form.is_answer and not words:
        raise ValueError("is empty; an answer to be ranked holds at least one label")
    if not form.is_answer and form.target.max_items is not None and len(words) > form.target.max_items:
        raise ValueError(f"holds {len(words)} labels; at most {form.target.max_items} are allowed")
    return words


def _permutation_cell(form: Form, cell: str) -> tuple[str, ...]:
    words = _words(cell)
    if not words:
        raise ValueError("is empty; all items of the row are needed, in order")
    seen: set[str] = set()
    for word in words:
        if word in seen:
            raise ValueError(f"holds the item {shown(word)} more than once")
        seen.add(word)
    return tuple(words)


def _text_cell(form: Form, cell: str) -> str:
    if len(cell) > MAX_TEXT_CHARS:
        raise ValueError(f"holds {len(cell)} characters; at most {MAX_TEXT_CHARS} are allowed")
    return cell


def _mask_cell(form: Form, cell: str) -> NDArray[np.int64]:
    height, width = form.target.mask_shape or (0, 0)
    words = cell.split()
    if len(words) > height * width + 1:
        raise ValueError(f"holds more runs than a mask of {height} x {width} pixels can have")
    joined = "".join(words)
    if words and not (joined.isascii() and joined.isdigit() and max(map(len, words)) < 19):
        raise ValueError(f"holds {shown(cell)}, which is not made of whole numbers `start length`")
    if len(words) % 2:
        raise ValueError(f"holds {len(words)} numbers; run lengths come in pairs `start length`")
    runs = np.array(words, dtype=np.int64).reshape(-1, 2)
    starts, lengths = runs[:, 0] - 1, runs[:, 1]
    if (starts < 0).any() or (lengths < 1).any():
        raise ValueError("holds a run that starts before pixel 1 or is shorter than 1")
    ends = starts + lengths
    if (starts[1:] < ends[:-1]).any():
        raise ValueError("holds runs that overlap or are out of order")
    if len(ends) and ends[-1] > height * width:
        raise ValueError(f"holds a run that ends at pixel {ends[-1]}; the mask has {height} x {width} pixels")
    return np.column_stack([starts, lengths])


def _boxes_cell(form: Form, cell: str) -> Boxes:
    words = _words(cell)
    if len(words) % 6:
        raise ValueError(f"holds {len(words)} items; each box is `label confidence x y width height`")
    n_boxes = len(words) // 6
    if n_boxes > MAX_BOXES:
        raise ValueError(f"holds {n_boxes} boxes; at most {MAX_BOXES} are allowed")
    labels = tuple(words[::6])
    strange = next((label for label in labels if form.known and label not in form.known), None)
    if strange is not None:
        raise ValueError(_label_problem(strange, form.target.labels))
    fields = []
    for offset, low, high in ((1, 0.0, 1.0), (2, None, None), (3, None, None), (4, 0.0, None), (5, 0.0, None)):
        try:
            fields.append(numbers("", words[offset::6], low, high))
        except CellError as error:
            part = ("confidence", "x", "y", "width", "height")[offset - 1]
            raise ValueError(f"{error.reason} (the {part} of box {error.row + 1})") from error
    confidence, x, y, width, height = fields
    return Boxes(labels, confidence, np.column_stack([x, y, x + width, y + height]))


def _cellwise(parse: Callable[[Form, str], Any]) -> Callable[[Form, Columns], Values]:
    return lambda form, columns: _each_cell(form, columns, parse)


_PARSERS: dict[PredictionKind, Callable[[Form, Columns], Values]] = {
    PredictionKind.LABEL: _label,
    PredictionKind.PROBABILITY: _probability,
    PredictionKind.CLASS_PROBABILITIES: _class_probabilities,
    PredictionKind.LABEL_PROBABILITIES: _label_probabilities,
    PredictionKind.VALUES: _values,
    PredictionKind.LABEL_SET: _cellwise(_label_set_cell),
    PredictionKind.RANKED_LABELS: _cellwise(_ranked_cell),
    PredictionKind.PERMUTATION: _cellwise(_permutation_cell),
    PredictionKind.TEXT: _cellwise(_text_cell),
    PredictionKind.MASK: _cellwise(_mask_cell),
    PredictionKind.BOXES: _cellwise(_boxes_cell),
}
