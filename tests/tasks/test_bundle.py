import os
from pathlib import Path

import pytest

from sandmle.errors import BundleError
from sandmle.records import GateReport, Verdict
from sandmle.tasks import BundleDraft, check_bundle, find_bundles, load_bundle, write_bundle
from tests import bundles
from tests.bundles import draft, saved, with_file

DRAFT = bundles.draft("regression")


def test_a_bundle_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    written = write_bundle(DRAFT, tmp_path)
    loaded = load_bundle(tmp_path / DRAFT.spec.task_id)
    assert loaded.spec == written.spec == DRAFT.sealed_spec()
    assert {path: loaded.read(path) for path in DRAFT.files} == dict(DRAFT.files)
    assert loaded.paths() == sorted([*DRAFT.files, "task.yaml"])
    assert check_bundle(loaded.root) == []


def test_writing_twice_gives_the_same_bytes_and_times(tmp_path: Path) -> None:
    roots = [write_bundle(DRAFT, tmp_path / name).root for name in ("a", "b")]
    first, second = (
        [
            (str(path.relative_to(root)), path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(root.rglob("*.*"))
        ]
        for root in roots
    )
    assert first == second


def test_n01_all_files_have_the_same_time(tmp_path: Path) -> None:
    bundle = write_bundle(bundles.draft("image"), tmp_path)
    report = GateReport(task_id=bundle.task_id, task_hash=bundle.spec.task_hash, verdict=Verdict.VALID, checks=())
    bundle.save_gate_report(report)
    assert len({path.stat().st_mtime_ns for path in bundle.root.rglob("*") if path.is_file()}) == 1


@pytest.mark.parametrize("path", [*DRAFT.files])
def test_x05_one_flipped_byte_is_refused_with_the_files_name_and_both_digests(tmp_path: Path, path: str) -> None:
    bundle = write_bundle(DRAFT, tmp_path)
    data = bytearray((bundle.root / path).read_bytes())
    data[len(data) // 2] ^= 1
    (bundle.root / path).write_bytes(bytes(data))
    with pytest.raises(BundleError, match=f"{path} was changed: its SHA-256 is .*, task.yaml says "):
        load_bundle(bundle.root)
    assert load_bundle(bundle.root, verify=False).task_id == bundle.task_id


def test_n11_a_changed_spec_is_another_task() -> None:
    sealed = DRAFT.sealed_spec()
    assert sealed.task_hash != sealed.replace(title="Another").task_hash
    assert sealed.task_hash == sealed.replace().task_hash
    assert sealed.task_hash != with_file(DRAFT, "description.md", b"other").sealed_spec().task_hash
    older = sealed.provenance.replace(versions={"numpy": "1.26"})
    assert sealed.task_hash != sealed.replace(provenance=older).task_hash


def test_missing_and_extra_files_are_named(tmp_path: Path) -> None:
    bundle = write_bundle(DRAFT, tmp_path)
    (bundle.root / "public/test.csv").unlink()
    (bundle.root / "public/extra.csv").write_text("x")
    assert check_bundle(bundle.root) == ["public/test.csv is missing", "public/extra.csv is not named in task.yaml"]


@pytest.mark.parametrize("path", ["../outside.csv", "/etc/passwd", "task.yaml", "public/../../x"])
def test_a_draft_cannot_leave_its_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(BundleError, match="not a path inside a bundle"):
        write_bundle(with_file(DRAFT, path, b""), tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_a_draft_without_a_required_file_is_refused(tmp_path: Path) -> None:
    files = {path: data for path, data in DRAFT.files.items() if path != "private/answers.csv"}
    with pytest.raises(BundleError, match=r"lacks private/answers\.csv"):
        write_bundle(BundleDraft(DRAFT.spec, files), tmp_path)


def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot write task"):
        write_bundle(with_file(DRAFT, "public/" + "x" * 300, b""), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_replaces_an_earlier_one_of_its_id(tmp_path: Path) -> None:
    write_bundle(with_file(DRAFT, "public/old.txt", b"old"), tmp_path)
    bundle = write_bundle(DRAFT, tmp_path)
    assert not (bundle.root / "public/old.txt").exists()
    assert check_bundle(bundle.root) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema_version: 2", "schema_version 2; this release reads version 1"),
        ("- a\n- b", "schema_version None"),
        ("a: [", "is not YAML"),
        ("schema_version: 1\ntask_id: x\n", "title: Field required"),
        ("!!python/object/apply:os.system ['true']", "is not YAML"),
    ],
)
def test_a_foreign_spec_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "task.yaml").write_text(text)
    with pytest.raises(BundleError) as caught:
        load_bundle(tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert check_bundle(tmp_path) == [str(caught.value)]


def test_an_unknown_field_in_the_spec_is_refused(tmp_path: Path) -> None:
    bundle = write_bundle(DRAFT, tmp_path)
    with (bundle.root / "task.yaml").open("a") as file:
        file.write("colour: red\n")
    with pytest.raises(BundleError, match="colour"):
        load_bundle(bundle.root)


def test_bundles_are_found_in_order_and_hidden_ones_are_not(tmp_path: Path) -> None:
    for rng_seed in (2, 0, 1):
        write_bundle(bundles.draft("regression", rng_seed), tmp_path)
    (tmp_path / ".half").mkdir()
    (tmp_path / ".half/task.yaml").write_text("")
    (tmp_path / "other").mkdir()
    assert [path.name for path in find_bundles(tmp_path)] == [f"hand-regression-{n}" for n in (0, 1, 2)]
    assert find_bundles(tmp_path / "hand-regression-1") == [tmp_path / "hand-regression-1"]
    with pytest.raises(BundleError, match="no tasks in"):
        find_bundles(tmp_path / "other")
    with pytest.raises(BundleError, match="no folder"):
        find_bundles(tmp_path / "nowhere")


def test_a_gate_report_of_another_task_does_not_count(tmp_path: Path) -> None:
    bundle = write_bundle(DRAFT, tmp_path)
    report = GateReport(task_id=bundle.task_id, task_hash="0" * 64, verdict=Verdict.VALID, checks=())
    bundle.save_gate_report(report)
    assert bundle.gate_report() is None
    assert check_bundle(bundle.root) == []  # the report is not part of the task
    (bundle.root / "provenance/gate.json").write_text("{")
    assert bundle.gate_report() is None


def test_n08_the_bytes_do_not_depend_on_the_order_of_files(tmp_path: Path) -> None:
    turned = BundleDraft(DRAFT.spec, dict(reversed(DRAFT.files.items())))
    specs = [write_bundle(draft, tmp_path / name).root / "task.yaml" for name, draft in (("a", DRAFT), ("b", turned))]
    assert specs[0].read_bytes() == specs[1].read_bytes()


def test_a_bundle_is_readable_by_others_under_a_strict_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        bundle = write_bundle(DRAFT, tmp_path)
    finally:
        os.umask(before)
    assert bundle.root.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("line", ["b: 2020-13-45", f"n: {'9' * 5000}", "[" * 5000])
def test_yaml_that_python_cannot_read_is_one_sentence(tmp_path, line):
    bundle = saved(draft("binary"), tmp_path)
    (bundle.root / "task.yaml").write_text(line)
    with pytest.raises(BundleError, match="is not YAML"):
        load_bundle(bundle.root)


def test_a_file_changed_after_loading_is_not_read(tmp_path):
    bundle = saved(draft("binary"), tmp_path)
    bundle.answers_path.write_bytes(bundle.answers_path.read_bytes() + b" ")
    with pytest.raises(BundleError, match=r"private/answers\.csv was changed"):
        bundle.read("private/answers.csv")
