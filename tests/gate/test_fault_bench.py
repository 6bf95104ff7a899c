"""The harness that measures the gate: faults are put in, cheaters are scored, and what must be found is."""

from pathlib import Path

import numpy as np
import pytest

from sandmle.gate import GateContext
from sandmle.gate.faults import FAULTS, summarize_trials, try_faults
from sandmle.gate.faults.base import draw_leak
from sandmle.grading.thresholds import medal_of
from sandmle.records import Medal
from tests import bundles


@pytest.mark.parametrize(
    "kind", ["binary", pytest.param("regression", marks=pytest.mark.slow), pytest.param("text", marks=pytest.mark.slow)]
)
def test_all_faults_at_full_strength_are_found(kind: str, tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft(kind), tmp_path)
    trials = try_faults(bundle, strengths=(1.0,))
    assert not trials[0].is_found
    missed = [trial.fault for trial in trials[1:] if trial.must_find and not trial.is_found]
    assert missed == []
    assert sum(trial.must_find for trial in trials) >= 14


def test_faults_in_media_files_are_found(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("image", n_private=1000), tmp_path)
    names = ("file_names", "file_times", "file_sizes", "png_text", "exif")
    trials = try_faults(bundle, faults=names, strengths=(1.0,))
    assert [trial.fault for trial in trials[1:]] == list(names)
    assert all(trial.must_find and {*trial.found_by} & {*FAULTS[trial.fault].checks} for trial in trials[1:])


def test_a_whole_leak_wins_gold_and_none_wins_nothing(tmp_path: Path) -> None:
    for kind in ("binary", "regression", "multiclass", "text"):
        context = GateContext(bundles.saved(bundles.draft(kind), tmp_path), "calibrated")
        for strength, wanted in ((1.0, Medal.GOLD), (0.0, Medal.NONE)):
            leak = draw_leak(context, strength, np.random.default_rng(1))
            assert leak is not None
            score = context.private_key.score(leak.cheat)
            assert medal_of(score, context.spec.thresholds, context.spec.direction) is wanted


def test_the_summary_counts_by_fault_and_by_check(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("regression"), tmp_path)
    trials = try_faults(bundle, faults=("row_order", "slow_reference"), strengths=(0.25, 1.0))
    summary = summarize_trials(trials)
    assert [(row["fault"], row["strength"]) for row in summary["faults"]] == [
        ("row_order", 0.25),
        ("row_order", 1.0),
        ("slow_reference", 0.25),
        ("slow_reference", 1.0),
    ]
    assert summary["faults"][-1]["found_by"] == {"running_time": 1}
    assert summary["faults"][-2]["n_must"] == 0
    assert summary["n_clean"] == 1
    assert summary["false_alarms"]["order_leaks"] == 0
    assert summary["n_must"] == summary["n_must_found"]
    assert try_faults(bundle, faults=("row_order", "slow_reference"), strengths=(0.25, 1.0)) == trials
