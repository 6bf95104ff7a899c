"""The quickstart: its seeds span modalities, and (slow) the whole loop gives the ladder of engineers it promises."""

import json
import subprocess
import sys

import pytest

from sandmle.cli.quickstart import SEEDS
from sandmle.seeds import load_seed


def test_twelve_seeds_over_at_least_three_modalities():
    seeds = [load_seed(name) for name in SEEDS]
    assert len({seed.id for seed in seeds}) == 12
    assert len({seed.dna.modalities[0] for seed in seeds}) >= 3


@pytest.mark.slow
@pytest.mark.sandbox
def test_rewards_rise_with_skill_and_gold_is_rare(tmp_path):
    out = tmp_path / "quickstart"
    command = [sys.executable, "-m", "sandmle.cli.main", "quickstart", "--out", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["n_tasks"] >= 10
    rows = {row["policy"].removeprefix("scripted:"): row for row in result["report"]["policies"]}
    rewards = [rows[name]["ranking_reward"]["mean"] for name in ("sample", "average", "linear", "boosted", "explorer")]
    assert rewards == sorted(rewards)
    assert rows["sample"]["at_least"]["bronze"]["mean"] == 0
    assert 0 < rows["explorer"]["at_least"]["gold"]["mean"] < 1
    assert (out / "report.html").stat().st_size > 100_000
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert json.loads(again.stdout)["report"]["policies"] == result["report"]["policies"]
