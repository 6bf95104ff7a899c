import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandmle.authoring.funnel import ProposalRecord, Stage, summarize
from sandmle.authoring.pipeline import GenerateProgress, GenerateRequest, chosen_seeds, generate, proposals_of
from sandmle.errors import BundleError, ConfigError, SeedError
from sandmle.records import Verdict
from sandmle.seeds import seed_ids
from sandmle.tasks import find_bundles, load_bundle
from tests.authoring import fake
from tests.authoring.fake import tree

MIXED = (*fake.SOUND, fake.REFUSED, fake.BUGGY, fake.PARTIAL, fake.LEAKY, fake.ONE_CLASS)


def request(
    seeds: tuple[str, ...] = MIXED, count: int = len(MIXED), author: str = "FakeAuthor", **more: object
) -> GenerateRequest:
    settings = {"preset": "paper", "sandbox": "tests.authoring.fake:IdleSandbox", **more}
    return GenerateRequest(seeds=seeds, count=count, author=f"tests.authoring.fake:{author}", **settings)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[ProposalRecord]]:
    out = tmp_path_factory.mktemp("mixed") / "set"
    return out, generate(request(), out)


def test_every_proposal_has_a_line_with_stage_and_reason(mixed: tuple[Path, list[ProposalRecord]]) -> None:
    out, records = mixed
    found = {record.proposal.seed_id: (record.stage, record.lost_to, record.reason) for record in records}
    assert [found[seed][0] for seed in fake.SOUND] == [Stage.GATE_PASSED] * 2
    assert found[fake.REFUSED] == (Stage.PROPOSED, "author", "this seed cannot be drawn")
    assert found[fake.BUGGY] == (Stage.PROPOSED, "author", "ZeroDivisionError: division by zero")
    assert found[fake.PARTIAL][:2] == (Stage.PROPOSED, "author")
    assert found[fake.LEAKY][:2] == (Stage.EVALUATOR_RAN, "order_leaks")
    assert found[fake.ONE_CLASS][:2] == (Stage.DATA_RAN, "evaluator_agrees")
    lines = [ProposalRecord.model_validate_json(line) for line in (out / "funnel.jsonl").read_text().splitlines()]
    assert lines == records


def test_the_summary_is_the_funnel_in_numbers(mixed: tuple[Path, list[ProposalRecord]]) -> None:
    out, records = mixed
    summary = json.loads((out / "summary.json").read_text())
    assert summary == summarize(records)
    assert summary["funnel"] == {"proposed": 7, "data_ran": 4, "evaluator_ran": 3, "gate_passed": 2}
    assert summary["losses"] == {"author": 3, "evaluator_agrees": 1, "order_leaks": 1}
    assert summary["acceptance"] == pytest.approx(2 / 7, abs=1e-6)
    assert all(record.cpu_s >= 0.25 for record in records if record.accepted)  # the sandbox's seconds count


def test_accepted_tasks_are_whole_and_carry_their_gate_report(mixed: tuple[Path, list[ProposalRecord]]) -> None:
    out, records = mixed
    folders = find_bundles(out / "tasks")
    assert len(folders) == 2
    for folder in folders:
        report = load_bundle(folder).gate_report()
        assert report is not None
        assert report.verdict is Verdict.VALID
        assert "determinism" in {result.check for result in report.checks}
    assert {record.task_hash for record in records if record.accepted} == {
        load_bundle(f).spec.task_hash for f in folders
    }
    assert sorted(path.name for path in out.iterdir()) == ["funnel.jsonl", "run.json", "summary.json", "tasks"]


@pytest.mark.ray
def test_n10_a_ray_cluster_makes_the_same_bytes(mixed: tuple[Path, list[ProposalRecord]], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    out, records = mixed
    command = [sys.executable, "-m", "tests.authoring.ray_generate", request().to_json(), str(tmp_path / "ray")]
    root = Path(__file__).parents[2]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.strip().splitlines()[-1])
    assert told["stages"] == [record.stage for record in records]
    assert tree(tmp_path / "ray" / "tasks") == tree(out / "tasks")
    assert "no Ray cluster at 'not-an-address'" in told["refused"]


def test_n10_task_k_is_the_same_alone_among_others_and_with_workers(
    mixed: tuple[Path, list[ProposalRecord]], tmp_path: Path
) -> None:
    out, _ = mixed
    generate(request(), tmp_path / "workers", workers=3)
    assert tree(tmp_path / "workers" / "tasks") == tree(out / "tasks")
    generate(request(fake.SOUND[1:], 1), tmp_path / "alone")
    alone = tree(tmp_path / "alone" / "tasks")
    assert len(alone) > 5
    assert alone.items() <= tree(out / "tasks").items()


def test_n10_numbers_depend_on_run_seed_and_place_among_the_seeds_proposals_only() -> None:
    everything = proposals_of(request(seed_ids(), 180))
    some = proposals_of(request(("spaceship-titanic", "AI4Code"), 6))
    by_name = {(p.seed_id, p.k): p.rng_seed for p in everything}
    assert {(p.seed_id, p.k): p.rng_seed for p in some}.items() <= by_name.items()
    assert len(set(by_name.values())) == 180
    assert [p.seed_id for p in everything[:60]] == list(seed_ids())
    assert proposals_of(request(count=1, rng_seed=1))[0].rng_seed != proposals_of(request(count=1))[0].rng_seed


@pytest.mark.parametrize("names", [["leaf-classification"], ["AI4Code", "aerial-cactus-identification"]])
def test_lite_seeds_are_refused_before_anything_is_written(names: list[str], tmp_path: Path) -> None:
    with pytest.raises(SeedError, match=f"'{names[-1]}' belongs to MLE-bench-Lite"):
        chosen_seeds(names)
    with pytest.raises(SeedError, match="MLE-bench-Lite"):
        generate(request(tuple(names)), tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_seeds_are_named_once_and_known() -> None:
    assert chosen_seeds(["all"]) == seed_ids()
    with pytest.raises(SeedError, match="did you mean"):
        chosen_seeds(["AI5Code"])
    with pytest.raises(ConfigError, match="given twice"):
        chosen_seeds(["AI4Code", "AI4Code"])
    with pytest.raises(ConfigError, match="no seeds"):
        chosen_seeds([])


def test_a_resumed_run_does_only_what_is_missing(mixed: tuple[Path, list[ProposalRecord]], tmp_path: Path) -> None:
    source, records = mixed
    out = tmp_path / "set"
    shutil.copytree(source, out)
    lines = (out / "funnel.jsonl").read_bytes().splitlines(keepends=True)
    (out / "funnel.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:40])  # the fourth line is torn
    (out / "summary.json").unlink()
    seen: list[GenerateProgress] = []
    again = generate(request(), out, resume=True, on_progress=seen.append)
    assert [progress.n_done for progress in seen] == [4, 5, 6, 7]
    assert [(r.proposal, r.stage, r.task_hash) for r in again] == [(r.proposal, r.stage, r.task_hash) for r in records]
    assert tree(out / "tasks") == tree(source / "tasks")
    assert len((out / "funnel.jsonl").read_text().splitlines()) == 7


def test_a_run_is_entered_only_on_purpose_and_under_its_configuration(mixed: tuple[Path, list[ProposalRecord]]) -> None:
    out, _ = mixed
    before = tree(out)
    with pytest.raises(ConfigError, match="--resume"):
        generate(request(), out)
    with pytest.raises(ConfigError, match=r"another rng_seed \(0, not 5\)"):
        generate(request(rng_seed=5), out, resume=True)
    with pytest.raises(ConfigError, match="another count"):
        generate(request(count=9), out, resume=True)
    assert tree(out) == before


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(ConfigError, match=r"holds letters\.txt"):
        generate(request(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


@pytest.mark.parametrize("kind", ["author", "sandbox"])
@pytest.mark.parametrize("name", ["os:getcwd", "os:path", "builtins:dict", "nosuch", "nosuch:x", ":x", "os:", ".x:y"])
def test_a_name_that_gives_nothing_is_refused_before_anything_is_written(tmp_path: Path, kind: str, name: str) -> None:
    if kind == "author":
        wanted = request().replace(author=name)
    else:
        wanted = request(sandbox=name)
    with pytest.raises(ConfigError, match=kind) as caught:
        generate(wanted, tmp_path / "set")
    assert repr(name) in str(caught.value)
    assert not (tmp_path / "set").exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Not a directory"):
        generate(request(), tmp_path / "file" / "set")


def test_a_disk_that_refuses_stops_the_run_and_loses_no_proposal(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="File name too long; free some space and go on with --resume"):
        generate(request(fake.SOUND, 2, author="FullDiskAuthor"), tmp_path / "set")
    assert (tmp_path / "set" / "funnel.jsonl").read_text() == ""


def test_two_proposals_of_one_id_are_one_task_and_one_loss(tmp_path: Path) -> None:
    records = generate(request((fake.SAME_ID,), 2), tmp_path / "set")
    assert [record.accepted for record in records] == [True, False]
    assert records[1].lost_to == "task_id"


def test_a_worker_that_dies_costs_one_proposal_and_is_tried_again_on_resume(tmp_path: Path) -> None:
    deadly = request((fake.SOUND[0], fake.DEADLY, fake.SOUND[1]), 3)
    records = generate(deadly, tmp_path / "set", workers=2)
    assert [record.accepted for record in records] == [True, False, True]
    assert records[1].is_fault
    assert "died" in records[1].reason
    seen: list[GenerateProgress] = []
    generate(deadly, tmp_path / "set", workers=2, resume=True, on_progress=seen.append)
    assert len(seen) == 1


def test_a_sandbox_that_breaks_is_a_fault_not_a_verdict(tmp_path: Path) -> None:
    broken = request(fake.SOUND, 1, sandbox="tests.authoring.fake:BrokenSandbox")
    records = generate(broken, tmp_path / "set")
    assert records[0].is_fault
    assert "the machine is on fire" in records[0].reason


def test_a_second_process_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "set"

    def intrude(progress: GenerateProgress) -> None:
        with pytest.raises(ConfigError, match="another process is writing"):
            generate(request(fake.SOUND, 2), out, resume=True)

    assert len(generate(request(fake.SOUND, 2), out, on_progress=intrude)) == 2


KILLED = """
import sys
from pathlib import Path
from tests.authoring.test_pipeline import request
from tests.authoring import fake
from sandmle.authoring.pipeline import generate
if __name__ == "__main__":
    generate(request(fake.SOUND, 8, author="SlowAuthor"), Path(sys.argv[1]), workers=int(sys.argv[2]), resume=True)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_kill_9_at_any_moment_loses_nothing(tmp_path: Path, workers: int) -> None:
    generate(request(fake.SOUND, 8, author="SlowAuthor"), tmp_path / "whole")
    script = tmp_path / "run.py"
    script.write_text(KILLED)
    out = tmp_path / "killed"
    root = Path(__file__).parents[2]
    n_kills = 0
    for wait_s in (0.4, 0.9):
        process = subprocess.Popen(
            [sys.executable, str(script), str(out), str(workers)], cwd=root, env={"PYTHONPATH": str(root), "PATH": ""}
        )
        start = time.monotonic()
        while not (out / "run.json").exists() and process.poll() is None and time.monotonic() - start < 60:
            time.sleep(0.02)
        n_lines = len((out / "funnel.jsonl").read_bytes().splitlines()) if (out / "funnel.jsonl").exists() else 0
        while n_lines < 8 and process.poll() is None and time.monotonic() - start < 90:
            now = len((out / "funnel.jsonl").read_bytes().splitlines()) if (out / "funnel.jsonl").exists() else 0
            if now > n_lines:
                break
            time.sleep(0.02)
        time.sleep(wait_s)
        n_kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        for folder in out.glob("tasks/*"):
            load_bundle(folder)  # whole, whenever the kill came
    assert n_kills >= 1
    deadline = time.monotonic() + 30
    while True:
        try:
            records = generate(request(fake.SOUND, 8, author="SlowAuthor"), out, resume=True)
            break
        except ConfigError:  # a worker of the killed run is still closing the file
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert [record.accepted for record in records] == [True] * 8
    assert tree(out / "tasks") == tree(tmp_path / "whole" / "tasks")
    assert not (out / ".staging").exists()
