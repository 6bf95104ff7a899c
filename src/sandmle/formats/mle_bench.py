"""MLE-bench: ``mlebench/competitions/<id>/`` beside ``data/<id>/prepared/``.

::

    OUT/
      mlebench/competitions/<id>/   config.yaml prepare.py grade.py leaderboard.csv description.md checksums.yaml ...
      data/<id>/prepared/public/    what the agent sees
      data/<id>/prepared/private/   answers.csv, and all else of the bundle in bundle/
      experiments/splits/sandmle.txt

``mlebench`` finds a task when ``mlebench/`` and ``experiments/`` are copied over a checkout of it and its
``--data-dir`` is ``OUT/data``. Layout read in openai/mle-bench, commit 783b15a.
"""

import csv
import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd
import yaml

from sandmle.errors import BundleError
from sandmle.formats.leaderboard import DEFAULT_TEAMS, board_for
from sandmle.formats.portable import GRADER_FILE, grader_zip, template
from sandmle.grading import ScoringRule, read_table, write_table
from sandmle.records import PredictionKind
from sandmle.tasks import Bundle
from sandmle.tasks.bundle import ANSWERS_FILE, DESCRIPTION_FILE, SAMPLE_FILE

_CODE = "mlebench/competitions"
_NUMERIC = frozenset(
    {
        PredictionKind.PROBABILITY,
        PredictionKind.CLASS_PROBABILITIES,
        PredictionKind.LABEL_PROBABILITIES,
        PredictionKind.VALUES,
    }
)
_BOARD_COLUMNS = ("scoreNullable", "teamId", "hasTeamName", "submissionDate", "score", "hasScore")


class MleBench:
    """The layout.

    Args:
        answers: ``jsonl`` keeps every cell as text, which pandas' CSV reader does not; MLE-bench's validation server
            reads CSV only.
        n_teams: Rows of the leaderboard.
    """

    name = "mle-bench"
    warning = ""

    def __init__(self, answers: Literal["csv", "jsonl"] = "csv", n_teams: int = DEFAULT_TEAMS) -> None:
        self.options: Mapping[str, str] = {"answers": answers}
        self._answers = answers
        self._n_teams = n_teams

    def place(self, task_id: str, path: str) -> str:
        """Returns where a file lies; all hidden files but the answers are under ``private/bundle/``."""
        prepared = f"data/{task_id}/prepared"
        if path == DESCRIPTION_FILE or path.startswith("public/"):
            return f"{prepared}/public/{path.removeprefix('public/')}"
        if path == ANSWERS_FILE:
            return f"{prepared}/private/answers.{self._answers}"
        return f"{prepared}/private/bundle/{path}"

    def folders(self, task_id: str) -> tuple[str, ...]:
        """Returns the task's data folder and its competition folder."""
        return (f"{_CODE}/{task_id}", f"data/{task_id}")

    def encode(self, path: str, data: bytes) -> bytes:
        """Turns answers into JSON Lines where asked for."""
        if path != ANSWERS_FILE or self._answers == "csv":
            return data
        table = read_table(data)
        rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()

    def decode(self, path: str, data: bytes) -> bytes:
        """Turns JSON Lines into CSV again."""
        if path != ANSWERS_FILE or self._answers == "csv":
            return data
        rows = [json.loads(line) for line in data.decode().splitlines()]
        return write_table({name: [row[name] for row in rows] for name in rows[0]})

    def extras(self, bundle: Bundle) -> Mapping[str, bytes]:
        """Returns the competition folder.

        Raises:
            BundleError: MLE-bench's readers or its position rule cannot express the task.
        """
        spec = bundle.spec
        self._check_cells(bundle)
        board = board_for(spec.thresholds, spec.direction, self._n_teams)
        root = f"{_CODE}/{spec.task_id}"
        description = bundle.read(DESCRIPTION_FILE)
        own = [DESCRIPTION_FILE, ANSWERS_FILE, *(path for path in spec.files if path.startswith("public/"))]
        places = {self.place(spec.task_id, path): self.encode(path, bundle.read(path)) for path in own}
        return {
            f"{root}/config.yaml": _yaml(self._config(bundle)),
            f"{root}/prepare.py": template("mle_bench_prepare.py"),
            f"{root}/grade.py": template("mle_bench_grade.py"),
            f"{root}/task.json": ScoringRule.of(spec).to_json().encode(),
            f"{root}/{GRADER_FILE}": grader_zip(),
            f"{root}/leaderboard.csv": _board_csv(board),
            f"{root}/checksums.yaml": _yaml(_checksums(spec.task_id, places)),
            f"{root}/description.md": description,
            f"{root}/description_obfuscated.md": description,
            f"{root}/kernels.txt": b"",
        }

    def shared(self, task_ids: Sequence[str]) -> Mapping[str, bytes]:
        """Returns the split that names all tasks."""
        return {"experiments/splits/sandmle.txt": "\n".join(task_ids).encode()}

    def find(self, root: Path) -> list[str]:
        """Returns the ids of the competition folders."""
        return sorted(path.parent.name for path in root.glob(f"{_CODE}/*/config.yaml"))

    def _config(self, bundle: Bundle) -> dict[str, object]:
        spec = bundle.spec
        module = f"mlebench.competitions.{spec.task_id}"
        return {
            "id": spec.task_id,
            "name": spec.title,
            "competition_type": "simple",
            "awards_medals": True,
            "prizes": None,
            "description": f"{_CODE}/{spec.task_id}/description.md",
            "dataset": {
                "answers": self.place(spec.task_id, ANSWERS_FILE).removeprefix("data/"),
                "sample_submission": self.place(spec.task_id, SAMPLE_FILE).removeprefix("data/"),
            },
            "grader": {"name": spec.metric, "grade_fn": f"{module}.grade:grade"},
            "preparer": f"{module}.prepare:prepare",
        }

    def _check_cells(self, bundle: Bundle) -> None:
        """Refuses cells that pandas' reader would change, since MLE-bench hands frames to the grader, not files."""
        spec = bundle.spec
        exact = spec.target.kind not in _NUMERIC
        for label in spec.target.labels:
            seen = _through_pandas(f"x\n{_quoted(label)}\n".encode(), "x")
            if seen != [label] and not (len(seen) == 1 and _same_number(seen[0], label)):
                raise BundleError(f"task {spec.task_id}: MLE-bench's reader turns the label {label!r} into {seen}")
        if self._answers == "jsonl":
            return
        data = bundle.read(ANSWERS_FILE)
        table = read_table(data)
        ids = _through_pandas(data, spec.id_column)
        if len(set(ids)) < len(ids):
            raise BundleError(f"task {spec.task_id}: MLE-bench's reader makes some ids in {spec.id_column!r} equal")
        for name in set(spec.target.columns) & set(table.header):
            for own, read in zip(table.column(name), _through_pandas(data, name), strict=True):
                if own != read and (exact or not _same_number(read, own)):
                    raise BundleError(
                        f"task {spec.task_id}: MLE-bench's reader turns the answer {own!r} into {read!r}; "
                        "export with --answers jsonl"
                    )


def _through_pandas(data: bytes, column: str) -> list[str]:
    frame = pd.read_csv(io.BytesIO(data))
    return read_table(frame.to_csv(index=False).encode()).column(column)


def _same_number(seen: str, own: str) -> bool:
    try:
        return math.isclose(float(seen), float(own), rel_tol=1e-12)
    except ValueError:
        return False


def _quoted(cell: str) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([cell])
    return out.getvalue()


def _board_csv(board: Sequence[float]) -> bytes:
    n = len(board)
    cells = (board, list(range(1, n + 1)), ["True"] * n, ["2020-01-01"] * n, board, ["True"] * n)
    return write_table(dict(zip(_BOARD_COLUMNS, cells, strict=True)))


def _checksums(task_id: str, places: Mapping[str, bytes]) -> dict[str, dict[str, str]]:
    """MD5 of the CSV and JSON files that lie directly in public and private, as MLE-bench counts them."""
    sums: dict[str, dict[str, str]] = {"private": {}, "public": {}}
    for place, data in sorted(places.items()):
        side, _, name = place.removeprefix(f"data/{task_id}/prepared/").partition("/")
        if "/" not in name and name.rpartition(".")[2] in ("csv", "json", "jsonl"):
            sums[side][name] = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return sums


def _yaml(value: object) -> bytes:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode()
