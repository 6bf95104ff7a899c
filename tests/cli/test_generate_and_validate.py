"""The commands ``sandmle generate`` and ``sandmle validate``."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandmle.authoring.pipeline import TASKS_DIR
from sandmle.cli.main import app
from sandmle.errors import BundleError, SeedError
from tests import bundles
from tests.authoring import fake

RUNNER = CliRunner()
FAKE = ["--author", "tests.authoring.fake:FakeAuthor", "--preset", "paper", "--workers", "1"]
IDLE = ["--sandbox", "tests.authoring.fake:IdleSandbox"]
PLAIN = ["--sandbox", "tests.gate.plain:PlainSandbox", "--workers", "1"]


def generated(out: Path, *seeds: str) -> list[str]:
    return ["generate", "--seeds", ",".join(seeds), "--count", str(len(seeds)), "--out", str(out), *FAKE, *IDLE]


def test_generate_prints_the_funnel_and_each_loss(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, generated(tmp_path / "set", fake.SOUND[0], fake.LEAKY))
    assert result.exit_code == 0
    assert "kept 1 of 2 tasks" in result.output
    assert f"lost 2 ({fake.LEAKY}) to order_leaks: in train.csv, the row order tells 'wear'" in result.output


def test_generate_prints_json(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, [*generated(tmp_path / "set", fake.SOUND[0]), "--json"])
    assert json.loads(result.stdout)["funnel"]["gate_passed"] == 1


def test_generate_exits_with_1_when_nothing_is_kept(tmp_path: Path) -> None:
    assert RUNNER.invoke(app, generated(tmp_path / "set", fake.REFUSED)).exit_code == 1


def test_generate_refuses_lite_seeds_by_name(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, generated(tmp_path / "set", "leaf-classification"))
    assert isinstance(result.exception, SeedError)
    assert "leaf-classification" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def task_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    bundles.saved(bundles.draft("regression"), folder)
    frame = bundles.table(bundles.draft("binary"), "public/train.csv").sort_values("failed")
    bundles.saved(bundles.with_table(bundles.draft("binary"), "public/train.csv", frame), folder)
    (folder / "broken").mkdir()
    (folder / "broken/task.yaml").write_text("schema_version: 7\n")
    return folder


def test_validate_judges_hand_made_tasks_and_goes_on_after_a_broken_one(task_set: Path) -> None:
    result = RUNNER.invoke(app, ["validate", str(task_set), *PLAIN])
    assert result.exit_code == 1
    assert "valid    hand-regression-0: 21 of 21 checks passed" in result.output
    assert "order_leaks (invalid): in train.csv, the row order tells 'failed'" in result.output
    assert "schema_version 7" in result.output
    assert "1 of 3 tasks are valid" in result.output
    assert (task_set / "hand-regression-0/provenance/gate.json").is_file()


def test_validate_prints_json_and_no_sandbox_writes_nothing(task_set: Path, tmp_path: Path) -> None:
    shutil.copytree(task_set / "hand-regression-0", tmp_path / "one")
    (tmp_path / "one/provenance/gate.json").unlink(missing_ok=True)
    result = RUNNER.invoke(app, ["validate", str(tmp_path / "one"), "--no-sandbox", "--json"])
    assert result.exit_code == 0
    (task,) = json.loads(result.stdout)["tasks"]
    assert task["report"]["verdict"] == "valid"
    assert "not made again" in task["note"]
    assert not (tmp_path / "one/provenance/gate.json").exists()


def test_validate_takes_what_generate_made(tmp_path: Path) -> None:
    RUNNER.invoke(app, generated(tmp_path / "set", *fake.SOUND))
    result = RUNNER.invoke(app, ["validate", str(tmp_path / "set"), "--no-sandbox"])
    assert "2 of 2 tasks are valid" in result.output
    assert len(list((tmp_path / "set" / TASKS_DIR).iterdir())) == 2


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_validate_needs_tasks(path: str, tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["validate", str(tmp_path / path)])
    assert isinstance(result.exception, BundleError)
