"""From a draw to a bundle's data files: order, ids, leaderboards and media names are ours, never the script's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sandmle.authoring.procedural.publish import ORACLE_FILE, random_ids
from sandmle.authoring.roles.draws import Draw
from sandmle.authoring.roles.outputs import TaskIdea
from sandmle.grading import write_table
from sandmle.tasks.bundle import ANSWERS_FILE, SAMPLE_FILE, TEST_FILE, TRAIN_FILE

N_PUBLIC = 300
Cells = Mapping[str, list[str]]


@dataclass(frozen=True)
class Arranged:
    """The order and the names that the rows of a draw get.

    Attributes:
        train, test: Rows in the order of the files.
        train_ids, test_ids: Their ids, in the same order.
        leaderboard: ``public`` or ``private`` for every row of ``test``.
    """

    train: tuple[int, ...]
    test: tuple[int, ...]
    train_ids: tuple[str, ...]
    test_ids: tuple[str, ...]
    leaderboard: tuple[str, ...]


def arrange(n_train: int, n_test: int, n_public: int, n_id_parts: int, rng: np.random.Generator) -> Arranged:
    """Draws the order of rows, their ids and which test rows count for which leaderboard."""
    train, test = rng.permutation(n_train), rng.permutation(n_test)
    is_public = np.zeros(n_test, dtype=bool)
    is_public[rng.permutation(n_test)[:n_public]] = True
    ids = random_ids(n_train + n_test, n_id_parts, rng)
    return Arranged(
        train=tuple(train.tolist()),
        test=tuple(test.tolist()),
        train_ids=tuple(ids[:n_train]),
        test_ids=tuple(ids[n_train:]),
        leaderboard=tuple(np.where(is_public, "public", "private").tolist()),
    )


def data_files(idea: TaskIdea, draw: Draw, order: Arranged, sample: Mapping[str, str]) -> dict[str, bytes]:
    """Returns all data files of the bundle.

    Args:
        idea: Names of columns.
        draw: The rows.
        order: Their order and names.
        sample: The sample submission's cells by target column, the same in every row.
    """
    files: dict[str, bytes] = {}
    inputs = [column.name for column in idea.columns]
    targets = list(idea.target.columns)
    for path, cells, rows, ids, more in (
        (TRAIN_FILE, draw.train, order.train, order.train_ids, targets),
        (TEST_FILE, draw.test, order.test, order.test_ids, []),
    ):
        columns = {name: _taken(cells[name], rows) for name in [*inputs, *more]}
        for name in idea.path_columns:
            columns[name] = _write_media(files, draw, name, columns[name], ids)
        files[path] = write_table({idea.id_column: list(ids), **columns})
    answers = {name: _taken(draw.test[name], order.test) for name in targets}
    test_ids = list(order.test_ids)
    files[ANSWERS_FILE] = write_table({idea.id_column: test_ids, **answers, "leaderboard": list(order.leaderboard)})
    oracle = {name: _taken(draw.oracle[name], order.test) for name in targets}
    files[ORACLE_FILE] = write_table({idea.id_column: test_ids, **oracle})
    files[SAMPLE_FILE] = write_table(
        {idea.id_column: test_ids, **{name: [sample[name]] * len(test_ids) for name in targets}}
    )
    return files


def _taken(cells: Sequence[str], rows: Sequence[int]) -> list[str]:
    return [cells[row] for row in rows]


def _write_media(
    files: dict[str, bytes], draw: Draw, column: str, numbers: Sequence[str], ids: Sequence[str]
) -> list[str]:
    """Adds the media of a column under names made of the ids, and returns those names."""
    names = []
    for number, row_id in zip(numbers, ids, strict=True):
        media = draw.media[int(number)]
        name = f"{column}/{row_id}{media.suffix}"
        files[f"public/{name}"] = media.data
        names.append(name)
    return names
