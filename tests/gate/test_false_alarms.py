"""Sound tasks drawn again and again must pass: the rate of false alarms of each check stays small."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sandmle.gate import STANDARD_CHECKS, run_gate
from sandmle.gate.association import FALSE_ALARM_RATE, strongest_correlation, strongest_neighbours
from sandmle.records import Verdict
from sandmle.sandbox import Sandbox, open_sandbox
from tests import bundles

# That the milestones of a hand-made task lie far enough apart is up to its draw, not to the check.
DRAWN = {"thresholds", "solver_reaches_median", "oracle_wins_gold"}


def alarms(kinds: tuple[str, ...], n_draws: int, folder: Path, sandbox: Sandbox | None = None) -> Counter[str]:
    counts: Counter[str] = Counter()
    for kind in kinds:
        for rng_seed in range(n_draws):
            report = run_gate(bundles.saved(bundles.draft(kind, 100 + rng_seed), folder), sandbox=sandbox)
            counts.update(loss.check for loss in report.losses())
            assert not any(result.verdict in (Verdict.ERROR, Verdict.TIMEOUT) for result in report.checks)
    return counts


def test_sound_tasks_raise_no_alarm(tmp_path: Path) -> None:
    counts = alarms(("binary", "multiclass", "regression", "text"), 4, tmp_path)
    assert {check: count for check, count in counts.items() if check not in DRAWN} == {}


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_rate_of_false_alarms_is_small_for_every_check(tmp_path: Path) -> None:
    n_draws = 60
    with open_sandbox() as sandbox:
        counts = alarms(bundles.KINDS, n_draws, tmp_path, sandbox)
    rates = {check.name: counts[check.name] / (n_draws * len(bundles.KINDS)) for check in STANDARD_CHECKS}
    print("false alarms:", {name: round(rate, 4) for name, rate in rates.items() if rate})
    assert all(rate <= (0.1 if name in DRAWN else 0.01) for name, rate in rates.items()), rates


def test_the_tests_of_association_keep_their_rate() -> None:
    rng = np.random.default_rng(5)
    n_alarms = 0
    n_runs = 400
    for _ in range(n_runs):
        n = int(rng.choice([60, 150]))
        cues = {f"cue {at}": rng.normal(size=n) if at % 2 else rng.integers(0, 2, n).astype(float) for at in range(6)}
        views = {
            "value": rng.gamma(0.5, size=n),
            "rare": (rng.random(n) < 0.1).astype(float),
            "half": rng.integers(0, 2, n) * 1.0,
        }
        for found in (strongest_correlation(cues, views), strongest_neighbours(cues, views)):
            n_alarms += found.corrected < 0.01
    assert n_alarms / (2 * n_runs) < 0.025  # 0.01 is nominal; the limit in use is far lower
    assert FALSE_ALARM_RATE == 1e-4
