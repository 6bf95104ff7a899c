"""``sandmle bench sandbox``: the table, the page and the JSON; that figures are real is seen by running it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandmle.cli.bench import table_lines
from sandmle.cli.bench_page import write_page
from sandmle.cli.main import app
from sandmle.errors import ConfigError, SandboxError
from sandmle.sandbox.bench import BenchReport, BenchRow, measure, run_bench
from sandmle.sandbox.bench.entrants import ColdPython, Spent
from sandmle.sandbox.bench.workloads import workloads, write_inputs


class _Constant:
    def __init__(self, name: str, cpu_s: float, *, is_cold: bool = False) -> None:
        self.name, self.is_cold, self._cpu_s, self.runs = name, is_cold, cpu_s, 0

    def run(self, code: str, inputs: Path) -> Spent:
        del code
        assert (inputs / "train.csv").is_file()
        self.runs += 1
        return Spent(wall_s=2 * self._cpu_s, cpu_s=self._cpu_s)

    def other_cpu_s(self) -> float:
        return 0.001 * self.runs

    def server_mb(self) -> float | None:
        return None if self.is_cold else 120.04


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> BenchReport:
    import contextlib

    entrants = [_Constant("python (no walls)", 1.999, is_cold=True), _Constant("fast", 0.019)]
    monkeypatch.setattr(
        measure, "_entrants", lambda _: contextlib.nullcontext((entrants, ("json",), {"slow": "it is missing"}))
    )
    return run_bench(n=8)


def test_figures(report: BenchReport) -> None:
    rows = {(row.entrant, row.workload): row for row in report.rows}
    assert {workload for _, workload in rows} == {"empty", "linear", "lightgbm-cv", "stacking"}
    cold, fast = rows["python (no walls)", "empty"], rows["fast", "empty"]
    assert (cold.n, fast.n) == (3, 8)
    assert fast.cpu_median_s == pytest.approx(0.02)
    assert fast.wall_median_s == pytest.approx(0.038)
    assert fast.per_s_one_worker == pytest.approx(1 / 0.038)
    assert fast.cpu_ratio == pytest.approx(1.999 / 0.02)
    assert report.server_mb == {"fast": 120.0}


def test_table_and_page(report: BenchReport, tmp_path: Path) -> None:
    lines = table_lines(report)
    assert len({line.count("|") for line in lines}) == 1
    write_page(report, tmp_path / "bench.md", lines, "sandmle bench sandbox --n 8")
    text = (tmp_path / "bench.md").read_text()
    for words in (*lines, report.date, "sandmle bench sandbox --n 8", "(bench.svg)", "slow: it is missing", "120 MB"):
        assert words in text
    assert "<svg" in (tmp_path / "bench.svg").read_text()


def test_command_prints_json_and_a_table(report: BenchReport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandmle.sandbox.bench.run_bench", lambda **_: report)
    done = CliRunner().invoke(app, ["bench", "sandbox", "--json"])
    assert BenchReport.model_validate(json.loads(done.stdout)) == report
    plain = CliRunner().invoke(app, ["bench", "sandbox"]).stdout
    assert "| empty | fast | 8 | 20.0 |" in plain
    assert "not measured: slow: it is missing" in plain


def test_scripts_compile_and_inputs_are_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_inputs(tmp_path / name)
    assert all(
        (tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in ("train.csv", "test.csv")
    )
    for name, code in workloads(("json",)).items():
        compile(code, name, "exec")


def test_cold_python_is_measured_by_the_kernel(tmp_path: Path) -> None:
    spent = ColdPython(None).run("while __import__('time').process_time() < 0.3: pass", tmp_path)
    assert 0.3 <= spent.cpu_s < 2
    with pytest.raises(SandboxError, match="ZeroDivisionError"):
        ColdPython(None).run("1 / 0", tmp_path)


def test_number_of_runs_is_checked() -> None:
    with pytest.raises(ConfigError, match="give 1 or more"):
        run_bench(n=0)


@pytest.mark.slow
@pytest.mark.sandbox
def test_everything_that_runs_here_is_measured() -> None:
    report = run_bench(n=1)
    entrants = {row.entrant for row in report.rows}
    assert "python (no walls)" in entrants
    assert len(report.rows) == 4 * len(entrants)
    assert all(row.cpu_median_s > 0 for row in report.rows)
    assert isinstance(report.rows[0], BenchRow)
