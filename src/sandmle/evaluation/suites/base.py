"""The contract of a suite: a benchmark as tasks that episodes can run on, with graders that keep its rules.

A suite never stops because one of its tasks cannot be used: such a task is named in ``SuiteTasks.missing``, its
episodes end as ``task_error`` and count as failures until the task is there and the run is resumed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import Field

from sandmle.env.feedback import SubmissionGrader
from sandmle.records import Record
from sandmle.tasks import Bundle


class SuiteOptions(Record):
    """What a user may say of a suite; each suite takes some of it and refuses the rest."""

    data: Path
    """A task set, or the folder that the benchmark's own tool prepared."""
    competitions: tuple[str, ...] = ()
    """Ids; empty for the suite's own list."""
    leaderboards: Path | None = None
    """Folder with ``<id>/leaderboard.csv`` or ``<id>.csv``."""
    rules: Path | None = None
    """YAML file of further competitions and how they are graded."""
    grader: Literal["own", "official"] = "own"
    memory_mb: int = Field(default=16_384, gt=0)
    """Memory of one execution on real data."""
    not_in: tuple[Path, ...] = ()
    """Task sets that were trained on: tasks that share a seed with them are left out."""


@dataclass(frozen=True)
class SuiteTasks:
    """The tasks of a suite.

    Attributes:
        bundles: Tasks that can be run, by id.
        missing: Why a task of the suite cannot be run, one sentence by id.
        notes: What every report on the suite must say.
        task_notes: Known leaks and defects, by id.
    """

    bundles: Mapping[str, Bundle]
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    task_notes: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Suite(Protocol):
    """A benchmark. Made by its class from :class:`SuiteOptions`; reading happens in :meth:`load`."""

    name: ClassVar[str]
    takes: ClassVar[frozenset[str]]
    """Fields of :class:`SuiteOptions` beside ``data`` that it uses."""
    episode: ClassVar[Mapping[str, Any]]
    """Fields of ``EpisodeConfig`` that the benchmark sets, unless the user does."""

    def load(self) -> SuiteTasks:
        """Reads the suite's tasks.

        Raises:
            SandmleError: Nothing of the suite can be used at all.
        """
        ...

    def open_grader(self, bundle: Bundle) -> SubmissionGrader:
        """Returns the grader of one of the tasks.

        Raises:
            SandmleError: Its answers cannot be used.
        """
        ...

    def write_reports(self, run: Path) -> Sequence[Path]:
        """Writes what the benchmark's own tools expect of a finished run, and returns the files."""
        ...
