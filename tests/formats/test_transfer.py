"""What all layouts have in common: every byte comes back, and nothing that was changed is taken."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sandmle.errors import BundleError, ConfigError
from sandmle.formats import LAYOUTS, Transfer, export_tasks, import_tasks, make_layout
from sandmle.grading import grade
from sandmle.tasks import check_bundle, load_bundle
from tests import bundles

KINDS = ("binary", "regression")


def test_media_folders_come_back(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("image", n_private=200), tmp_path / "tasks")
    out, _ = exported(tmp_path / "tasks", "harbor")
    (back,) = import_tasks(out, make_layout("harbor"), tmp_path / "back")
    assert load_bundle(Path(back.path)).spec == bundle.spec


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    for kind in KINDS:
        bundles.saved(bundles.draft(kind), tmp_path / "tasks")
    return tmp_path / "tasks"


def exported(tasks: Path, name: str) -> tuple[Path, list[Transfer]]:
    out = tasks.parent / name
    return out, list(export_tasks(tasks, make_layout(name), out))


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_byte_comes_back(name: str, tasks: Path) -> None:
    out, transfers = exported(tasks, name)
    assert [each.error for each in transfers] == [""] * len(KINDS)
    back = list(import_tasks(out, make_layout(name), tasks.parent / "back"))
    assert [each.error for each in back] == [""] * len(KINDS)
    for each in back:
        assert check_bundle(Path(each.path)) == []
        assert load_bundle(Path(each.path)).spec.task_hash == load_bundle(tasks / each.task).spec.task_hash


@pytest.mark.parametrize("name", LAYOUTS)
def test_equal_tasks_are_exported_as_equal_bytes(name: str, tasks: Path) -> None:
    out, _ = exported(tasks, name)
    again = tasks.parent / "again"
    list(export_tasks(tasks, make_layout(name), again))
    first, second = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (out, again)
    )
    assert first == second


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("which", ["train.csv", "answer", "task.yaml", "grader.zip", "package.json"])
def test_x05_a_flipped_byte_is_named_and_nothing_is_imported(name: str, which: str, tasks: Path) -> None:
    out, _ = exported(tasks, name)
    path = min(path for path in out.rglob("*") if path.is_file() and which in path.name)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    results = list(import_tasks(out, make_layout(name), tasks.parent / "back"))
    (bad,) = [each for each in results if each.error]
    assert path.name in bad.error
    assert not (tasks.parent / "back" / bad.task).exists()
    assert sum(not each.error for each in results) == len(KINDS) - 1


def test_n11_a_wrong_digest_names_both(tasks: Path) -> None:
    out, _ = exported(tasks, "harbor")
    path = min(out.rglob("test.csv"))
    expected = json.loads(min(out.rglob("package.json")).read_text())["files"][path.relative_to(out).as_posix()]
    path.write_bytes(path.read_bytes() + b"\n")
    error = next(each.error for each in import_tasks(out, make_layout("harbor"), tasks.parent / "back") if each.error)
    assert expected[:12] in error
    assert len(error.split("...")) == 3


def test_a_task_that_is_there_is_not_replaced(tasks: Path) -> None:
    out, _ = exported(tasks, "harbor")
    _, again = exported(tasks, "harbor")
    assert all("is there already" in each.error for each in again)
    assert all("is there already" in each.error for each in import_tasks(out, make_layout("harbor"), tasks))


def test_a_broken_task_does_not_stop_the_others(tasks: Path) -> None:
    (tasks / "hand-binary-0" / "public" / "train.csv").write_text("x")
    _, transfers = exported(tasks, "harbor")
    assert [bool(each.error) for each in transfers] == [True, False]
    assert "train.csv" in transfers[0].error


def test_unknown_layouts_and_empty_folders_are_refused(tasks: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'harbor'"):
        make_layout("harbour")
    with pytest.raises(BundleError, match="no tasks in the layout harbor"):
        list(import_tasks(tasks, make_layout("harbor"), tasks.parent / "back"))
    with pytest.raises(BundleError, match="no folder"):
        list(import_tasks(tasks / "none", make_layout("harbor"), tasks.parent / "back"))


def test_a_foreign_harbor_task_is_refused(tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "foreign" / "one").mkdir(parents=True)
    (tmp_path / "foreign" / "one" / "task.toml").write_text('schema_version = "1.1"\n')
    (refused,) = import_tasks(tmp_path / "foreign", make_layout("harbor"), tmp_path / "back")
    assert "was not exported by sandmle" in refused.error


def test_harbor_keeps_everything_hidden_out_of_the_agents_image(tasks: Path) -> None:
    out, _ = exported(tasks, "harbor")
    for task in out.iterdir():
        seen = {path.relative_to(task / "environment").as_posix() for path in (task / "environment").rglob("*.*")}
        assert not any("answers" in name or "grader" in name or "oracle" in name for name in seen)
        public = {
            f"input/{path}"
            for path in (
                p.relative_to(tasks / task.name / "public") for p in (tasks / task.name / "public").rglob("*.*")
            )
        }
        assert seen == public


@pytest.mark.parametrize("entry", ["oracle", "sample", "missing", "broken"])
def test_harbors_verifier_gives_our_grade(entry: str, tasks: Path, tmp_path: Path) -> None:
    out, _ = exported(tasks, "harbor")
    bundle = load_bundle(tasks / "hand-regression-0")
    data = {
        "oracle": bundle.read("private/oracle.csv"),
        "sample": bundle.read("public/sample_submission.csv"),
        "broken": b"record_id,wear\n",
        "missing": None,
    }[entry]
    if data is not None:
        (tmp_path / "submission.csv").write_bytes(data)
    command = [sys.executable, str(out / bundle.task_id / "tests" / "grade.py")]
    command += [str(tmp_path / "submission.csv"), str(tmp_path / "reward.json")]
    subprocess.run(command, check=True, capture_output=True)
    rewards = json.loads((tmp_path / "reward.json").read_text())
    report = grade(bundle, data)
    assert rewards.get("score") == report.score
    assert rewards["reward"] == {"oracle": 1.0, "sample": 0.2}.get(entry, 0.0)
    assert rewards["gold"] == float(report.medal == "gold")
