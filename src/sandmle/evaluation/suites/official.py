"""Benchmarks' own graders, where their packages are installed: they decide, ours is asked too, differences are told."""

import tempfile
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from sandmle.env.feedback import Leaderboard
from sandmle.errors import ConfigError, GraderError
from sandmle.evaluation.suites.competitions import CompetitionBundle
from sandmle.evaluation.suites.rules import CompetitionRule
from sandmle.grading import Grader, SubmissionProblem, medal_of
from sandmle.grading.thresholds import above_median
from sandmle.records import GradeReport, GradeStatus, Medal, PredictionKind

DIFFERENCE = "differs from this project's grader"
"""Stands in the message of every grade on which the two graders do not agree."""


class OfficialMleBenchGrader:
    """Grades with ``mlebench``; thresholds, medals and validity are what its report says."""

    def __init__(self, own: Grader, competition: str, data: Path) -> None:
        """Opens a competition in mlebench's registry.

        Raises:
            ConfigError: ``mlebench`` is not installed, or does not know the competition.
        """
        self._own = own
        try:
            registry = import_module("mlebench.registry").registry
            self._grade_csv = import_module("mlebench.grade").grade_csv
        except ImportError as error:
            raise ConfigError(
                f"--grader official needs the package mlebench (from openai/mle-bench): {error}; or use --grader own"
            ) from error
        try:
            self._competition = registry.set_data_dir(data).get_competition(competition)
        except Exception as error:  # whatever a foreign package raises
            raise ConfigError(f"mlebench cannot open {competition}: {type(error).__name__}: {error}") from error

    def check(self, submission: bytes | None) -> SubmissionProblem | None:
        """Returns what our grader finds wrong with the form; it names row and column, which mlebench does not."""
        return self._own.check(submission)

    def grade(self, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
        """Grades a submission by mlebench.

        Raises:
            GraderError: mlebench itself failed.
        """
        own = self._own.grade(submission, leaderboard=leaderboard)
        if submission is None or leaderboard == "public":
            return own
        try:
            with tempfile.TemporaryDirectory(prefix="sandmle-grade-") as folder:
                path = Path(folder) / "submission.csv"
                path.write_bytes(submission)
                theirs = self._grade_csv(path, self._competition)
        except Exception as error:  # a malformed file stops mlebench outside its guard
            raise GraderError(f"mlebench failed on a submission ({type(error).__name__})") from error
        return merged(own, theirs)


def merged(own: GradeReport, theirs: Any) -> GradeReport:
    """Returns a grade with mlebench's verdict in our form.

    Args:
        own: Our grade of the same file.
        theirs: mlebench's ``CompetitionReport``.
    """
    medals = ((Medal.GOLD, theirs.gold_medal), (Medal.SILVER, theirs.silver_medal), (Medal.BRONZE, theirs.bronze_medal))
    medal = next((name for name, won in medals if won), Medal.NONE)
    valid = theirs.score is not None and theirs.score == theirs.score
    score = float(theirs.score) if valid else None
    status = GradeStatus.GRADED if valid else own.status if not own.is_valid else GradeStatus.BAD_VALUES
    ours = None if own.score is None else round(own.score, 5)
    same = ours == score and own.medal is medal and own.above_median == theirs.above_median
    message = own.message if same else f"mlebench: {score}, {medal}; {DIFFERENCE}: {ours}, {own.medal} ({own.message})"
    return own.replace(
        status=status, score=score, medal=medal, above_median=valid and bool(theirs.above_median), message=message
    )


def dojo_rule(competition: str) -> CompetitionRule:
    """Returns a stand-in rule for a competition that only MLE-Dojo's own code can grade: its direction, nothing more.

    Raises:
        ConfigError: ``mledojo`` is not installed, or has no metric for the competition.
    """
    metric = _dojo_metric(competition)
    return CompetitionRule(
        id=competition,
        answers="private/test_answer.csv",
        sample="public/sample_submission.csv",
        kind=PredictionKind.TEXT,
        # A text metric of the right direction: only the direction is ever used.
        metric="accuracy" if metric.higher_is_better else "error_rate",
    )


class OfficialDojoGrader:
    """Grades with MLE-Dojo's metric class: its check of the form, then its score."""

    def __init__(self, bundle: CompetitionBundle) -> None:
        """Opens the metric of a competition.

        Raises:
            ConfigError: ``mledojo`` is not installed, or has no metric for the competition.
        """
        self._bundle = bundle
        self._metric = _dojo_metric(bundle.rule.id)

    def check(self, submission: bytes | None) -> SubmissionProblem | None:
        """Returns what MLE-Dojo says is wrong with a submission."""
        if submission is None:
            return SubmissionProblem(GradeStatus.MISSING, "there is no submission.csv")
        try:
            frame = _frame(submission)
        except Exception as error:  # whatever pandas makes of hostile bytes
            return SubmissionProblem(GradeStatus.UNREADABLE, f"submission.csv cannot be read: {type(error).__name__}")
        try:
            self._metric.validate_submission(frame, self._answers())
        except Exception as error:  # MLE-Dojo's own refusal, or its check breaking on the file
            return SubmissionProblem(GradeStatus.BAD_VALUES, f"MLE-Dojo refuses submission.csv: {error}")
        return None

    def grade(self, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
        """Grades a submission by MLE-Dojo's metric.

        Raises:
            GraderError: The metric failed on a submission that passed its check.
        """
        spec = self._bundle.spec
        report = GradeReport(
            task_id=spec.task_id,
            task_hash=spec.task_hash,
            metric=f"mledojo:{self._bundle.rule.id}",
            direction=spec.direction,
            leaderboard=leaderboard,
            status=GradeStatus.METRIC_UNDEFINED,
            thresholds=spec.thresholds,
            message="the task is at fault: it has no public rows",
            submission_sha256=None if submission is None else sha256(submission).hexdigest(),
        )
        if leaderboard == "public":
            return report
        problem = self.check(submission)
        if problem is not None or submission is None:
            status = problem.status if problem else GradeStatus.MISSING
            return report.replace(status=status, message=problem.message if problem else "there is no submission.csv")
        try:
            score = float(self._metric.evaluate(self._answers(), _frame(submission)))
        except Exception as error:  # a foreign metric may raise anything
            raise GraderError(f"MLE-Dojo's metric failed ({type(error).__name__})") from error
        if score != score:
            return report.replace(message="the task is at fault: MLE-Dojo's metric gave NaN")
        return report.replace(
            status=GradeStatus.GRADED,
            score=score,
            medal=medal_of(score, spec.thresholds, spec.direction),
            above_median=above_median(score, spec.thresholds, spec.direction),
            message=f"MLE-Dojo's metric: {score:.6g}",
            n_rows=spec.n_private,
        )

    def _answers(self) -> Any:
        return _frame(self._bundle.answers_path.read_bytes())


def _frame(data: bytes) -> Any:
    import pandas as pd

    return pd.read_csv(BytesIO(data))


def _dojo_metric(competition: str) -> Any:
    try:
        module = import_module(f"mledojo.competitions.{competition}.utils.metric")
        base: type = import_module("mledojo.metrics.base").CompetitionMetrics
    except ImportError as error:
        raise ConfigError(
            f"--grader official needs the package mledojo (from MLE-Dojo/MLE-Dojo), with {competition}: {error}"
        ) from error
    kinds: list[Callable[[], Any]] = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__
    ]
    if len(kinds) != 1:
        raise ConfigError(f"mledojo has {len(kinds)} metrics for {competition}, not one; give a rule with --rules FILE")
    return kinds[0]()
