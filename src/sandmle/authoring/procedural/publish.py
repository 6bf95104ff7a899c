"""From rows to files: train, test, answers, sample submission, the hidden rule's own submission, and media."""

from dataclasses import dataclass

import numpy as np

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.dataset import TEST, TRAIN, Dataset
from sandmle.authoring.procedural.heads import Cells
from sandmle.grading.rule import ScoringRule
from sandmle.grading.table import write_table
from sandmle.tasks.bundle import ANSWERS_FILE, TEST_FILE, TRAIN_FILE

ORACLE_FILE = "private/oracle.csv"
_ALPHABET = np.array(list("0123456789abcdefghjkmnpqrstvwxyz"))


@dataclass(frozen=True)
class Published:
    """The order and the names that rows get in the files.

    Attributes:
        train: Rows of train.csv, shuffled.
        test: Rows of test.csv, shuffled.
        ids: Id of every row of the data set.
        leaderboard: ``public`` or ``private`` for every row of ``test``.
    """

    train: np.ndarray
    test: np.ndarray
    ids: np.ndarray
    leaderboard: np.ndarray


def scoring_rule(plan: TaskPlan) -> ScoringRule:
    """Returns what the grader needs to know of a plan."""
    return ScoringRule(
        metric=plan.metric,
        metric_params=metric_params(plan),
        direction=plan.direction,
        id_column=plan.id_column,
        target=plan.target,
        answer_columns=tuple(side.name for side in plan.side_columns),
    )


def metric_params(plan: TaskPlan) -> dict[str, object]:
    """Returns the metric's parameters, with the names of the columns that it reads."""
    params: dict[str, object] = dict(plan.metric_params)
    for side in plan.side_columns:
        if side.role == "subgroups":
            params[side.role] = [other.name for other in plan.side_columns if other.role == side.role]
        else:
            params[side.role] = side.name
    return params


def arrange(dataset: Dataset, rng: np.random.Generator) -> Published:
    """Draws the order of rows, their ids and which test rows count for which leaderboard."""
    train = rng.permutation(dataset.rows_where(TRAIN))
    test = rng.permutation(dataset.rows_where(TEST))
    is_public = np.zeros(len(test), dtype=bool)
    is_public[rng.permutation(len(test))[: dataset.plan.n_public]] = True
    ids = random_ids(dataset.n_rows, dataset.plan.dna.n_id_parts, rng)
    return Published(train=train, test=test, ids=ids, leaderboard=np.where(is_public, "public", "private"))


def random_ids(count: int, n_parts: int, rng: np.random.Generator) -> np.ndarray:
    """Returns distinct random ids; they tell neither order nor part, and never read as a number."""
    found: dict[str, None] = {}
    while len(found) < count:
        letters = _ALPHABET[rng.integers(len(_ALPHABET), size=(count, 8))]
        # The first letter is never a digit: no reader turns the id into a number.
        letters[:, 0] = _ALPHABET[10 + rng.integers(22, size=count)]
        words = ["".join(row) for row in letters]
        if n_parts > 1:
            parts = rng.integers(10, 100, size=(count, n_parts - 1))
            words = ["_".join([word[:6], *map(str, row)]) for word, row in zip(words, parts, strict=True)]
        found.update(dict.fromkeys(words))
    return np.array(list(found)[:count], dtype=object)


def data_files(dataset: Dataset, order: Published) -> dict[str, bytes]:
    """Returns all data files of the bundle that need no baseline."""
    plan = dataset.plan
    public = dict(dataset.columns)
    files: dict[str, bytes] = {}
    for media in dataset.files:
        paths = np.array([f"{media.folder}/{name}{media.suffix}" for name in order.ids], dtype=object)
        public[media.column] = paths
        for at in (*order.train.tolist(), *order.test.tolist()):
            files[f"public/{paths[at]}"] = media.file_of(at)
    names = [spec.name for spec in dataset.specs]
    targets = dataset.answers(order.train)
    if plan.metric == "laplace_log_likelihood":
        targets = {plan.target.columns[0]: targets[plan.target.columns[0]]}

    def table(at: np.ndarray, more: dict[str, np.ndarray]) -> bytes:
        cells = {name: _cells(public[name][at]) for name in names}
        return write_table({plan.id_column: order.ids[at], **cells, **more})

    files[TRAIN_FILE] = table(order.train, targets)
    files[TEST_FILE] = table(order.test, {})
    side = {name: _cells(cells) for name, cells in dataset.side(order.test).items()}
    answers = {**dataset.answers(order.test), **side, "leaderboard": order.leaderboard}
    files[ANSWERS_FILE] = write_table({plan.id_column: order.ids[order.test], **answers})
    return files


def sample_submission(dataset: Dataset, order: Published, option: float) -> bytes:
    """Returns a valid submission that looks at no feature."""
    return write_table({dataset.plan.id_column: order.ids[order.test], **dataset.constant(order.test, option)})


def oracle_submission(dataset: Dataset, order: Published, option: float) -> bytes:
    """Returns the submission of the hidden rule without its noise."""
    cells = dataset.decoded(order.test, dataset.oracle[dataset.rows.pieces_of(order.test)], option)
    return write_table({dataset.plan.id_column: order.ids[order.test], **cells})


def bare_answers(dataset: Dataset, part: int) -> bytes:
    """Returns the answers of all rows of a part, all of them private, ids being plain numbers."""
    at = dataset.rows_where(part)
    leaderboard = np.full(len(at), "private")
    cells = {**dataset.answers(at), **dataset.side(at), "leaderboard": leaderboard}
    return write_table({dataset.plan.id_column: np.arange(len(at)), **cells})


def bare_submission(dataset: Dataset, cells: Cells) -> bytes:
    """Returns cells for all rows of a part as a submission, ids being plain numbers."""
    n_rows = len(next(iter(cells.values())))
    return write_table({dataset.plan.id_column: np.arange(n_rows), **cells})


def _cells(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "M":
        return np.array([str(value).replace("T", " ") if value == value else "" for value in values], dtype=object)
    return values
