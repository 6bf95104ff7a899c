"""``reproduce``: tasks are made again from their provenance and compared byte by byte."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandmle.authoring.procedural.author import ProceduralAuthor
from sandmle.authoring.reproduction import reproduce_tasks
from sandmle.cli.main import app
from sandmle.seeds import load_seed
from sandmle.tasks import Bundle, write_bundle
from sandmle.tasks.bundle import SPEC_FILE, BundleDraft, dump_spec


@pytest.fixture
def task(tmp_path: Path) -> Bundle:
    return write_bundle(ProceduralAuthor(difficulty="easy").propose(load_seed("spaceship-titanic"), 4), tmp_path)


def outcome_of(task: Bundle) -> tuple[str, str]:
    ((_, found),) = reproduce_tasks([task.root])
    return found.outcome, found.reason


def test_a_task_is_made_again_byte_for_byte(task: Bundle) -> None:
    assert outcome_of(task) == ("same", "")


def test_a_changed_file_is_named(task: Bundle) -> None:
    files = {path: task.read(path) for path in task.spec.files}
    files["description.md"] += b"One more line.\n"
    write_bundle(BundleDraft(task.spec, files), task.root.parent)
    assert outcome_of(task) == ("differs", "description.md is not the same")


def test_a_changed_spec_is_seen(task: Bundle) -> None:
    spec = task.spec.replace(title="Another title")
    (task.root / SPEC_FILE).write_bytes(dump_spec(spec))
    assert outcome_of(task) == ("differs", "task.yaml is not the same")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"author_version": "0"}, "made with version 0 of its author"),
        ({"versions": {"numpy": "0.1"}}, "made with numpy 0.1"),
        ({"author": "llm"}, "made by 'llm', which draws nothing from a number alone"),
    ],
)
def test_what_cannot_be_made_here_is_left_out(task: Bundle, change: dict[str, object], reason: str) -> None:
    spec = task.spec.replace(provenance=task.spec.provenance.replace(**change))
    (task.root / SPEC_FILE).write_bytes(dump_spec(spec))
    assert outcome_of(task) == ("left_out", reason)


def test_the_command_counts(task: Bundle) -> None:
    result = CliRunner().invoke(app, ["reproduce", str(task.root), "--workers", "1"])
    assert result.exit_code == 0
    assert "1 of 1 tasks are the same, byte for byte" in result.output
