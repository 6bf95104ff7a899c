"""The leaderboard: measured rows beside quoted ones, and HumanRank in both variants."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.evaluation.leaderboard import build_leaderboard, published_rows, render_leaderboard_markdown
from sandmle.evaluation.report import build_report
from sandmle.records import BoardRank
from tests.evaluation.run_builder import episode, grade, write_run

LITE = {"name": "mle-bench-lite", "grader": "own", "notes": ["a note"], "task_notes": {"t1": "LEAK: a field"}}


def lite_run(folder: Path, **config: Any) -> Path:
    scores = {"t1": (0.95, 0.5), "t2": (0.75, None), "t3": (None, None), "t4": (0.65, 0.85)}
    episodes = [
        episode(task, "<b>model</b>", attempt, score)
        for task, pair in scores.items()
        for attempt, score in enumerate(pair)
    ]
    return write_run(folder, episodes, **{"suite": LITE, **config})


def test_measured_rows_stand_above_quoted_ones(tmp_path: Path) -> None:
    board = build_leaderboard([lite_run(tmp_path / "run")])
    assert [row.quoted for row in board.rows] == [False, *[True] * 8]
    cells = board.rows[0].cells
    assert cells[0] == "62.5 ± 12.5"  # valid: 3 of 4 tasks, then 2 of 4
    assert cells[2:5] == ("12.5", "12.5", "12.5")
    assert cells[5] == "37.5 ± 12.5"
    assert cells[6] == "75.0 (k = 2)"
    assert all("QUOTED" in row.note for row in board.rows[1:])
    assert any("LEAK: a field" in note for note in board.notes)


def test_markdown_and_html_show_the_same_and_run_nothing(tmp_path: Path) -> None:
    run = lite_run(tmp_path / "run")
    for name in ("board.md", "board.html"):
        result = CliRunner().invoke(app, ["report", str(run), "--leaderboard", str(tmp_path / name), "--json"])
        assert result.exit_code == 0, result.output
        text = (tmp_path / name).read_text()
        assert "37.5 ± 12.5" in text
        assert "QUOTED from the paper" in text
        assert "<b>model</b>" not in text
    assert (tmp_path / "board.md").read_text() == render_leaderboard_markdown(build_leaderboard([run]))


def test_plain_task_sets_get_no_quoted_rows(tmp_path: Path) -> None:
    board = build_leaderboard([lite_run(tmp_path / "run", suite=None)])
    assert [(row.suite, row.quoted) for row in board.rows] == [("tasks", False)]


def test_published_percentages_are_whole_numbers_of_tasks() -> None:
    for row in published_rows():
        for share in (row.valid, row.any_medal):
            if share is not None:
                count = round(share * row.n_tasks / 100)
                assert share == pytest.approx(100 * count / row.n_tasks, abs=0.051)


def ranked(score: float, *places: tuple[int, int]) -> Any:
    ranks = tuple(
        BoardRank(board=board, position=place, n_teams=teams)
        for board, (place, teams) in zip(("private", "public"), places, strict=True)
    )
    return grade("t1", score).replace(board_ranks=ranks)


def test_human_rank_in_both_variants_counts_failures_as_0(tmp_path: Path) -> None:
    episodes = [
        episode("t1", "p", 0, 0.9, grade=ranked(0.9, (1, 10), (3, 4))),
        episode("t1", "p", 1, 0.1, grade=ranked(0.1, (11, 10), (5, 4))),
        episode("t2", "p", 0, None),
        episode("t2", "p", 1, None),
    ]
    row = build_report([write_run(tmp_path / "run", episodes)]).policies[0]
    code = ((10 - 1 + 1) / 10 + (4 - 3 + 1) / 4) / 2
    paper = ((1 - 1 / 10) + (1 - 3 / 4)) / 2
    assert row.human_rank["code"].mean == pytest.approx((code / 2 + 0) / 2)
    assert row.human_rank["paper"].mean == pytest.approx((paper / 2 + 0) / 2)
    plain = build_report([write_run(tmp_path / "plain", [episode("t1", "p", 0, 0.9)])]).policies[0]
    assert plain.human_rank == {}
