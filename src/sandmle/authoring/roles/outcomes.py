"""What became of a task in the authors' hands, on disk: the draft, or why there is none."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from sandmle.errors import ConfigError
from sandmle.records import Record
from sandmle.tasks import load_bundle, write_bundle
from sandmle.tasks.bundle import BundleDraft

_OUTCOME = "outcome.json"
_BUNDLES = "bundle"
_STOP = "stopped.txt"


class Outcome(Record):
    """The end of a task's authoring. Tasks that were interrupted have none."""

    schema_version: Literal[1] = 1
    status: Literal["drafted", "refused"]
    task_id: str = ""
    lost_to: str = ""
    reason: str = ""
    """One sentence."""


@dataclass
class Progress:
    """How far the authoring of many tasks is.

    Attributes:
        n_total: Tasks.
        n_drafted: Tasks with a draft.
        n_refused: Tasks given up.
        at_step: Tasks in each step right now.
        n_repairs, total_tokens, cost_usd: What it took so far.
    """

    n_total: int
    n_drafted: int = 0
    n_refused: int = 0
    at_step: dict[str, int] = field(default_factory=dict)
    n_repairs: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def n_done(self) -> int:
        """Tasks that have ended."""
        return self.n_drafted + self.n_refused

    def note(self) -> str:
        """Returns a line for people: tasks by step, repairs, tokens, cost."""
        busy = [f"{count} at {step}" for step, count in self.at_step.items() if count]
        parts = [f"{self.n_drafted} drafted", f"{self.n_refused} given up", *busy]
        return ", ".join([*parts, f"{self.n_repairs} repairs", f"{self.total_tokens} tokens, {self.cost_usd:.3f} USD"])


OnProgress = Callable[[Progress], None]


def read_outcome(folder: Path) -> Outcome | None:
    """Returns the outcome of a task's folder, or None where it has none yet.

    Raises:
        ConfigError: The file is broken.
    """
    path = folder / _OUTCOME
    try:
        return Outcome.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path} cannot be read; remove it to author the task again") from error


def save_draft(folder: Path, draft: BundleDraft) -> Outcome:
    """Writes the draft, then the outcome that names it."""
    write_bundle(draft, folder / _BUNDLES)
    return save_outcome(folder, Outcome(status="drafted", task_id=draft.spec.task_id))


def save_outcome(folder: Path, outcome: Outcome) -> Outcome:
    """Writes an outcome in one step.

    Raises:
        ConfigError: The disk refuses.
    """
    scratch = folder / f".{_OUTCOME}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch.write_text(json.dumps(outcome.to_dict(), indent=2) + "\n")
        scratch.replace(folder / _OUTCOME)
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}") from error
    return outcome


def load_draft(folder: Path, task_id: str) -> BundleDraft:
    """Returns a draft again.

    Raises:
        BundleError: It was changed or is gone.
    """
    bundle = load_bundle(folder / _BUNDLES / task_id)
    return BundleDraft(bundle.spec.replace(files={}), {path: bundle.read(path) for path in bundle.spec.files})


def save_stop(folder: Path, reason: str) -> None:
    """Writes down why a run stopped before all tasks were at their end; an empty reason takes an old one away.

    Raises:
        ConfigError: The disk refuses.
    """
    try:
        if reason:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _STOP).write_text(reason + "\n")
        else:
            (folder / _STOP).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}") from error


def read_stop(folder: Path) -> str:
    """Returns why the last run stopped; empty if it did not."""
    path = folder / _STOP
    return path.read_text().strip() if path.is_file() else ""
