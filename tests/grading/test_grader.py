import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import BundleError, SandmleError
from sandmle.grading import Grader, Metric, grade, grade_many, write_table
from sandmle.grading.metrics.base import Calculation
from sandmle.records import Direction, GradeReport, GradeStatus, Medal, Verdict
from tests import bundles
from tests.grading.examples import EXAMPLES, K, csv, rule, task, thresholds

RUNNER = CliRunner()
ANSWERS = csv("id y leaderboard\na 1 private\nb 2 private\nc 4 public\nd 8 private")
GOOD = csv("id y\na 1\nb 2\nc 9\nd 8")


def strict(text: str):
    def refuse(word):
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)


def raising(error):
    def function(truth, prediction, params):
        raise error

    return function


def metric_of(function):
    return Metric(
        name="broken",
        title="broken",
        direction=Direction.MAXIMIZE,
        kinds=(K.VALUES,),
        best=1.0,
        calculation=Calculation(function),
        words="",
        formula="",
    )


RAISES_KEY_ERROR = metric_of(raising(KeyError("hidden answer")))
RUNS_OUT_OF_TIME = metric_of(raising(TimeoutError()))
GIVES_NAN = metric_of(lambda truth, prediction, params: float("nan"))
GIVES_INFINITY = metric_of(lambda truth, prediction, params: float("inf"))
GIVES_FLOAT32 = metric_of(lambda truth, prediction, params: np.float32(0.75))


@pytest.fixture
def bundle(tmp_path):
    return task(tmp_path, rule("rmse", K.VALUES), ANSWERS, thresholds(2.0, 0.5))


@pytest.mark.parametrize("kind", bundles.KINDS)
def test_hand_made_tasks(kind, tmp_path):
    made = bundles.saved(bundles.draft(kind), tmp_path)
    sample = grade(made, made.read("public/sample_submission.csv"))
    oracle = grade(made, made.read("private/oracle.csv"))
    assert (sample.status, sample.medal, sample.above_median) == (GradeStatus.GRADED, Medal.NONE, False)
    assert (oracle.status, oracle.medal, oracle.above_median) == (GradeStatus.GRADED, Medal.GOLD, True)
    assert oracle.n_rows == made.spec.n_private


def test_only_the_rows_of_one_leaderboard_count(bundle):
    grader = Grader(bundle)
    private, public = grader.grade(GOOD), grader.grade(GOOD, leaderboard="public")
    assert (private.score, private.n_rows, private.medal) == (0.0, 3, Medal.GOLD)
    assert (public.score, public.n_rows, public.medal) == (5.0, 1, Medal.NONE)
    assert private.task_hash == bundle.spec.task_hash
    with pytest.raises(SandmleError, match="private or public"):
        grader.grade(GOOD, leaderboard="all")


BAD = {
    "missing": (None, GradeStatus.MISSING),
    "empty": (b"", GradeStatus.UNREADABLE),
    "zip": (b"PK\x03\x04rest", GradeStatus.UNREADABLE),
    "columns": (b"a,b\n1,2\n", GradeStatus.WRONG_COLUMNS),
    "ids": (b"id,y\na,1\n", GradeStatus.BAD_IDS),
    "twice": (GOOD + b"a,1\n", GradeStatus.BAD_IDS),
    "values": (GOOD.replace(b"9", b"nan"), GradeStatus.BAD_VALUES),
    "words": (GOOD.replace(b"9", b"nine"), GradeStatus.BAD_VALUES),
}


@pytest.mark.parametrize("name", BAD)
def test_g34_what_the_grader_refuses_the_validator_refuses(name, bundle):
    data, status = BAD[name]
    grader = Grader(bundle)
    problem, report = grader.check(data), grader.grade(data)
    assert problem is not None
    assert (problem.status, problem.message) == (report.status, report.message)
    assert report.status is status
    assert (report.score, report.medal, report.above_median, report.is_valid) == (None, Medal.NONE, False, False)
    assert not report.status.is_ours


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_g34_what_the_grader_accepts_the_validator_accepts(name, tmp_path):
    example = EXAMPLES[name]
    grader = Grader(task(tmp_path, example.rule, csv(example.answers)))
    for text in (example.perfect, example.bad):
        assert grader.check(csv(text)) is None
        assert grader.grade(csv(text)).status is GradeStatus.GRADED


@pytest.mark.parametrize("name", ["RAISES_KEY_ERROR", "RUNS_OUT_OF_TIME", "GIVES_NAN", "GIVES_INFINITY"])
def test_g40_a_fault_of_the_grader_is_never_the_agents(name, tmp_path):
    scoring = rule(f"{__name__}:{name}", K.VALUES)
    report = grade(task(tmp_path, scoring, ANSWERS), GOOD)
    assert report.status is GradeStatus.GRADER_ERROR
    assert report.status.is_ours
    assert (report.score, report.medal) == (None, Medal.NONE)
    assert "not the submission's fault" in report.message
    assert "hidden" not in report.message
    assert grade(task(tmp_path, scoring, ANSWERS), b"id,y\n").status is GradeStatus.BAD_IDS


def test_g40_a_fault_of_the_reader_is_ours(bundle, monkeypatch):
    monkeypatch.setattr("sandmle.grading.grader.read_submission", raising(RuntimeError("reader")))
    report = Grader(bundle).grade(GOOD)
    assert report.status is GradeStatus.GRADER_ERROR
    assert "RuntimeError" in report.message


def test_numpy_scores_become_plain_numbers(tmp_path):
    report = grade(task(tmp_path, rule(f"{__name__}:GIVES_FLOAT32", K.VALUES), ANSWERS), GOOD)
    assert type(report.score) is float


def test_g01_q01_an_undefined_metric_is_null_with_a_reason(tmp_path):
    answers = csv("id y\na 1\nb 1\nc 1")
    report = grade(task(tmp_path, rule("roc_auc", K.PROBABILITY), answers), csv("id y\na 0.2\nb 0.5\nc 0.9"))
    assert report.status is GradeStatus.METRIC_UNDEFINED
    assert report.status.is_ours
    plain = strict(report.to_json())
    assert plain["score"] is None
    assert plain["medal"] == "none"
    assert "one class only" in plain["message"]


@pytest.mark.parametrize("cell", ["1e30", "-1e30", "1e-320", "0"])
@pytest.mark.parametrize("name", [name for name in sorted(EXAMPLES) if EXAMPLES[name].rule.target.kind is K.VALUES])
def test_q01_no_extreme_number_becomes_nan_or_infinity(name, cell, tmp_path):
    example = EXAMPLES[name]
    grader = Grader(task(tmp_path, example.rule, csv(example.answers)))
    lines = csv(example.perfect).decode().splitlines()
    lines[1] = ",".join([lines[1].split(",")[0], *[cell] * len(example.rule.target.columns)])
    report = grader.grade("\n".join(lines).encode())
    assert report.status in (GradeStatus.GRADED, GradeStatus.BAD_VALUES)
    strict(report.to_json())


def test_g41_a_file_is_graded_whatever_became_of_its_run(bundle):
    # Grading takes bytes only: how the run ended is not among its inputs.
    assert grade(bundle, GOOD).status is GradeStatus.GRADED


def test_broken_answers_are_a_broken_task(tmp_path):
    with pytest.raises(BundleError, match="duplicate id"):
        Grader(task(tmp_path, rule("rmse", K.VALUES), csv("id y\na 1\na 2")))


def test_answers_are_read_once(bundle):
    grader = Grader(bundle)
    (bundle.root / "private/answers.csv").write_bytes(b"changed")
    assert grader.grade(GOOD).score == 0.0


def test_g44_a_batch_goes_on_after_a_missing_task(bundle, tmp_path):
    good, lost = tmp_path / "good.csv", tmp_path / "lost"
    good.write_bytes(GOOD)
    lines = grade_many([(bundle.root, good), (lost, good), (bundle.root, good), (bundle.root, lost)])
    assert [line.report is not None for line in lines] == [True, False, True, False]
    assert lines[1].error == f"{lost} is not a task: it has no task.yaml"
    assert str(lost) in lines[3].error


@pytest.fixture
def files(bundle, tmp_path):
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_bytes(GOOD)
    bad.write_bytes(b"x,y\n1,2\n")
    return str(bundle.root), str(good), str(bad)


def run(*args):
    return RUNNER.invoke(app, ["grade", *args])


def test_command_grades(files):
    root, good, bad = files
    result = run(root, good)
    assert result.exit_code == 0
    assert result.stdout.startswith("tiny: graded: rmse 0 on 3 private rows: gold medal\n")
    assert "minimize: median 2, bronze 1.5, silver 1, gold 0.5" in result.stdout
    refused = run(root, bad)
    assert refused.exit_code == 1
    assert "expected 'id', 'y', found 'x', 'y'" in refused.stdout
    assert "on 1 public rows" in run(root, good, "--leaderboard", "public").stdout


def test_command_prints_strict_json(files):
    root, good, bad = files
    report = GradeReport.model_validate(strict(run(root, good, "--json").stdout))
    assert report.score == 0.0
    assert strict(run(root, bad, "--json").stdout)["status"] == "wrong_columns"


def test_g44_command_reports_all_and_exits_nonzero(files, tmp_path):
    root, good, _ = files
    result = run(root, good, str(tmp_path / "lost"), good, root, good)
    assert result.exit_code == 2
    assert result.stdout.count("tiny: graded") == 2
    assert result.stderr.count("is not a task") == 1
    lines = strict(run(root, good, str(tmp_path / "lost"), good, root, good, "--json").stdout)
    assert [line["report"] is None for line in lines] == [False, True, False]


@pytest.mark.parametrize(
    ("args", "message"),
    [(["only-one"], "has no submission"), (["a", "b", "--leaderboard", "secret"], "give private or public")],
)
def test_command_names_wrong_arguments(args, message):
    result = run(*args)
    assert isinstance(result.exception, SandmleError)
    assert message in str(result.exception)


@pytest.mark.parametrize(
    ("metric", "loaded"), [("rmse", ["scipy", "sklearn"]), ("kl_divergence", ["scipy"]), ("smape", [])]
)
def test_libraries_are_loaded_by_the_metric_that_needs_them(tmp_path, metric, loaded):
    import subprocess

    example = EXAMPLES[metric]
    root = task(tmp_path, example.rule, csv(example.answers)).root
    code = (
        "import sys; from pathlib import Path;"
        "from sandmle.grading import Grader; from sandmle.tasks import load_bundle;"
        "found = lambda: sorted({'sklearn', 'scipy', 'rapidfuzz', 'lightgbm'} & {*sys.modules});"
        f"grader = Grader(load_bundle(Path({str(root)!r}))); assert found() == [];"
        f"assert grader.grade({csv(example.perfect)!r}).score is not None; print(found())"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{loaded}\n"


def test_verdicts_are_not_grades():
    assert {status.value for status in GradeStatus} & {verdict.value for verdict in Verdict} == set()


def test_a_thousand_rows_are_graded_the_same_in_any_order(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"r{number}" for number in rng.permutation(1000)]
    values = rng.normal(0, 1, 1000)
    grader = Grader(task(tmp_path, rule("rmse", K.VALUES), write_table({"id": ids, "y": values})))
    given = values + rng.normal(0, 1, 1000)
    order = rng.permutation(1000)
    first = grader.grade(write_table({"id": ids, "y": given}))
    second = grader.grade(write_table({"y": given[order], "id": [ids[row] for row in order]}))
    assert first.score == second.score
