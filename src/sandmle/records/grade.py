"""The outcome of grading one submission."""

from enum import StrEnum

from pydantic import Field

from sandmle.records.base import Record
from sandmle.records.dna import Direction
from sandmle.records.task import Thresholds


class GradeStatus(StrEnum):
    """Whether a submission has a score, and if not, who is to blame."""

    GRADED = "graded"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    WRONG_COLUMNS = "wrong_columns"
    BAD_IDS = "bad_ids"
    BAD_VALUES = "bad_values"
    METRIC_UNDEFINED = "metric_undefined"
    """The task's own answers give no number (one class only, say): the task's fault, masked in training."""
    GRADER_ERROR = "grader_error"
    """The grader broke: our fault, masked in training."""

    @property
    def is_ours(self) -> bool:
        """True when the failure is not the agent's, so that no reward may come of it."""
        return self in (GradeStatus.METRIC_UNDEFINED, GradeStatus.GRADER_ERROR)


class Medal(StrEnum):
    """The highest medal a score reaches."""

    NONE = "none"
    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


class BoardRank(Record):
    """Where a score stands on a human leaderboard, ties taking the best place."""

    board: str
    """``private`` or ``public``."""
    position: int = Field(ge=1)
    """1 + the teams that are strictly better."""
    n_teams: int = Field(ge=1)


class GradeReport(Record):
    """The grade of one submission on one part of the hidden rows."""

    task_id: str
    task_hash: str
    metric: str
    direction: Direction
    leaderboard: str = "private"
    """Which hidden rows were graded: ``private`` counts, ``public`` is feedback."""
    status: GradeStatus
    score: float | None = None
    """Value of the metric on those rows; None unless graded."""
    medal: Medal = Medal.NONE
    above_median: bool = False
    thresholds: Thresholds
    message: str = ""
    """One sentence: what is wrong, naming row and column, or what was reached."""
    n_rows: int | None = None
    """Rows graded; always all rows of that leaderboard."""
    submission_sha256: str | None = None
    """SHA-256 of the file that was graded; None when there was none."""
    board_ranks: tuple[BoardRank, ...] = ()
    """Places on human leaderboards, where the task has them."""

    @property
    def is_valid(self) -> bool:
        """True when the submission was graded."""
        return self.status is GradeStatus.GRADED
