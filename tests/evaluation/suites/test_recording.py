"""Graded submissions are kept whole or not at all."""

from pathlib import Path

import pytest

from sandmle.errors import GraderError
from sandmle.evaluation.suites.recording import recording
from sandmle.grading import Grader
from tests.bundles import draft, saved


def test_a_full_disk_is_no_fault_of_the_agent_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, run = saved(draft("binary", n_private=1000), tmp_path / "tasks"), tmp_path / "run"
    grader = recording(Grader, run)(bundle)
    submission = bundle.read("public/sample_submission.csv")

    def refuse(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", refuse)
        with pytest.raises(GraderError, match=r"cannot keep the submission in .*: No space left on device"):
            grader.grade(submission)
    assert [path for path in run.rglob("*") if path.is_file()] == []
    assert grader.grade(submission).score is not None
    [kept] = [path for path in run.rglob("*") if path.is_file()]
    assert kept.read_bytes() == submission
