"""``sandmle eval`` as a user meets it, with a sandbox that runs no code."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import ConfigError
from sandmle.rollouts import read_trajectories
from sandmle.tasks import Bundle
from tests.bundles import draft, saved

FAKE = "tests.env.fakes:FakeSandbox"


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    file = tmp_path / "replies.json"
    file.write_text(json.dumps(["```python\nsubmit sample_submission.csv\n```", "SUBMIT"]))
    return file


@pytest.fixture
def task_set(bundle: Bundle, tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    shutil.copytree(bundle.root, folder / bundle.task_id)
    saved(draft("regression", n_private=1000), folder)
    return folder


def invoke(*args: str) -> Any:
    return CliRunner().invoke(app, list(args))


def eval_args(data: Path, replies: Path, out: Path, *more: str) -> list[str]:
    args = ["eval", "--suite", "synthetic", "--data", str(data), "--policy", f"canned:{replies}", "--out", str(out)]
    return [*args, "--grammar", "fenced", "--sandbox", FAKE, *more]


def test_eval_reports_and_keeps_every_graded_submission(task_set: Path, replies: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = invoke(*eval_args(task_set, replies, out, "--attempts", "2"))
    assert result.exit_code == 0, result.output
    assert "4/4" in result.stdout
    assert "whether these seeds were trained on is not known" in result.stdout
    config = json.loads((out / "run.json").read_text())
    assert config["suite"]["name"] == "synthetic"
    assert config["episode"]["max_turns"] == 30
    for trajectory in read_trajectories(out):
        assert trajectory.grade is not None
        digest = trajectory.grade.submission_sha256
        assert digest is not None
        kept = out / "submissions" / trajectory.task_id / f"{digest[:32]}.csv"
        assert kept.read_bytes() == (task_set / trajectory.task_id / "public/sample_submission.csv").read_bytes()


def test_a_broken_task_counts_and_is_run_once_it_is_mended(task_set: Path, replies: Path, tmp_path: Path) -> None:
    out, task = tmp_path / "run", task_set / "hand-regression-0"
    answers = (task / "private/answers.csv").read_bytes()
    (task / "private/answers.csv").write_bytes(answers + b"x")
    first = invoke(*eval_args(task_set, replies, out, "--json"))
    assert first.exit_code == 1, first.output
    assert "not run: task hand-regression-0" in first.stderr
    assert [line["boundary"] for line in json.loads(first.stdout)["failures"]] == ["task"]
    (task / "private/answers.csv").write_bytes(answers)
    second = invoke(*eval_args(task_set, replies, out, "--json", "--resume"))
    assert second.exit_code == 0, second.output
    assert json.loads(second.stdout)["failures"] == []
    report = invoke("report", str(out), "--json")
    assert json.loads(report.stdout)["policies"][0]["n_finished"] == 2


def test_tasks_of_seeds_that_were_trained_on_are_left_out(task_set: Path, replies: Path, tmp_path: Path) -> None:
    out, trained = tmp_path / "run", task_set / "hand-regression-0"
    result = invoke(*eval_args(task_set, replies, out, "--not-in", str(trained)))
    assert result.exit_code == 0, result.output
    assert json.loads((out / "run.json").read_text())["tasks"] == ["hand-binary-0"]
    assert "1 of 2 tasks left out: seen in training" in result.stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--suite", "syntetic"], "did you mean 'synthetic'"),
        (["--leaderboards", "x"], "takes no --leaderboards"),
        (["--competition", "nothing"], "no task nothing"),
        (["--competition", "@/no/such/file"], "/no/such/file"),
        (["--grader", "officious"], "grader"),
        (["--feedback", "all"], "episode.feedback"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    task_set: Path, replies: Path, tmp_path: Path, more: list[str], words: str
) -> None:
    result = invoke(*eval_args(task_set, replies, tmp_path / "run", *more))
    assert isinstance(result.exception, ConfigError)
    assert words in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "run").exists()
