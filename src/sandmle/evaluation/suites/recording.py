"""Keeps the bytes of every submission that counted, so that other graders can be asked about them later."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from sandmle.env.feedback import Leaderboard, SubmissionGrader
from sandmle.errors import GraderError
from sandmle.grading import SubmissionProblem
from sandmle.records import GradeReport
from sandmle.tasks import Bundle

SUBMISSIONS_DIR = "submissions"


def submission_path(run: Path, task_id: str, digest: str) -> Path:
    """Returns where a run keeps the submission with this SHA-256."""
    return run / SUBMISSIONS_DIR / task_id / f"{digest[:32]}.csv"


def recording(open_grader: Callable[[Bundle], SubmissionGrader], run: Path) -> Callable[[Bundle], SubmissionGrader]:
    """Returns an opener of graders that also keep what they grade on the private rows, one file a content."""
    return lambda bundle: _RecordingGrader(open_grader(bundle), run, bundle.task_id)


class _RecordingGrader:
    def __init__(self, grader: SubmissionGrader, run: Path, task_id: str) -> None:
        self._grader, self._run, self._task_id = grader, run, task_id

    def grade(self, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
        report = self._grader.grade(submission, leaderboard=leaderboard)
        if submission is not None and report.submission_sha256 is not None and leaderboard == "private":
            path = submission_path(self._run, self._task_id, report.submission_sha256)
            try:
                if not path.exists():
                    _write_whole(path, submission)
            except OSError as error:
                raise GraderError(f"cannot keep the submission in {path.parent}: {error.strerror}") from error
        return report

    def check(self, submission: bytes | None) -> SubmissionProblem | None:
        return self._grader.check(submission)


def _write_whole(path: Path, data: bytes) -> None:
    """Writes a file in one step, whoever else writes the same one meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
        scratch = Path(folder) / path.name
        scratch.write_bytes(data)
        scratch.replace(path)
