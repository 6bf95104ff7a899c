"""The commands as a user meets them, with a sandbox that runs no code."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import BundleError, ConfigError
from sandmle.rollouts import read_trajectories
from sandmle.tasks import Bundle
from tests.policies.server import Reply, Server, fails, says

FAKE = "tests.env.fakes:FakeSandbox"
SUBMIT_SAMPLE = "```python\nsubmit sample_submission.csv\n```"


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    file = tmp_path / "replies.json"
    file.write_text(json.dumps([SUBMIT_SAMPLE, "```python\nsleep 0.01\n```", "SUBMIT"]))
    return file


def rollout_args(bundle: Bundle, replies: Path, out: Path, *more: str) -> list[str]:
    args = ["rollout", "--tasks", str(bundle.root), "--policy", f"canned:{replies}", "--out", str(out)]
    return [*args, "--grammar", "fenced", "--sandbox", FAKE, *more]


def invoke(*args: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, list(args), input=text)


def test_rollout_prints_a_summary_and_json(bundle: Bundle, replies: Path, tmp_path: Path) -> None:
    plain = invoke(*rollout_args(bundle, replies, tmp_path / "a", "--attempts", "2"))
    assert plain.exit_code == 0, plain.output
    assert "2 episodes, mean reward 0.400, valid 2" in plain.stdout
    assert "episodes: 2/2" in plain.stderr
    assert "mean reward 0.400" in plain.stderr
    strict = invoke(*rollout_args(bundle, replies, tmp_path / "b", "--json"))
    assert strict.exit_code == 0
    assert json.loads(strict.stdout)["policies"][f"canned:{replies}"]["mean_reward"] == 0.4
    assert strict.stderr == ""
    again = invoke(*rollout_args(bundle, replies, tmp_path / "b", "--json", "--resume"))
    assert json.loads(again.stdout)["n_episodes"] == 1


def test_rollout_exits_1_when_the_machinery_failed(bundle: Bundle, tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_text(json.dumps(["```python\nboom\n```"]))
    result = invoke(*rollout_args(bundle, file, tmp_path / "run"))
    assert result.exit_code == 1
    assert "the fork server died" in result.stdout


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        (["--feedback", "all"], ConfigError, "episode.feedback"),
        (["--reward", "papers"], ConfigError, "episode.reward"),
        (["--grammar", "fence"], ConfigError, "did you mean 'fenced'"),
        (["--scaffold", "reakt"], ConfigError, "did you mean 'react'"),
        (["--scaffold", "aide", "--scaffold-option", "num_draft=3"], ConfigError, "did you mean 'num_drafts'"),
        (["--scaffold", "aide", "--scaffold-option", "num_drafts=0"], ConfigError, "num_drafts"),
        (["--scaffold", "aide", "--scaffold-option", "num_drafts"], ConfigError, "write KEY=VALUE"),
        (["--scaffold", "aide", "--scaffold-option", "num_drafts=["], ConfigError, "cannot be read"),
        (["--scaffold-option", "num_drafts=3"], ConfigError, "has no options"),
        (["--cost-budget", "1"], ConfigError, "--prompt-price"),
        (["--policy", "scriptd:x"], ConfigError, "did you mean 'scripted'"),
        (["--sandbox", "forkserv"], ConfigError, "did you mean 'forkserver'"),
        (["--tasks", "/no/such/folder"], BundleError, "/no/such/folder"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    bundle: Bundle, replies: Path, tmp_path: Path, more: list[str], error: type[Exception], words: str
) -> None:
    result = invoke(*rollout_args(bundle, replies, tmp_path / "run", *more))
    assert isinstance(result.exception, error)
    assert words in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_r08_a_chat_run_with_some_broken_replies_finishes(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    broken = iter([fails(401), fails(400), Reply(reset=True), fails(503, Retry_After="0.01")])

    def script(number: int, body: dict[str, Any]) -> Reply:
        if len(body["messages"]) == 2 and number % 2 == 0:
            return next(broken, says(SUBMIT_SAMPLE))
        return says("SUBMIT" if len(body["messages"]) > 2 else SUBMIT_SAMPLE, usage={"completion_tokens": 3})

    out = tmp_path / "run"
    with Server(script).running() as server:
        args = ["rollout", "--tasks", str(bundle.root), "--policy", "chat:m", "--base-url", server.url]
        args += ["--grammar", "fenced", "--sandbox", FAKE, "--attempts", "8", "--out", str(out), "--json"]
        result = invoke(*args)
    assert result.exit_code == 1, result.output
    summary = json.loads(result.stdout)
    numbers = summary["policies"]["chat:m"]
    assert numbers["statuses"] == {"policy_error": 2, "submitted": 6}
    assert numbers["mean_reward"] == pytest.approx(0.4)
    assert numbers["usage"]["retries"] == 2
    assert sorted(line["message"].split("answered ")[1][:3] for line in summary["failures"]) == ["400", "401"]


def command_line(args: list[str]) -> list[str]:
    return [sys.executable, "-m", "sandmle.cli.main", *args]


def contents(out: Path) -> list[dict[str, Any]]:
    made = []
    for trajectory in sorted(read_trajectories(out), key=lambda each: each.key):
        plain = trajectory.to_dict()
        made.append({**plain, "wall_s": 0, "model_s": 0, "steps": [{**step, "model_s": 0} for step in plain["steps"]]})
    return made


@pytest.mark.slow
def test_a_rollout_killed_at_any_moment_resumes_to_the_same_contents(
    bundle: Bundle, replies: Path, tmp_path: Path
) -> None:
    def args(out: Path) -> list[str]:
        return command_line(rollout_args(bundle, replies, out, "--attempts", "40", "--workers", "2", "--json"))

    subprocess.run(args(tmp_path / "whole"), check=True, stdout=subprocess.DEVNULL)
    out = tmp_path / "killed"
    dice = random.Random(1)
    for _ in range(6):
        process = subprocess.Popen([*args(out), "--resume"], stdout=subprocess.DEVNULL)
        time.sleep(dice.uniform(1.0, 3.5))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*args(out), "--resume"], check=True, stdout=subprocess.DEVNULL)
    assert contents(out) == contents(tmp_path / "whole")


def test_play_by_hand(bundle: Bundle) -> None:
    text = f"I try\n{SUBMIT_SAMPLE}\n.\nSCORE\n.\nSUBMIT\n"
    result = invoke("play", str(bundle.root), "--sandbox", FAKE, text=text)
    assert result.exit_code == 0, result.output
    assert "Workshop records" in result.stdout
    assert "has the right form" in result.stdout
    assert "roc_auc: 0.5" in result.stdout
    assert "The episode ended: submitted." in result.stdout
    assert "Reward: 0.400" in result.stdout


def test_play_from_a_pipe(bundle: Bundle) -> None:
    orders = [
        json.dumps({"action": "run", "code": "submit oracle.csv\nprint \ud800"}),
        "not json",
        '{"action": "dance"}',
        "[]",
        json.dumps({"reply": "x" * 1_000_000}),
        json.dumps({"reply": "\x00\ud800"}),
        json.dumps({"action": "score"}),
        json.dumps({"action": "finish"}),
        json.dumps({"action": "score"}),
    ]
    result = invoke("play", str(bundle.root), "--sandbox", FAKE, "--json", text="\n".join(orders))
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    kinds = ["reset", "step", "error", "error", "error", "step", "step", "step", "step", "result"]
    assert [line["type"] for line in lines] == kinds
    assert lines[7]["record"]["feedback_score"] > 0.8
    assert lines[-2]["terminated"]
    assert lines[-1]["grade"]["medal"] == "gold"
    assert lines[-1]["reward"] == pytest.approx(0.1 * 3 / 5 + 0.9)


def test_play_survives_bytes_that_are_no_text(bundle: Bundle) -> None:
    args = command_line(["play", str(bundle.root), "--sandbox", FAKE])
    for more, data in ((["--json"], b'\xff\xfe\n{"reply": "\xff"}\n'), ([], b"\xff\x00\n.\n")):
        done = subprocess.run([*args, *more], input=data, capture_output=True, check=False)
        assert done.returncode == 1, done.stderr
        assert done.stderr == b""


def test_play_without_a_submission_exits_1(bundle: Bundle) -> None:
    result = invoke("play", str(bundle.root), "--sandbox", FAKE, "--json", text="")
    assert result.exit_code == 1
    assert json.loads(result.stdout.splitlines()[-1])["grade"]["status"] == "missing"


@pytest.mark.sandbox
@pytest.mark.usefixtures("needs_sandbox")
def test_a_real_episode_reads_inputs_and_reaches_no_answers(bundle: Bundle) -> None:
    answers = str(bundle.answers_path)
    code = (
        "import os, shutil\n"
        f"print(sorted(os.listdir('input')), os.path.exists('../private'), os.path.exists({answers!r}))\n"
        "try:\n    open('input/new', 'w')\nexcept OSError as error:\n    print('read-only', error.errno)\n"
        "shutil.copy('input/oracle.csv', 'submission.csv')\n"
        "open('kept.txt', 'w').write('1')\n"
    )
    orders = [
        {"action": "run", "code": code},
        {"action": "run", "code": "print('kept', open('kept.txt').read())\nraise ValueError('oops')"},
        {"action": "finish"},
    ]
    text = "\n".join(json.dumps(order) for order in orders)
    result = invoke("play", str(bundle.root), "--json", text=text)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert "['oracle.csv', 'sample_submission.csv', 'test.csv', 'train.csv'] False False" in lines[1]["observation"]
    assert "read-only" in lines[1]["observation"]
    assert "kept 1" in lines[2]["observation"]
    assert "ValueError: oops" in lines[2]["observation"]
    assert "exit code 1" in lines[2]["observation"]
    assert lines[2]["record"]["has_submission"]
    assert (lines[-1]["reward"], lines[-1]["grade"]["medal"]) == (1.0, "gold")


@pytest.mark.sandbox
@pytest.mark.usefixtures("needs_sandbox")
def test_g41_a_real_timeout_is_graded(bundle: Bundle, tmp_path: Path) -> None:
    code = "import shutil\nshutil.copy('input/oracle.csv', 'submission.csv')\nprint('written')\nwhile True: pass"
    file = tmp_path / "replies.json"
    file.write_text(json.dumps([f"```python\n{code}\n```"]))
    args = ["rollout", "--tasks", str(bundle.root), "--policy", f"canned:{file}", "--out", str(tmp_path / "run")]
    result = invoke(*args, "--grammar", "fenced", "--max-turns", "1", "--step-s", "1", "--workers", "1", "--json")
    assert result.exit_code == 0, result.output
    made = next(iter(read_trajectories(tmp_path / "run")))
    assert (str(made.steps[0].exec_status), str(made.status), made.reward) == ("timeout", "max_turns", 1.0)
    assert "written" in made.steps[0].observation


def test_rollout_of_a_search_keeps_no_journal_of_what_is_done(bundle: Bundle, tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_text(json.dumps(["```python\nsubmit oracle.csv\nprint Validation score: 1\n```"]))
    more = ["--scaffold", "aide", "--scaffold-option", "num_drafts=2", "--max-turns", "3"]
    result = invoke(*rollout_args(bundle, file, tmp_path / "run", *more))
    assert result.exit_code == 0, result.output
    [made] = read_trajectories(tmp_path / "run")
    assert (made.scaffold, [node.operator for node in made.nodes]) == ("aide", ["draft", "draft", "improve"])
    assert made.terms["gold"] == 1.0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["scaffold_options"] == {"num_drafts": 2}
    assert not (tmp_path / "run" / "journals").exists()


def test_rollout_of_a_search_goes_on_after_a_kill(bundle: Bundle, tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_text(json.dumps(["```python\nsubmit oracle.csv\nprint Validation score: 1\nsleep 0.2\n```"]))
    more = ["--scaffold", "aide", "--max-turns", "6"]
    args = rollout_args(bundle, file, tmp_path / "run", *more)
    process = subprocess.Popen([sys.executable, "-m", "sandmle.cli.main", *args], cwd=Path(__file__).parents[2])
    journals = tmp_path / "run" / "journals"
    deadline = time.monotonic() + 60
    while sum(len(each.read_bytes().splitlines()) for each in journals.glob("*.jsonl")) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    [journal] = journals.iterdir()
    n_kept = sum(line.endswith(b"\n") for line in journal.read_bytes().splitlines(keepends=True)) - 1
    assert 2 <= n_kept < 6
    result = invoke(*args, "--resume", "--json")
    assert result.exit_code == 0, result.output
    [made] = read_trajectories(tmp_path / "run")
    assert [node.index for node in made.nodes] == list(range(6))
    assert sum(step.exec_status is not None for step in made.steps) == 6
    assert not journals.exists()
