"""Benchmarks' own graders, where their packages are installed: they decide, ours is asked too, differences are told."""

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from sandmle.env.feedback import Leaderboard
from sandmle.errors import ConfigError, GraderError
from sandmle.grading import Grader, SubmissionProblem
from sandmle.records import GradeReport, GradeStatus, Medal

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
