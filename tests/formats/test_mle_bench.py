"""Export to MLE-bench's layout, read back by MLE-bench's rules as they stand in its source (commit 783b15a)."""

import importlib.util
import io
import json
import subprocess
import sys
import types
from pathlib import Path

import pandas as pd
import pytest
import yaml

from sandmle.errors import BundleError
from sandmle.formats import export_tasks, import_tasks
from sandmle.formats.leaderboard import board_for, lines_of, medal_positions
from sandmle.formats.mle_bench import MleBench
from sandmle.grading import grade
from sandmle.records import Direction, PredictionKind, TargetSpec, Threshold, Thresholds
from sandmle.tasks import load_bundle
from tests import bundles


def lines(median: float, bronze: float, silver: float, gold: float) -> Thresholds:
    four = {"median": median, "bronze": bronze, "silver": silver, "gold": gold}
    return Thresholds(preset="calibrated", **{name: Threshold(score=score) for name, score in four.items()})


@pytest.mark.parametrize(
    ("n_teams", "positions"),
    [
        (1, (1, 1, 1)),
        (9, (1, 1, 3)),
        (10, (1, 2, 4)),
        (99, (9, 19, 39)),
        (100, (10, 20, 40)),
        (249, (10, 49, 99)),
        (250, (10, 50, 100)),
        (999, (11, 50, 100)),
        (1000, (12, 50, 100)),
    ],
)
def test_x02_positions_for_every_size_of_board(n_teams: int, positions: tuple[int, int, int]) -> None:
    assert medal_positions(n_teams) == positions


@pytest.mark.parametrize("direction", list(Direction))
def test_x02_a_board_of_every_size_gives_exactly_the_thresholds(direction: Direction) -> None:
    made = lines(0.61234567, 0.7, 0.75, 0.8) if direction is Direction.MAXIMIZE else lines(9.5, 7.25, 6.1, 5.123456)
    for n_teams in (*range(10, 260), 999, 1000, 2500):
        board = board_for(made, direction, n_teams)
        assert len(board) == n_teams
        median, bronze, silver, gold = made.scores()
        assert lines_of(board) == (gold, silver, bronze, median, direction)


@pytest.mark.parametrize("n_teams", [1, 9])
def test_x02_boards_too_small_for_two_lines_are_refused(n_teams: int) -> None:
    with pytest.raises(BundleError, match="one line"):
        board_for(lines(0.6, 0.7, 0.8, 0.9), Direction.MAXIMIZE, n_teams)


@pytest.mark.parametrize(
    "made",
    [lines(0.9, 0.9, 0.9, 0.9), lines(0.6, 0.7, 0.7, 0.9), lines(0.6, 0.7, 0.700001, 0.9), lines(0.9, 0.8, 0.7, 0.6)],
)
def test_x01_flat_boards_and_wrong_orders_are_refused(made: Thresholds) -> None:
    with pytest.raises(BundleError):
        board_for(made, Direction.MAXIMIZE)


@pytest.mark.parametrize(("kind", "is_lower"), [("regression", True), ("binary", False)])
def test_x01_direction_can_be_told_from_the_exported_board(kind: str, is_lower: bool, tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft(kind), tmp_path / "tasks")
    (done,) = export_tasks(tmp_path / "tasks", MleBench(), tmp_path / "out")
    assert not done.error
    scores = pd.read_csv(Path(done.path) / "leaderboard.csv")["score"]
    assert bool(scores.iloc[0] < scores.iloc[-1]) is is_lower
    thresholds = bundle.spec.thresholds
    assert [float(scores.iloc[at - 1]) for at in (10, 20, 40)] == list(reversed(thresholds.scores()[1:]))
    assert float(scores.median()) == thresholds.median.score


@pytest.mark.parametrize("answers", ["csv", "jsonl"])
def test_x04_import_validation_and_grades_agree(answers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("text", "multiclass"):
        bundles.saved(bundles.draft(kind), tmp_path / "tasks")
    transfers = list(export_tasks(tmp_path / "tasks", MleBench(answers), tmp_path / "out"))  # type: ignore[arg-type]
    assert [each.error for each in transfers] == ["", ""]
    helpers = types.ModuleType("mlebench.grade_helpers")
    helpers.InvalidSubmissionError = type("InvalidSubmissionError", (Exception,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlebench", types.ModuleType("mlebench"))
    monkeypatch.setitem(sys.modules, "mlebench.grade_helpers", helpers)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for each in transfers:
        bundle = load_bundle(tmp_path / "tasks" / each.task)
        config = yaml.safe_load((Path(each.path) / "config.yaml").read_text())
        data = tmp_path / "out" / "data"
        hidden = data / config["dataset"]["answers"]
        spec = importlib.util.spec_from_file_location("exported_grade", Path(each.path) / "grade.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        known = (
            pd.read_csv(hidden) if answers == "csv" else [json.loads(line) for line in hidden.read_text().splitlines()]
        )
        sample = (data / config["dataset"]["sample_submission"]).read_bytes()
        assert module.grade(pd.read_csv(io.BytesIO(sample)), known) == grade(bundle, sample).score
        with pytest.raises(helpers.InvalidSubmissionError):
            module.grade(pd.read_csv(io.BytesIO(sample)).iloc[1:], known)
    read = list(import_tasks(tmp_path / "out", MleBench(), tmp_path / "again"))
    assert [each.error for each in read] == ["", ""]
    for each in read:
        assert load_bundle(Path(each.path)).spec == load_bundle(tmp_path / "tasks" / each.task).spec


@pytest.mark.parametrize("label", ["NA", "null", "true"])
def test_a_label_that_pandas_reads_as_something_else_is_refused(label: str, tmp_path: Path) -> None:
    draft = bundles.draft("text")
    labels = tuple(sorted((label, "urgent")))
    target = TargetSpec(kind=PredictionKind.LABEL, columns=("tone",), labels=labels)
    answers = bundles.table(draft, "private/answers.csv")
    answers["tone"] = answers["tone"].replace("calm", label)
    draft = bundles.with_table(bundles.with_spec(draft, target=target), "private/answers.csv", answers)
    bundles.saved(draft, tmp_path / "tasks")
    (done,) = export_tasks(tmp_path / "tasks", MleBench(), tmp_path / "out")
    assert repr(label) in done.error
    assert not (tmp_path / "out" / "data").exists()


def test_the_grader_in_the_package_needs_no_sandmle(tmp_path: Path) -> None:
    bundles.saved(bundles.draft("regression"), tmp_path / "tasks")
    (done,) = export_tasks(tmp_path / "tasks", MleBench(), tmp_path / "out")
    archive = Path(done.path) / "grader.zip"
    code = (
        f"import sys; sys.path[:] = [p for p in sys.path if 'sandmle' not in p]; sys.path.insert(0, {str(archive)!r})\n"
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
        "import sandmle.grading as g; from sandmle.grading.metrics import get_metric\n"
        "assert '.zip' in g.__file__, g.__file__; print(get_metric('rmse').title)"
    )
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert ran.returncode == 0, ran.stderr
    assert "mean squared error" in ran.stdout.lower()
