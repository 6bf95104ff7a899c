"""The contract of a check: it looks at a bundle through a :class:`GateContext` and says yes or no with a number."""

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import ValidationError

from sandmle.errors import BundleError
from sandmle.gate.submissions import perfect_submission
from sandmle.gate.tables import Column, encode_column, target_views
from sandmle.grading import AnswerKey, Grader, Predictions, SubmissionProblem, read_submission
from sandmle.records import ExecResult, Ladder, TaskSpec, ThresholdPreset
from sandmle.sandbox.base import Sandbox
from sandmle.tasks import Bundle

LADDER_FILE = "provenance/ladder.json"
ORACLE_FILE = "private/oracle.csv"
RULE_FILE = "provenance/rule.md"

Regenerate = Callable[[], Mapping[str, bytes]]
"""Makes the task's data files again and returns them by path in the bundle; the author hands it to the gate."""

Need = Literal["sandbox", "regenerate", "calibrated"]
"""What a check cannot do without: a sandbox, an author's function, thresholds of the calibrated kind."""


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        passed: The verdict.
        message: One sentence, naming the file, column or row; may be empty when passed.
        value: The number that the verdict rests on; None where there is none, or where it would differ between runs.
        limit: The number that ``value`` was held against.
    """

    passed: bool
    message: str = ""
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Check:
    """One question put to a bundle. ``run`` is a pure function: equal bundles give equal findings.

    Attributes:
        name: The check's name in reports.
        run: Looks and says; an exception becomes the verdict ``error``.
        needs: What it cannot do without; a check that lacks something is left out and the report has no line for it.
        time_limit_s: Wall seconds after which the verdict is ``timeout``.
        decides: When it fails, the checks after it would mean nothing and are not asked.
    """

    name: str
    run: Callable[["GateContext"], Finding]
    needs: frozenset[Need] = frozenset()
    time_limit_s: float = 120.0
    decides: bool = False


@dataclass(frozen=True)
class SolverRun:
    """The independent solver's run: what the sandbox said, and the submission it wrote."""

    result: ExecResult
    submission: bytes | None


@dataclass
class GateContext:
    """A bundle as the checks see it; everything is read and computed once, when the first check asks for it.

    Attributes:
        bundle: The task.
        preset: Which threshold rule is asked for.
        sandbox: Where code runs; None leaves out the checks that run any.
        regenerate: Makes the data again; None leaves out the check of determinism.
    """

    bundle: Bundle
    preset: ThresholdPreset
    sandbox: Sandbox | None = None
    regenerate: Regenerate | None = None
    _files: dict[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def spec(self) -> TaskSpec:
        """The task's spec."""
        return self.bundle.spec

    @property
    def have(self) -> frozenset[Need]:
        """What checks may count on."""
        given: dict[Need, bool] = {
            "sandbox": self.sandbox is not None,
            "regenerate": self.regenerate is not None,
            "calibrated": self.preset == "calibrated",
        }
        return frozenset(need for need, is_there in given.items() if is_there)

    def read(self, path: str) -> bytes:
        """Returns a file of the bundle, from memory after the first time."""
        if path not in self._files:
            self._files[path] = self.bundle.read(path)
        return self._files[path]

    def table(self, path: str) -> pd.DataFrame:
        """Returns a table of the bundle as text cells; an empty cell is an empty string.

        Raises:
            BundleError: It cannot be read as a table.
        """
        try:
            return pd.read_csv(io.BytesIO(self.read(path)), dtype=str, keep_default_na=False, na_filter=False)
        except (ValueError, UnicodeDecodeError) as error:
            raise BundleError(f"task {self.spec.task_id}: {path} is not a table: {error}") from error

    @cached_property
    def train(self) -> pd.DataFrame:
        """train.csv, text cells."""
        return self.table("public/train.csv")

    @cached_property
    def test(self) -> pd.DataFrame:
        """test.csv, text cells."""
        return self.table("public/test.csv")

    @cached_property
    def answers(self) -> pd.DataFrame:
        """answers.csv, text cells, in the order of test.csv.

        Raises:
            BundleError: The ids of answers.csv are not those of test.csv.
        """
        frame = self.table("private/answers.csv").set_index(self.spec.id_column, drop=False)
        wanted = self.test[self.spec.id_column]
        if not frame.index.is_unique or set(frame.index) != set(wanted):
            raise BundleError(f"task {self.spec.task_id}: the ids of answers.csv are not those of test.csv")
        return frame.loc[list(wanted)].reset_index(drop=True)

    @cached_property
    def is_private(self) -> np.ndarray:
        """Which rows of test.csv count for the grade ``# [n_test]``."""
        return np.asarray(self.answers["leaderboard"] == "private")

    @cached_property
    def train_targets(self) -> list[str]:
        """Columns of train.csv that test.csv lacks."""
        return [name for name in self.train.columns if name not in self.test.columns]

    @cached_property
    def answer_targets(self) -> list[str]:
        """Prediction columns that answers.csv has."""
        return [name for name in self.spec.target.columns if name in self.answers.columns]

    @cached_property
    def train_views(self) -> dict[str, np.ndarray]:
        """Numbers that stand for the training targets, by name, each ``# [n_train]``."""
        return target_views(self.train[self.train_targets])

    @cached_property
    def answer_views(self) -> dict[str, np.ndarray]:
        """Numbers that stand for the hidden answers, by name and in the order of test.csv, each ``# [n_test]``."""
        return target_views(self.answers[self.answer_targets])

    @cached_property
    def inputs(self) -> list[Column]:
        """The columns an agent predicts from, as numbers: those of test.csv that are no id, path or free name."""
        types = {column.name: column.type for column in self.spec.columns}
        found = []
        for name in self.test.columns:
            if name == self.spec.id_column or types.get(name) in ("id", "path"):
                continue
            found.append(encode_column(name, types.get(name), self.train[name], self.test[name]))
        return found

    @cached_property
    def media_columns(self) -> list[str]:
        """Columns of test.csv whose cells name files under public/."""
        named = [column.name for column in self.spec.columns if column.type == "path"]
        return [name for name in named if name in self.test.columns and name in self.train.columns]

    @cached_property
    def media(self) -> dict[str, Path]:
        """Every public file beside the three tables, by its path below public/, sorted."""
        own = {"train.csv", "test.csv", "sample_submission.csv"}
        prefix = "public/"
        paths = [path.removeprefix(prefix) for path in self.bundle.paths() if path.startswith(prefix)]
        return {path: self.bundle.public_dir / path for path in paths if path not in own}

    @cached_property
    def group_columns(self) -> list[str]:
        """Columns that look like the id of an entity which several rows belong to; empty without groups in the DNA."""
        if not self.spec.dna.groups:
            return []
        types = {column.name: column.type for column in self.spec.columns}
        found = []
        for name in self.test.columns:
            if name == self.spec.id_column or types.get(name) not in ("id", "category", "code", "integer"):
                continue
            n_levels = self.train[name].nunique()
            if 4 <= n_levels <= 0.7 * len(self.train):
                found.append(name)
        return found

    @cached_property
    def grader(self) -> Grader:
        """The grader of the task, answers read."""
        return Grader(self.bundle, sandbox=self.sandbox)

    @cached_property
    def private_key(self) -> AnswerKey:
        """The hidden answers, of which the private rows count."""
        return self.grader.key.subset("private")

    def predictions(self, submission: bytes, what: str) -> Predictions:
        """Returns a submission as the grader reads it.

        Args:
            submission: The file.
            what: What it is, for the message.

        Raises:
            BundleError: The grader refuses it.
        """
        outcome = read_submission(self.grader.key, submission)
        if isinstance(outcome, SubmissionProblem):
            raise BundleError(f"task {self.spec.task_id}: {what} is not a valid submission: {outcome.message}")
        return outcome

    @cached_property
    def sample(self) -> Predictions:
        """The sample submission.

        Raises:
            BundleError: It is not valid.
        """
        return self.predictions(self.read("public/sample_submission.csv"), "sample_submission.csv")

    @cached_property
    def perfect(self) -> Predictions:
        """The answers themselves as a submission.

        Raises:
            BundleError: The grader refuses them.
        """
        return self.predictions(perfect_submission(self), "the answers themselves")

    @cached_property
    def oracle(self) -> Predictions | None:
        """What the hidden rule predicts; None when the bundle does not say."""
        if not (self.bundle.root / ORACLE_FILE).is_file():
            return None
        return self.predictions(self.read(ORACLE_FILE), ORACLE_FILE)

    @cached_property
    def ladder(self) -> Ladder | None:
        """The author's baseline scores; None when the bundle has none.

        Raises:
            BundleError: The file is there, but is no ladder.
        """
        if not (self.bundle.root / LADDER_FILE).is_file():
            return None
        try:
            return Ladder.model_validate_json(self.read(LADDER_FILE))
        except ValidationError as error:
            raise BundleError(
                f"task {self.spec.task_id}: {LADDER_FILE} is not a ladder: {error.errors()[0]['msg']}"
            ) from error

    @cached_property
    def solver_run(self) -> SolverRun:
        """One run of the independent solver in the sandbox."""
        from sandmle.gate.solving import run_solver  # here: it needs this module

        return run_solver(self)

    @cached_property
    def public_texts(self) -> dict[str, str]:
        """What can be read as prose: the description, and media files that are text."""
        texts = {"description.md": self.bundle.description()}
        for name, path in self.media.items():
            if path.suffix.lower() in (".txt", ".md", ".json", ".yaml", ".yml", ".xml", ".html", ".csv", ".tsv"):
                texts[f"public/{name}"] = path.read_text(errors="replace")
        return texts


def words_of(text: str) -> list[str]:
    """Returns the words and numbers of a text, lower case."""
    return re.findall(r"[a-z]+|\d+(?:\.\d+)?", text.lower())
