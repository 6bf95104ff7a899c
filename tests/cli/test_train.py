"""``sandmle train`` as a user meets it: the whole path of ci-tiny, demonstrations, plans, mistakes."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import UserError
from sandmle.tasks import Bundle
from tests.bundles import draft, saved

FAKE = "tests.env.fakes:FakeSandbox"


def invoke(*args: str) -> Any:
    return CliRunner().invoke(app, list(args))


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    file = tmp_path / "replies.json"
    file.write_text(json.dumps(["```python\nsubmit oracle.csv\n```", "SUBMIT"]))
    return file


def test_from_demonstrations_to_a_trained_model(bundle: Bundle, replies: Path, tmp_path: Path) -> None:
    demos, held_out = tmp_path / "demos.jsonl", saved(draft("regression", n_private=1000), tmp_path / "held-out")
    rules = ("--recipe", "ci-tiny", "--sandbox", FAKE)
    recorded = invoke(
        *("rollout", "--tasks", str(bundle.root), "--policy", f"canned:{replies}", "--attempts", "2", *rules),
        *("--save-sft", str(demos), "--sft-min-reward", "0.9", "--sft-per-task", "1", "--out", str(tmp_path / "demos")),
    )
    assert recorded.exit_code == 0, recorded.output
    assert "wrote 1 of 2 episodes" in recorded.stderr
    (line,) = [json.loads(each) for each in demos.read_text().splitlines()]
    assert [message["role"] for message in line["messages"]] == ["system", "user", "assistant", "user", "assistant"]
    assert line["reward"] == 1.0

    taught = invoke("train", "sft", "ci-tiny", "--data", str(demos), "--out", str(tmp_path / "sft"), "--json")
    assert taught.exit_code == 0, taught.output
    assert json.loads(taught.stdout)["train_steps"] == 2

    trained = invoke(
        *("train", "grpo", "ci-tiny", "-o", f"model.source={tmp_path / 'sft/final'}", "-o", f"sandbox={FAKE}"),
        *("--tasks", str(bundle.root), "--validation", str(held_out.root), "--out", str(tmp_path / "grpo")),
    )
    assert trained.exit_code == 0, trained.output
    assert "2 train_steps in" in trained.stdout
    steps = [json.loads(each) for each in (tmp_path / "grpo/metrics.jsonl").read_text().splitlines()]
    assert [step["n_episodes"] for step in steps] == [4, 4]

    acted = invoke(
        *("rollout", "--tasks", str(held_out.root), "--policy", f"hf:{tmp_path / 'grpo/final'}", *rules),
        *("--out", str(tmp_path / "after"), "--json"),
    )
    assert acted.exit_code == 0, acted.output
    assert json.loads(acted.stdout)["n_episodes"] == 1
    (record,) = [json.loads(each) for each in (tmp_path / "after/trajectories.jsonl").read_text().splitlines()]
    assert len(record["completion_ids"]) == len(record["loss_mask"]) == len(record["logprobs"]) > 0


def test_a_plan_says_what_it_is_reckoned_from() -> None:
    result = invoke("train", "plan", "qwen3-8b", "--gpus", "4")
    assert result.exit_code == 0
    assert "episodes_per_train_step: 64" in result.stdout
    assert "reckoned from:" in result.stdout
    assert json.loads(invoke("train", "plan", "qwen3-8b", "--json").stdout)["numbers"]["hours"] > 0


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("plan", "qwen3-9b"), "did you mean"),
        (("plan", "qwen3-8b", "-o", "grpo.promts=3"), "did you mean 'prompts'"),
        (("sft", "ci-tiny", "--data", "nowhere.jsonl", "--out", "x"), "nowhere.jsonl"),
        (("grpo", "ci-tiny", "--tasks", "nowhere", "--out", "x"), "nowhere"),
    ],
)
def test_mistakes_are_one_sentence(args: tuple[str, ...], reason: str) -> None:
    result = invoke("train", *args)
    assert isinstance(result.exception, UserError)
    assert reason in str(result.exception)
    assert "\n" not in str(result.exception)


def metrics_of(out: Path) -> list[dict[str, Any]]:
    lines = [json.loads(each) for each in (out / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("time", "times")} for line in lines]


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_curve(bundle: Bundle, tmp_path: Path) -> None:
    def args(out: Path) -> list[str]:
        recipe = ("ci-tiny", "-o", f"sandbox={FAKE}", "-o", "grpo.train_steps=6", "-o", "grpo.eval_every=2")
        command = ("train", "grpo", *recipe, "--tasks", str(bundle.root), "--out", str(out), "--resume", "--json")
        return [sys.executable, "-c", "from sandmle.cli.main import main; main()", *command]

    subprocess.run(args(tmp_path / "whole"), check=True, stdout=subprocess.DEVNULL)
    out = tmp_path / "killed"
    for n_lines in (1, 3, 4):
        process = subprocess.Popen(args(out), stdout=subprocess.DEVNULL)
        while process.poll() is None and not ((out / "metrics.jsonl").exists() and len(metrics_of(out)) >= n_lines):
            time.sleep(0.02)
        process.kill()
        process.wait()
    subprocess.run(args(out), check=True, stdout=subprocess.DEVNULL)
    assert metrics_of(out) == metrics_of(tmp_path / "whole")
