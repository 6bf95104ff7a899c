import re
from pathlib import Path

from rich.console import Console

from sandmle.evaluation.formats import NOTHING, error_text, interval_text, number_text, percent_text, plural
from sandmle.evaluation.render import render_markdown, render_table
from sandmle.evaluation.report import build_report
from sandmle.evaluation.schema import RunReport
from sandmle.evaluation.statistics import estimate_attempts, estimate_mean, estimate_share
from sandmle.evaluation.text import clean_line, clean_text
from sandmle.records import TrajectoryStatus
from tests.evaluation.run_builder import episode, write_run


def _table(report: RunReport, width: int = 100) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(render_table(report))
    return capture.get()


def test_q02_the_table_shows_finished_and_planned(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", [episode(f"t{index}", "p", 0, 0.9) for index in range(2)], tasks=["t0", "t1", "t2"]
    )
    report = build_report([run])
    assert "2/3" in _table(report)
    assert "missing 1" in _table(report)
    assert "| 2/3 | 1 | 0 |" in render_markdown(report)


def test_q04_no_plus_minus_for_one_value(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", [episode("t1", "p", 0, 0.9)])])
    for text in (_table(report), render_markdown(report)):
        assert "±" not in text
        assert not re.search(r"1\.00 \\?\[", text)
    assert interval_text(estimate_mean({"a": [0.5]})) == "0.50"
    assert error_text(estimate_attempts([0.5])) == "0.50"
    assert error_text(estimate_attempts([0.5, 0.7])) == "0.60 ± 0.10"


def test_r17_endings_are_in_the_table(tmp_path: Path) -> None:
    endings = (TrajectoryStatus.TIME_BUDGET, TrajectoryStatus.SANDBOX_ERROR, TrajectoryStatus.CONTEXT_OVERFLOW)
    run = write_run(tmp_path / "run", [episode(f"t{index}", "p", 0, status=each) for index, each in enumerate(endings)])
    text = _table(build_report([run]), width=200)
    for name in endings:
        assert f"{name} 1" in text


def test_oracle_is_marked_in_every_form(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", [episode("t1", "seer", 0, 0.9, feedback="oracle")])])
    assert "seer [ORACLE]" in _table(report)
    assert "seer \\[ORACLE\\]" in render_markdown(report)
    assert '"oracle":true' in report.to_json()


def test_broken_lines_are_named_in_both_forms(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [episode("t1", "p", 0, 0.9)])
    with (run / "trajectories.jsonl").open("a") as file:
        file.write("not json\n")
    report = build_report([run])
    assert "trajectories.jsonl, line 2" in _table(report, width=400)
    assert "trajectories.jsonl, line 2" in render_markdown(report)


def test_names_cannot_break_the_table(tmp_path: Path) -> None:
    name = "\x1b[31mred\x1b[0m|<img src=x onerror=alert(1)>[link](http://x)\n# head"
    report = build_report([write_run(tmp_path / "run", [episode("t1", name, 0, 0.9)])])
    assert "\x1b" not in _table(report)
    text = render_markdown(report)
    assert "<img" not in text
    assert "[link](" not in text
    assert "\n# head" not in text
    rows = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == len(
        re.findall(r"(?<!\\)\|", next(line for line in text.splitlines() if line.startswith("| # |")))
    )


def test_several_runs_name_their_run(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, [episode("t1", "p", 0, 0.9)]) for name in ("one", "two")]
    text = _table(build_report(runs))
    assert "p (one)" in text
    assert "p (two)" in text


def test_the_quickstart_table_fits_80_columns(tmp_path: Path) -> None:
    names = ("sample-submitter", "feature-engineer")
    trajectories = [
        episode(f"t{task}", name, attempt, 0.5 + 0.1 * (task % 5) + 0.05 * index)
        for task in range(12)
        for index, name in enumerate(names)
        for attempt in range(2)
    ]
    text = _table(build_report([write_run(tmp_path / "run", trajectories)]), width=80)
    assert "…" not in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_numbers_are_written_honestly() -> None:
    assert number_text(-0.001) == "0.00"
    assert number_text(None) == NOTHING
    assert percent_text(estimate_share({str(index): [index == 0] for index in range(300)})) == "<1 %"
    assert percent_text(estimate_share({str(index): [index != 0] for index in range(300)})) == ">99 %"
    assert (plural(1, "policy"), plural(2, "policy"), plural(0, "task")) == ("1 policy", "2 policies", "0 tasks")


def test_text_loses_escapes_controls_surrogates_and_hidden_order() -> None:
    assert clean_text("\x1b[1;31mred\x1b[0m \x1b]0;title\x07text") == "red text"
    assert clean_text("a\x00b\ud800c\u202ed") == "a\ufffdb\ufffdc\ufffdd"
    assert clean_text("50%\r100%\r\nnext\tcell") == "50%\n100%\nnext\tcell"
    assert clean_line("one\n  two\r\n") == "one two"
    assert clean_text("\x1b") == ""
