"""Bytes of a submission in, a :class:`GradeReport` out."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sandmle.errors import SandmleError
from sandmle.grading.answers import AnswerKey, Predictions
from sandmle.grading.metrics import CUSTOM, Metric, MetricUndefined
from sandmle.grading.rule import ScoringRule
from sandmle.grading.submission import SubmissionProblem, read_submission
from sandmle.grading.table import DEFAULT_CAPS, Caps
from sandmle.grading.thresholds import above_median, medal_of
from sandmle.records import GradeReport, GradeStatus, Medal
from sandmle.tasks import Bundle, load_bundle
from sandmle.tasks.bundle import ANSWERS_FILE

if TYPE_CHECKING:
    from sandmle.sandbox.base import Sandbox

_LOG = logging.getLogger(__name__)
Leaderboard = Literal["private", "public"]


class Grader:
    """Grades submissions of one task; the answers are read once.

    Args:
        bundle: The task.
        caps: Submissions larger than this are refused.
        key: The answers, if they are not those of the bundle's own ``private/answers.csv``.
        decimals: Digits that scores are rounded to before they are held against milestones; None for no rounding,
            which is the rule of this project's own tasks.
        sandbox: Where the evaluator script of a task with one runs; None opens a sandbox when it is first needed.

    Raises:
        BundleError: The task's answers are broken.
        ConfigError: The task's metric is unknown or does not fit.
    """

    def __init__(
        self,
        bundle: Bundle,
        caps: Caps = DEFAULT_CAPS,
        *,
        key: AnswerKey | None = None,
        decimals: int | None = None,
        sandbox: "Sandbox | None" = None,
    ) -> None:
        self.bundle = bundle
        self.key = key or AnswerKey.parse(
            ScoringRule.of(bundle.spec), bundle.read(ANSWERS_FILE), _own_metric(bundle, sandbox)
        )
        self._caps = caps
        self._decimals = decimals
        self._parts = {part: self.key.subset(part) for part in ("private", "public")}

    @cached_property
    def _common(self) -> dict[str, Any]:
        spec = self.bundle.spec
        return {
            "task_id": spec.task_id,
            "task_hash": spec.task_hash,
            "metric": spec.metric,
            "direction": spec.direction,
            "thresholds": spec.thresholds,
        }

    def check(self, submission: bytes | None) -> SubmissionProblem | None:
        """Returns what is wrong with a submission, or None: valid here if and only if :meth:`grade` grades it."""
        outcome = self._read(submission)
        return outcome if isinstance(outcome, SubmissionProblem) else None

    def grade(self, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
        """Grades a submission. It never raises: whatever a submission does, and whatever breaks here, is a status.

        Args:
            submission: The file, or None when there is none.
            leaderboard: Which rows count for the score; the whole file is checked in any case.
        """
        if leaderboard not in self._parts:
            raise SandmleError(f"no leaderboard {leaderboard!r}; give private or public")
        report = self._grade(submission, leaderboard)
        return report if submission is None else report.replace(submission_sha256=sha256(submission).hexdigest())

    def _grade(self, submission: bytes | None, leaderboard: Leaderboard) -> GradeReport:
        outcome = self._read(submission)
        if isinstance(outcome, SubmissionProblem):
            return self._report(leaderboard, outcome.status, outcome.message)
        key = self._parts[leaderboard]
        try:
            score = key.score(outcome)
        except MetricUndefined as error:
            return self._report(leaderboard, GradeStatus.METRIC_UNDEFINED, f"the task is at fault: {error}")
        except Exception as error:  # any fault of a metric on an accepted file is ours, not the agent's
            return self._broke(leaderboard, error)
        spec = self.bundle.spec
        judged = score if self._decimals is None else round(score, self._decimals)
        medal = medal_of(judged, spec.thresholds, spec.direction)
        above = above_median(judged, spec.thresholds, spec.direction)
        reached = {Medal.NONE: "above the median" if above else "not above the median"}.get(medal, f"{medal} medal")
        return self._report(
            leaderboard,
            GradeStatus.GRADED,
            f"{spec.metric} {score:.6g} on {key.n_rows} {leaderboard} rows: {reached}",
            score=score,
            medal=medal,
            above_median=above,
            n_rows=key.n_rows,
        )

    def _read(self, submission: bytes | None) -> Predictions | SubmissionProblem:
        try:
            return read_submission(self.key, submission, self._caps)
        except Exception as error:  # a fault of the reader is ours
            _LOG.info("reading a submission of %s failed", self.bundle.task_id, exc_info=error)
            return SubmissionProblem(GradeStatus.GRADER_ERROR, _fault(error))

    def _broke(self, leaderboard: Leaderboard, error: Exception) -> GradeReport:
        _LOG.info("grading a submission of %s failed", self.bundle.task_id, exc_info=error)
        return self._report(leaderboard, GradeStatus.GRADER_ERROR, _fault(error))

    def _report(self, leaderboard: str, status: GradeStatus, message: str, **more: Any) -> GradeReport:
        return GradeReport(**self._common, leaderboard=leaderboard, status=status, message=message, **more)


@dataclass(frozen=True)
class GradeLine:
    """One line of a batch: a report, or why there is none."""

    task: Path
    submission: Path
    report: GradeReport | None = None
    error: str = ""


def grade(bundle: Bundle, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
    """Grades one submission; use :class:`Grader` to grade a task more than once.

    Raises:
        BundleError: The task's answers are broken.
        ConfigError: The task's metric is unknown or does not fit.
    """
    return Grader(bundle).grade(submission, leaderboard=leaderboard)


def grade_many(pairs: Iterable[tuple[Path, Path]], *, leaderboard: Leaderboard = "private") -> list[GradeLine]:
    """Grades submissions of several tasks, in order; one that cannot be graded never stops the others.

    Args:
        pairs: Task folder and submission file each.
        leaderboard: Which rows count.
    """
    lines = []
    graders: dict[Path, Grader] = {}
    for task, submission in pairs:
        try:
            if task not in graders:
                graders[task] = Grader(load_bundle(task))
            report = graders[task].grade(submission.read_bytes(), leaderboard=leaderboard)
            lines.append(GradeLine(task, submission, report))
        except OSError as error:
            lines.append(GradeLine(task, submission, error=f"cannot read submission {submission}: {error.strerror}"))
        except SandmleError as error:
            lines.append(GradeLine(task, submission, error=str(error)))
    return lines


def _own_metric(bundle: Bundle, sandbox: "Sandbox | None") -> Metric | None:
    """Returns the metric that a task brings as a script; None for one with a name."""
    spec = bundle.spec
    if spec.metric != CUSTOM:
        return None
    from sandmle.grading.custom import EVALUATOR_FILE, custom_metric  # here: few tasks need a sandbox to be graded

    source = bundle.read(EVALUATOR_FILE).decode(errors="replace")
    return custom_metric(source, spec.target, spec.direction, spec.metric_params, sandbox)


def _fault(error: Exception) -> str:
    # Only the kind of the error: its text might quote hidden answers.
    return f"the grader failed ({type(error).__name__}); this is not the submission's fault"
