"""The bench of the scaffolds: what it finds wrong, and how the command ends. The slow test runs the real thing."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import ConfigError
from sandmle.evaluation.scaffold_bench import ScaffoldBench, ScaffoldCost, ScaffoldRow, run_scaffold_bench
from tests.bundles import draft, saved

FAKE = "tests.env.fakes:FakeSandbox"


def row(scaffold: str, **changes: Any) -> ScaffoldRow:
    values = {
        "scaffold": scaffold,
        "policy": "scripted:explorer",
        "n_episodes": 20,
        "n_valid": 20,
        "mean_reward": 0.8,
        "milestones": 3.0,
        "gain": None if scaffold == "react" else 0.0,
        "gain_error": None if scaffold == "react" else 0.1,
        "code_cpu_s": 100.0,
    }
    return ScaffoldRow(**{**values, **changes})


def bench(*rows: ScaffoldRow, overhead_cpu_s: float = 0.005) -> ScaffoldBench:
    cost = ScaffoldCost(scaffold="aide", n_steps=100, wall_s=60.0, overhead_cpu_s=overhead_cpu_s, overhead_wall_s=0.01)
    return ScaffoldBench(
        date="",
        machine="",
        workers=2,
        load_before=0,
        load_after=0,
        n_tasks=20,
        wall_s=60.0,
        rows=rows,
        costs=(cost,),
    )


def test_nothing_is_called_out_when_all_is_well() -> None:
    assert bench(row("react"), row("aide", gain=-0.1)).problems() == []


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (bench(row("react", n_valid=19)), "1 of 20 are not valid"),
        (bench(row("aide", gain=-0.2)), "more than a standard error (0.10) worse"),
        (
            bench(row("react"), overhead_cpu_s=0.021),
            "21.0 ms of CPU a step beyond model, code and grading, more than 20",
        ),
    ],
)
def test_what_is_wrong_is_named(report: ScaffoldBench, expected: str) -> None:
    (problem,) = report.problems()
    assert expected in problem


def test_the_command_measures_every_scaffold(tmp_path: Path) -> None:
    saved(draft("binary"), tmp_path / "set")
    args = ["bench", "scaffolds", "--tasks", str(tmp_path / "set"), "--engineer", "sample", "--sandbox", FAKE]
    result = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 1, result.output  # the fake runs no Python: nothing is handed in
    report = json.loads(result.stdout)
    assert [each["scaffold"] for each in report["rows"]] == ["react", "mle_agent", "aide", "aira"]
    assert all(each["n_valid"] == 0 for each in report["rows"])
    assert report["rows"][2]["gain"] == 0.0
    assert all(each["n_steps"] > 0 for each in report["costs"])
    assert sum("are not valid" in problem for problem in report["problems"]) == 4
    shown = CliRunner().invoke(app, [*args, "--count", "1"])
    assert "problem: scripted:sample under aide: 1 of 1 are not valid" in shown.stdout
    again = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "out")])
    assert isinstance(again.exception, ConfigError)
    assert "give a new folder" in str(again.exception)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="explorer"):
        run_scaffold_bench(tmp_path, tmp_path / "out", engineers=("explorre",))
    with pytest.raises(ConfigError, match="name at least one scaffold"):
        run_scaffold_bench(tmp_path, tmp_path / "out", scaffolds=())
