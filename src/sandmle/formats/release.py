"""The published SandMLE release: everything, answers and evaluator included, in ``<id>/prepared/public/``.

Written as it is there, since its tools run ``evaluator.py`` in that folder; read back whole. A task of the release
itself has no manifest of ours and is repaired by :mod:`sandmle.formats.repair`. Layout: Tonyzhou98/SandMLE,
``examples/deepresearch/DATA.md``, commit 0912362.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandmle.formats.base import MANIFEST_FILE
from sandmle.formats.portable import GRADER_FILE, grader_zip, template
from sandmle.grading import ScoringRule
from sandmle.records import MILESTONES, Direction
from sandmle.tasks import Bundle
from sandmle.tasks.bundle import ANSWERS_FILE, DESCRIPTION_FILE

EVALUATOR_FILE = "evaluator.py"
ANSWER_FILE = "answer.csv"
EVALUATOR_PARTS = frozenset({EVALUATOR_FILE, ANSWER_FILE, "evaluator.json", GRADER_FILE})
"""What may not stay in the public folder."""


class Release:
    """The layout."""

    name = "sandmle-release"
    warning = (
        "this layout keeps answer.csv and evaluator.py in prepared/public, where an agent's code can read them; "
        "use it only with tools that need it"
    )
    options: Mapping[str, str] = {}

    def place(self, task_id: str, path: str) -> str:
        """Returns where a file lies; what the release has no place for is in ``prepared/private/``."""
        prepared = f"{task_id}/prepared"
        if path == DESCRIPTION_FILE or path.startswith("public/"):
            return f"{prepared}/public/{path.removeprefix('public/')}"
        if path == ANSWERS_FILE:
            return f"{prepared}/public/{ANSWER_FILE}"
        return f"{prepared}/private/{path}"

    def folders(self, task_id: str) -> tuple[str, ...]:
        """Returns the task's one folder."""
        return (task_id,)

    def encode(self, path: str, data: bytes) -> bytes:
        """Returns the bytes as they are."""
        return data

    def decode(self, path: str, data: bytes) -> bytes:
        """Returns the bytes as they are."""
        return data

    def extras(self, bundle: Bundle) -> Mapping[str, bytes]:
        """Returns the evaluator."""
        spec = bundle.spec
        scores = dict(zip(MILESTONES, spec.thresholds.scores(), strict=True))
        lines: dict[str, object] = {"is_lower_better": spec.direction is Direction.MINIMIZE}
        lines.update({f"{name}_threshold": scores[name] for name in reversed(MILESTONES)})
        public = f"{spec.task_id}/prepared/public"
        told = {"rule": ScoringRule.of(spec).to_dict(), "lines": lines}
        return {
            f"{public}/{EVALUATOR_FILE}": template("release_evaluator.py"),
            f"{public}/evaluator.json": json.dumps(told, indent=2).encode(),
            f"{public}/{GRADER_FILE}": grader_zip(),
        }

    def shared(self, task_ids: Sequence[str]) -> Mapping[str, bytes]:
        """Returns the list that the release calls ``SANDMLE_OK_LIST``."""
        return {"ok_competitions_sanity.json": json.dumps(list(task_ids), indent=2).encode()}

    def find(self, root: Path) -> list[str]:
        """Returns the ids of the folders with an evaluator."""
        return sorted(path.parents[2].name for path in root.glob(f"*/prepared/public/{EVALUATOR_FILE}"))


def is_ours(root: Path, task_id: str) -> bool:
    """Tells whether a task was written by this module rather than by the release."""
    return (root / Release().place(task_id, MANIFEST_FILE)).is_file()
