"""What an agent learns about its submission: its form always, its score as far as the rules allow. Never raises."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from sandmle.env.config import EpisodeConfig
from sandmle.env.time_limit import OverLimit, within_cpu_limit
from sandmle.errors import GraderError
from sandmle.grammars.scan import clean_text
from sandmle.records import Direction, ExecResult, Failure, GradeReport, GradeStatus, Medal

if TYPE_CHECKING:
    from sandmle.grading.submission import SubmissionProblem

Leaderboard = Literal["private", "public"]
Answer = TypeVar("Answer")
_CANNOT_CHECK = "submission.csv is there; its form could not be checked."


class SubmissionGrader(Protocol):
    """What an episode needs of ``sandmle.grading.Grader``."""

    def grade(self, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
        """Grades a submission on the rows of one leaderboard."""
        ...

    def check(self, submission: bytes | None) -> "SubmissionProblem | None":
        """Returns what is wrong with the form of a submission, found by the same code that grades it."""
        ...


@dataclass(frozen=True)
class SubmissionView:
    """The state of submission.csv.

    Attributes:
        data: Contents of the last submission.csv that a script left; it is the one that counts.
        is_there: A regular submission.csv lay in the workspace after the last script.
        reason: Why it could not be taken.
    """

    data: bytes | None = None
    is_there: bool = False
    reason: str = ""

    def after(self, result: ExecResult, name: str) -> "SubmissionView":
        """Returns the state after a script, whatever way the script ended (case G41)."""
        found = next((file for file in result.files if file.name == name), None)
        if found is None or found.data is None:
            reason = "" if found is None or found.reason == "missing" else found.reason
            return SubmissionView(self.data, is_there=False, reason=reason)
        return SubmissionView(found.data, is_there=True)


@dataclass(frozen=True)
class ScoreAnswer:
    """The answer to a request for a score."""

    text: str
    score: float | None = None

    @property
    def was_shown(self) -> bool:
        """True when it used up one of the requests."""
        return self.score is not None


class Feedback:
    """Asks the grader, within a time limit, and says no more than the rules allow."""

    def __init__(self, grader: SubmissionGrader, config: EpisodeConfig) -> None:
        self._grader = grader
        self._config = config

    async def describe(self, submission: SubmissionView) -> str:
        """Returns one sentence on the form of submission.csv, without any score."""
        if not submission.is_there:
            missing = f"There is no usable submission.csv: {submission.reason}." if submission.reason else ""
            if submission.data is not None:
                return f"{missing or 'There is no submission.csv now.'} An earlier one still counts."
            return missing or "There is no submission.csv yet."
        problem, failure = await self._within_limit(lambda: self._grader.check(submission.data))
        if failure is not None or (problem is not None and problem.status.is_ours):
            return _CANNOT_CHECK
        if problem is None:
            return "submission.csv is there and has the right form."
        return f"submission.csv is there, but it is not valid: {clean_text(problem.message)}"

    async def problem(self, submission: SubmissionView) -> str:
        """Returns what is wrong with submission.csv, one sentence; empty when it may be handed in.

        A form that cannot be checked for a fault of ours is not held against the agent.
        """
        if not submission.is_there:
            return f"There is no usable submission.csv: {submission.reason or 'the script wrote none'}."
        problem, failure = await self._within_limit(lambda: self._grader.check(submission.data))
        if failure is not None or problem is None or problem.status.is_ours:
            return ""
        return f"submission.csv is there, but it is not valid: {clean_text(problem.message)}"

    async def show_score(self, submission: SubmissionView, n_left: int) -> ScoreAnswer:
        """Returns the score as far as the rules allow.

        Args:
            submission: The state of submission.csv.
            n_left: How many scores may still be shown.
        """
        config = self._config
        if submission.data is None or config.feedback == "none":
            form = await self.describe(submission)
            return ScoreAnswer(f"No scores are shown here. {form}" if config.feedback == "none" else form)
        if n_left <= 0:
            return ScoreAnswer("All requests for a score are used up.")
        report, _ = await self._ask(submission.data, "private" if config.feedback == "oracle" else "public")
        if report is None or report.status.is_ours:
            return ScoreAnswer("No score could be computed; this is not your fault.")
        if report.score is None:
            return ScoreAnswer(f"submission.csv is not valid: {clean_text(report.message)}")
        way = "higher" if report.direction is Direction.MAXIMIZE else "lower"
        left = f"Requests left: {n_left - 1}."
        if config.feedback == "oracle":
            return ScoreAnswer(f"{_oracle_text(report, way)} {left}", report.score)
        rows = "" if report.n_rows is None else f" on {report.n_rows} test rows that do not count for the final score"
        return ScoreAnswer(f"{report.metric}: {report.score:.6g} ({way} is better){rows}. {left}", report.score)

    async def final_grade(self, data: bytes | None) -> tuple[GradeReport | None, Failure | None]:
        """Grades on the private rows; a fault that is not the agent's comes back as a failure."""
        report, failure = await self._ask(data, "private")
        if report is not None and report.status is GradeStatus.METRIC_UNDEFINED:
            return report, Failure(boundary="task", message=report.message)
        if report is not None and report.status is GradeStatus.GRADER_ERROR:
            return report, Failure(boundary="grader", message=report.message)
        return report, failure

    async def _ask(self, data: bytes | None, leaderboard: Leaderboard) -> tuple[GradeReport | None, Failure | None]:
        return await self._within_limit(lambda: self._grader.grade(data, leaderboard=leaderboard))

    async def _within_limit(self, call: Callable[[], Answer]) -> tuple[Answer | None, Failure | None]:
        try:
            return await within_cpu_limit(call, self._config.grade_s), None
        except OverLimit as error:
            message = f"grading {error}"
        except GraderError as error:
            message = str(error)
        except Exception as error:  # any fault of a grader is ours and must not look like a bad agent (case G40)
            message = f"{type(error).__name__}: {error}"
        return None, Failure(boundary="grader", message=clean_text(message))


def _oracle_text(report: GradeReport, way: str) -> str:
    marks = report.thresholds
    reached = "no medal" if report.medal is Medal.NONE else f"a {report.medal} medal"
    return (
        f"{report.metric} on the final test rows: {report.score:.6g} ({way} is better), {reached}. "
        f"Median {marks.median.score:.6g}, bronze {marks.bronze.score:.6g}, silver {marks.silver.score:.6g}, "
        f"gold {marks.gold.score:.6g}."
    )
