"""Every file of examples/ runs as its own text says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bundles import draft, saved

EXAMPLES = Path(__file__).parent.parent / "examples"


def _run(name: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_examples_are_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "grade_a_submission.py",
        "make_and_check_a_task.py",
        "own_policy.py",
    }


def test_grade_a_submission(tmp_path):
    task = saved(draft("binary"), tmp_path)
    out = _run("grade_a_submission.py", task.root, task.root / "public" / "sample_submission.csv")
    assert "graded" in out
    assert "medal none" in out


@pytest.mark.sandbox
def test_own_policy(tmp_path):
    task = saved(draft("binary"), tmp_path)
    out = _run("own_policy.py", task.root)
    assert "ended: submitted, reward 0.4" in out


@pytest.mark.sandbox
def test_make_and_check_a_task(tmp_path):
    out = _run("make_and_check_a_task.py", tmp_path)
    assert "gate: valid" in out
    assert [path for path in tmp_path.iterdir() if (path / "task.yaml").is_file()]
