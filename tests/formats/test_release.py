"""The published release's layout: written, read back, and repaired."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sandmle.formats import export_tasks, import_tasks
from sandmle.formats.release import Release
from sandmle.formats.repair import repair
from sandmle.grading import grade, write_table
from sandmle.tasks import check_bundle, load_bundle, write_bundle
from tests import bundles
from tests.gate.plain import PlainSandbox

EVALUATOR = """
import argparse, json, sys
import numpy as np, pandas as pd
parser = argparse.ArgumentParser()
parser.add_argument("--submission_path", required=True)
given = pd.read_csv(parser.parse_args().submission_path)
truth = pd.read_csv("answer.csv")
both = truth.merge(given, on="id", suffixes=("_true", ""))
if len(both) != len(truth):
    print("bad ids")
    sys.exit(1)
y, p = both["y_true"], both["y"]
score = {score}
print(json.dumps({{"score": round(float(score), 5), "is_lower_better": {lower}, "gold_threshold": {gold},
    "silver_threshold": 2, "bronze_threshold": 3, "median_threshold": 4}}))
"""


def release_task(root: Path, score: str, *, lower: bool, answers: np.ndarray, sample: str) -> Path:
    public = root / "Some_Task" / "prepared" / "public"
    public.mkdir(parents=True)
    rng = np.random.default_rng(3)
    n_train, n_test = 60, len(answers)
    train = {"id": [f"a{at}" for at in range(n_train)], "x": rng.normal(size=n_train).round(3)}
    (public / "train.csv").write_bytes(write_table({**train, "y": list(answers[:n_train])}))
    ids = [f"b{at}" for at in range(n_test)]
    (public / "test.csv").write_bytes(write_table({"id": ids, "x": rng.normal(size=n_test).round(3)}))
    (public / "sample_submission.csv").write_bytes(write_table({"id": ids, "y": [sample] * n_test}))
    (public / "answer.csv").write_bytes(write_table({"id": ids, "y": list(answers)}))
    (public / "description.md").write_text("# Task\n\nPredict y. See evaluator.py.\n")
    (public / "evaluator.py").write_text(EVALUATOR.format(score=score, lower=lower, gold=1 if lower else 5))
    return root


NUMBERS = np.random.default_rng(1).gamma(2.0, 2.0, 400).round(3)
BITS = (np.random.default_rng(2).random(400) < 0.3).astype(int)
WORDS = np.array(["red", "green", "blue"])[np.random.default_rng(4).integers(0, 3, 400)]
CASES = {
    "rmse": ("((y - p) ** 2).mean() ** 0.5", True, NUMBERS, "1.0"),
    "mae": ("(y - p).abs().mean()", True, NUMBERS, "1.0"),
    "accuracy": ("(y == p).mean()", False, WORDS, "red"),
    "roc_auc": ("__import__('sklearn.metrics').metrics.roc_auc_score(y, p)", False, BITS, "0.5"),
    "macro_f1": ("__import__('sklearn.metrics').metrics.f1_score(y, p, average='macro')", False, WORDS, "red"),
}


@pytest.mark.parametrize("metric", CASES)
def test_a_task_of_the_release_is_repaired(metric: str, tmp_path: Path) -> None:
    score, lower, answers, sample = CASES[metric]
    root = release_task(tmp_path / "data", score, lower=lower, answers=answers, sample=sample)
    made = repair(root, "Some_Task", PlainSandbox())
    bundle = write_bundle(made.draft, tmp_path / "tasks")
    assert bundle.spec.metric == metric
    assert bundle.spec.task_id == "some-task"
    assert bundle.spec.thresholds.bronze.score == 3
    assert check_bundle(bundle.root) == []
    public = {path.name for path in bundle.public_dir.rglob("*")}
    assert public == {"train.csv", "test.csv", "sample_submission.csv"}
    assert grade(bundle, bundle.read("public/sample_submission.csv")).score is not None
    assert any("description.md names evaluator.py" in note for note in made.notes)


def test_an_evaluator_that_agrees_with_no_metric_is_refused(tmp_path: Path) -> None:
    root = release_task(tmp_path / "data", "(y * p).sum() % 7", lower=True, answers=NUMBERS, sample="1.0")
    with pytest.raises(Exception, match="agrees with no registered metric"):
        repair(root, "Some_Task", PlainSandbox())


def test_an_evaluator_that_breaks_is_refused(tmp_path: Path) -> None:
    root = release_task(tmp_path / "data", "1 / 0", lower=True, answers=NUMBERS, sample="1.0")
    with pytest.raises(Exception, match="too few"):
        repair(root, "Some_Task", PlainSandbox())


@pytest.mark.sandbox
def test_the_release_is_imported_in_the_sandbox_and_a_bad_task_is_named(tmp_path: Path) -> None:
    score, lower, answers, sample = CASES["rmse"]
    root = release_task(tmp_path / "data", score, lower=lower, answers=answers, sample=sample)
    bad = root / "other" / "prepared" / "public"
    bad.mkdir(parents=True)
    (bad / "evaluator.py").write_text("print(1)")
    done, refused = import_tasks(root, Release(), tmp_path / "tasks")
    assert not done.error
    assert load_bundle(Path(done.path)).spec.metric == "rmse"
    assert "description.md is missing" in refused.error


def test_the_written_evaluator_gives_our_score_and_lines(tmp_path: Path) -> None:
    bundle = bundles.saved(bundles.draft("regression"), tmp_path / "tasks")
    (done,) = export_tasks(tmp_path / "tasks", Release(), tmp_path / "out")
    public = Path(done.path) / "prepared" / "public"
    for data, code in ((bundle.read("private/oracle.csv"), 0), (b"record_id\n", 1)):
        (tmp_path / "submission.csv").write_bytes(data)
        command = [sys.executable, "evaluator.py", "--submission_path", str(tmp_path / "submission.csv")]
        ran = subprocess.run(command, cwd=public, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stderr
        if code == 0:
            said = json.loads(ran.stdout)
            assert said["score"] == grade(bundle, data).score
            assert said["is_lower_better"] is True
            assert said["gold_threshold"] == bundle.spec.thresholds.gold.score
