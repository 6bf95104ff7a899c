"""``sandmle generate --author llm``: what it refuses, what it shows before it asks, and a replay."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("pydantic_ai")


def generate(out, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    command = [sys.executable, "-m", "sandmle.cli.main", "generate", "--author", "llm", "--out", str(out), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs --model PROVIDER:NAME, or --replay shipped"),
        (["--model", "openai:gpt-5"], "give --count N"),
        (["--model", "openai:gpt-5", "--count", "1"], "openai:gpt-5 has no key: set OPENAI_API_KEY"),
        (["--replay", "nowhere"], "no folder nowhere"),
        (["--model", "openai:m", "--count", "1", "--prices", "1"], "--prices '1' is not two numbers"),
    ],
    ids=["no-model", "no-count", "no-key", "no-recordings", "prices"],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(arguments, message, tmp_path):
    done = generate(tmp_path / "out", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_dry_run_shows_prompt_and_price_and_asks_nobody(tmp_path):
    arguments = ("--model", "openai:gpt-4o", "--count", "10", "--seeds", "AI4Code", "--dry-run")
    done = generate(tmp_path / "out", *arguments)
    assert done.returncode == 0
    assert "Plan a task of this shape" in done.stdout
    assert "AI4Code" not in done.stdout.split("---", 2)[2]  # the model is shown the shape, not the seed
    for role in ("developer", "mlops", "writer", "reviewer"):
        assert f"--- the {role}'s prompt" in done.stdout
    assert "USD" in done.stdout
    found = json.loads(generate(tmp_path / "out", *arguments, "--json").stdout)
    assert found["estimate"]["n_tasks"] == 10
    assert found["estimate"]["usd"] > 0
    assert not (tmp_path / "out").exists()


@pytest.mark.sandbox
def test_a_replay_needs_no_model(needs_sandbox, tmp_path):
    done = generate(tmp_path / "out", "--replay", "shipped", "--seeds", "AI4Code", "--count", "1", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["losses"] == {"no_recording": 1}
    assert found["authoring"]["n_replies"] == 0
