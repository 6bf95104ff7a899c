import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from sandmle.gate import STANDARD_CHECKS, Check, Finding, GateContext, run_gate
from sandmle.records import Verdict
from sandmle.tasks import BundleDraft
from tests import bundles
from tests.gate.plain import PlainSandbox


def data_files(draft: BundleDraft) -> Mapping[str, bytes]:
    return {path: data for path, data in draft.files.items() if path.startswith(("public/", "private/"))}


@pytest.mark.parametrize("kind", ["multiclass", "text", "image"])  # the others: test_false_alarms
def test_a_sound_hand_made_task_passes_every_check(kind: str, tmp_path: Path) -> None:
    draft = bundles.draft(kind)
    report = run_gate(bundles.saved(draft, tmp_path), sandbox=PlainSandbox(), regenerate=lambda: data_files(draft))
    assert report.losses() == ()
    assert report.verdict is Verdict.VALID
    assert [result.check for result in report.checks] == [check.name for check in STANDARD_CHECKS]


def test_two_runs_of_the_gate_write_the_same_bytes(tmp_path: Path) -> None:
    draft = bundles.draft("multiclass", 3)
    written = []
    for name in ("first", "second"):
        bundle = bundles.saved(draft, tmp_path / name)
        bundle.save_gate_report(run_gate(bundle, sandbox=PlainSandbox(), regenerate=lambda: data_files(draft)))
        written.append((bundle.root / "provenance/gate.json").read_bytes())
    assert written[0] == written[1]
    json.loads(written[0], parse_constant=pytest.fail)


def test_n14_threads_change_nothing(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("binary", 1), tmp_path)
    reports = []
    for n_threads in (1, 8):
        with threadpool_limits(n_threads):
            reports.append(run_gate(bundle).to_json())
    assert reports[0] == reports[1]


HASHED = """
import sys
from pathlib import Path
from sandmle.gate import run_gate
from sandmle.tasks import load_bundle
print(run_gate(load_bundle(Path(sys.argv[1]))).to_json())
"""


def test_n08_the_report_does_not_depend_on_pythonhashseed(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("text", 1), tmp_path)
    reports = {
        subprocess.run(
            [sys.executable, "-c", HASHED, str(bundle.root)],
            env={"PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "2")
    }
    assert reports == {run_gate(bundle).to_json() + "\n"}


def test_the_gate_report_is_found_again_and_belongs_to_the_task(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("regression"), tmp_path)
    report = run_gate(bundle)
    bundle.save_gate_report(report)
    assert bundle.gate_report() == report
    assert report.task_hash == bundle.spec.task_hash


def test_checks_without_what_they_need_are_left_out(tmp_path: Path) -> None:
    names = {result.check for result in run_gate(bundles.saved(bundles.draft("regression"), tmp_path)).checks}
    assert names.isdisjoint({"determinism", "solver_reaches_median", "running_time"})
    assert {"thresholds", "order_leaks"} <= names


def test_the_paper_preset_leaves_out_what_solvers_and_oracles_score(tmp_path: Path) -> None:
    report = run_gate(bundles.saved(bundles.draft("regression"), tmp_path), preset="paper")
    names = {result.check for result in report.checks}
    assert names.isdisjoint({"oracle_wins_gold", "trivial_submissions", "solver_reaches_median"})
    assert {"thresholds", "order_leaks", "disclosure"} <= names
    assert report.verdict is Verdict.VALID


def broken(context: GateContext) -> Finding:
    raise ValueError("a bug in a check")


def passing(context: GateContext) -> Finding:
    return Finding(True, value=float("nan"), limit=1 / 3)


def failing(context: GateContext) -> Finding:
    return Finding(False, "no good")


def hanging(context: GateContext) -> Finding:
    threading.Event().wait(2)
    return Finding(True)


def test_a_check_that_breaks_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("regression"), tmp_path)
    report = run_gate(bundle, checks=[Check("broken", broken), Check("passing", passing)])
    assert report.verdict is Verdict.ERROR
    assert report.checks[0].message == "ValueError: a bug in a check"
    assert report.checks[1].verdict is Verdict.VALID
    assert report.checks[1].value is None
    assert report.checks[1].limit == 0.333333


def test_a_check_that_hangs_is_a_timeout_and_the_gate_goes_on(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("regression"), tmp_path)
    start = time.monotonic()
    report = run_gate(bundle, checks=[Check("hanging", hanging, time_limit_s=0.05), Check("passing", passing)])
    assert time.monotonic() - start < 2
    assert report.verdict is Verdict.TIMEOUT
    assert [result.verdict for result in report.checks] == [Verdict.TIMEOUT, Verdict.VALID]


def test_an_invalid_check_outweighs_a_broken_one(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("regression"), tmp_path)
    report = run_gate(bundle, checks=[Check("broken", broken), Check("failing", failing)])
    assert report.verdict is Verdict.INVALID
    assert [loss.check for loss in report.losses()] == ["broken", "failing"]


def test_a_broken_bundle_is_asked_nothing_more(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("regression"), tmp_path)
    (bundle.root / "public/test.csv").write_bytes(b"record_id\n1\n")
    report = run_gate(bundle)
    assert report.verdict is Verdict.INVALID
    assert [result.check for result in report.checks] == ["bundle_integrity"]
    assert "public/test.csv was changed" in report.checks[0].message


def test_x05_one_flipped_byte_is_found_and_its_file_named(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("image"), tmp_path)
    victim = sorted((bundle.root / "public/images").iterdir())[7]
    data = bytearray(victim.read_bytes())
    data[-20] ^= 1
    victim.write_bytes(bytes(data))
    report = run_gate(bundle)
    assert report.verdict is Verdict.INVALID
    assert f"public/images/{victim.name} was changed" in report.checks[0].message


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b'a,"b\n1,2\n', b"x" * 1000])
@pytest.mark.parametrize("path", ["public/train.csv", "private/answers.csv", "public/sample_submission.csv"])
def test_rubbish_in_a_table_never_raises(path: str, data: bytes, tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.with_file(bundles.draft("regression"), path, data), tmp_path)
    assert run_gate(bundle, sandbox=PlainSandbox()).verdict in (Verdict.INVALID, Verdict.ERROR)


def test_gating_one_task_costs_little_cpu(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("binary"), tmp_path)
    run_gate(bundle)
    start = time.process_time()
    run_gate(bundle)
    assert time.process_time() - start < 1.5
