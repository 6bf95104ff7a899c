"""A submission's bytes to predictions: the one code path of validator and grader."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sandmle.grading.answers import AnswerKey, Predictions
from sandmle.grading.cells import CellError, Form, parse_cells, shown
from sandmle.grading.metrics.base import Values
from sandmle.grading.rule import numbered
from sandmle.grading.table import DEFAULT_CAPS, Caps, Table, TableError, read_header, read_table
from sandmle.records import GradeStatus, PredictionKind

_SHOWN_COLUMNS = 12


@dataclass(frozen=True)
class SubmissionProblem:
    """Why a submission is not graded.

    Attributes:
        status: Which kind of fault it is.
        message: One sentence that names row and column, without any hidden answer.
    """

    status: GradeStatus
    message: str


def read_submission(key: AnswerKey, data: bytes | None, caps: Caps = DEFAULT_CAPS) -> Predictions | SubmissionProblem:
    """Reads and checks a submission. Rows are joined by id as text, columns by name; order does not matter.

    Args:
        key: The answers.
        data: The file, or None when there is none.
        caps: What is refused as too large.

    Returns:
        The predictions, in the order of the answers, or the first problem found.
    """
    if data is None:
        return SubmissionProblem(GradeStatus.MISSING, "there is no submission.csv")
    target = key.rule.target
    try:
        may_have_more = key.rule.extra_columns == "ignore"
        expected = (key.rule.id_column, *target.columns)
        problem = _column_problem(read_header(data, caps), expected, may_have_more=may_have_more)
        if problem:
            return SubmissionProblem(GradeStatus.WRONG_COLUMNS, problem)
        table = read_table(data, caps)
    except TableError as error:
        return SubmissionProblem(GradeStatus.UNREADABLE, f"submission.csv cannot be read: {error}")
    ids = table.column(key.rule.id_column)
    if key.rule.repeated_ids == "in_order":
        ids = numbered(ids)
    problem = _id_problem(ids, key, table)
    if problem:
        return SubmissionProblem(GradeStatus.BAD_IDS, problem)
    columns = {name: table.column(name) for name in target.columns}
    try:
        form = Form(target, key.metric, is_answer=False, sum_tolerance=key.rule.sum_tolerance)
        values = parse_cells(form, columns)
        ordered = values if tuple(ids) == key.ids else values[_order(ids, key)]
        if target.kind is PredictionKind.PERMUTATION:
            _check_items(key, ordered, target.columns[0], ids)
    except CellError as error:
        where = f", column {error.column!r}," if error.column else ""
        place = f"line {table.line_of(error.row)} (id {shown(ids[error.row])}){where}"
        return SubmissionProblem(GradeStatus.BAD_VALUES, f"submission.csv: {place} {error.reason}")
    return Predictions(ordered)


def _column_problem(found: Sequence[str], expected: Sequence[str], *, may_have_more: bool) -> str:
    counts, known = Counter(found), frozenset(expected)
    missing = [name for name in expected if not counts[name]]
    extra = [] if may_have_more else [name for name in found if name not in known]
    repeated = [name for name in expected if counts[name] > 1]
    if not (missing or extra or repeated):
        return ""
    what = []
    if missing:
        what.append(f"column {missing[0]!r} is missing")
    if extra:
        hint = " (a saved index? write with index=False)" if extra[0] in ("", "Unnamed: 0", "index") else ""
        what.append(f"column {shown(extra[0])} does not belong{hint}")
    if repeated:
        what.append(f"column {repeated[0]!r} is there twice")
    return f"submission.csv: {', '.join(what)}; expected {_listed(expected)}, found {_listed(found)}"


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(shown(name) for name in names[:_SHOWN_COLUMNS])
    return text + (f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else "")


def _id_problem(ids: list[str], key: AnswerKey, table: Table) -> str:
    if tuple(ids) == key.ids:
        return ""
    if not ids:
        return f"submission.csv has a header but no rows; {len(key.ids)} are expected"
    distinct = set(ids)
    if len(distinct) < len(ids):
        seen: dict[str, int] = {}
        for row, row_id in enumerate(ids):
            if row_id in seen:
                lines = f"lines {table.line_of(seen[row_id])} and {table.line_of(row)}"
                return f"submission.csv: duplicate id {shown(row_id)} on {lines}"
            seen[row_id] = row
    for row, row_id in enumerate(ids):
        if row_id not in key.position:
            n_unknown = sum(row_id not in key.position for row_id in ids)
            return (
                f"submission.csv: line {table.line_of(row)}: id {shown(row_id)} is not an id of the test file"
                f"{_spelling(row_id, key)} ({n_unknown} of {len(ids)} ids are unknown)"
            )
    missing = [row_id for row_id in key.ids if row_id not in distinct]
    if not missing:
        return ""
    return f"submission.csv: id {shown(missing[0])} is missing ({len(missing)} of {len(key.ids)} ids are)"


def _spelling(row_id: str, key: AnswerKey) -> str:
    for other in (row_id.strip(), row_id.removesuffix(".0"), row_id.strip().removesuffix(".0")):
        if other != row_id and other in key.position:
            return f", but {shown(other)} is; write ids as text, as they stand in the test file"
    return ""


def _order(ids: list[str], key: AnswerKey) -> list[int]:
    """Returns the submission's row for each answer."""
    row_of = {row_id: row for row, row_id in enumerate(ids)}
    return [row_of[row_id] for row_id in key.ids]


def _check_items(key: AnswerKey, ordered: Values, column: str, ids: list[str]) -> None:
    for row_id, items, wanted in zip(key.ids, ordered, key.truth.values, strict=True):
        known = {*wanted}
        if len(items) != len(wanted) or {*items} != known:
            strange = next((item for item in items if item not in known), None)
            what = f"holds the unknown item {shown(strange)}" if strange is not None else "lacks items"
            raise CellError(ids.index(row_id), column, f"{what}; all {len(wanted)} items of the row are needed")
