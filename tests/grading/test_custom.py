"""A task's own evaluator: run in the sandbox, wrong in every way it can be, and graded like any metric."""

import pickle

import numpy as np
import pytest

from sandmle.errors import ConfigError
from sandmle.gate import run_gate
from sandmle.gate.checks import STANDARD_CHECKS
from sandmle.grading import Grader, get_metric
from sandmle.grading.custom import EvaluatorFault, EvaluatorRunner, custom_metric
from sandmle.grading.metrics.base import Truth
from sandmle.records import Direction, GradeStatus, PredictionKind, TargetSpec, Verdict
from sandmle.sandbox import open_backend
from sandmle.tasks import load_bundle
from tests import bundles

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("needs_sandbox")]
VALUES = TargetSpec(kind=PredictionKind.VALUES, columns=("y",))
PARAMS = {"title": "Mean gap", "words": "The mean absolute gap.", "best": 0.0}
MEAN_GAP = "def grade(submission, answers):\n    return float((submission['{y}'] - answers['{y}']).abs().mean())\n"


@pytest.fixture(scope="module")
def needs_sandbox():
    from sandmle.errors import SandboxUnavailableError

    try:
        open_backend("forkserver", workers=1).close()
    except SandboxUnavailableError as error:
        pytest.skip(f"no sandbox on this machine: {error}")


@pytest.fixture(scope="module")
def box(needs_sandbox):
    with open_backend("forkserver", workers=1) as opened:
        yield opened


def truth(values) -> Truth:
    return Truth(np.asarray(values, dtype=float)[:, None], VALUES)


def test_it_is_a_metric_like_any_other(box):
    metric = custom_metric(MEAN_GAP.format(y="y"), VALUES, Direction.MINIMIZE, PARAMS, box)
    rng = np.random.default_rng(0)
    answers, guess = rng.normal(size=400), rng.normal(size=400)
    predicted = guess[:, None]
    assert metric.score(truth(answers), predicted, PARAMS) == pytest.approx(np.abs(answers - guess).mean())
    influence = metric.calculation.spread(truth(answers), predicted, PARAMS)
    error = influence.std() / np.sqrt(len(influence) - 1)
    assert error == pytest.approx(np.abs(answers - guess).std() / np.sqrt(400), rel=0.35)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def grade(submission, answers):\n    raise ValueError('rows')\n", "ended with error"),
        ("def grade(submission, answers):\n    return float('nan')\n", "no finite number"),
        ("def score(submission, answers):\n    return 1.0\n", "ended with error"),
        ("import os\n\n\ndef grade(submission, answers):\n    os._exit(0)\n", "wrote no score"),
        (
            "import socket\n\n\ndef grade(submission, answers):\n    socket.create_connection(('10.0.0.1', 80))\n",
            "ended with error",
        ),
    ],
    ids=["raises", "nan", "no-grade", "exits", "network"],
)
def test_a_broken_evaluator_is_our_fault_and_never_a_score(box, source, message):
    runner = EvaluatorRunner(source, VALUES, box)
    with pytest.raises(EvaluatorFault, match=message):
        runner.score(truth([1.0, 2.0]), np.zeros((2, 1)), {})


def test_only_its_bundle_can_open_it():
    with pytest.raises(ConfigError, match=r"open it with Grader\(bundle\)"):
        get_metric("custom")
    with pytest.raises(ConfigError, match="needs the parameter 'best'"):
        custom_metric("", VALUES, Direction.MINIMIZE, {"title": "a", "words": "b"})


def test_a_runner_goes_to_another_process_without_its_sandbox(box):
    runner = EvaluatorRunner(MEAN_GAP.format(y="y"), VALUES, box)
    assert pickle.loads(pickle.dumps(runner)).sandbox is None


def test_a_bundle_with_an_evaluator_is_graded_and_judged(box, tmp_path):
    draft = bundles.draft("regression", n_private=1000)
    column = draft.spec.target.columns[0]
    draft = bundles.with_file(draft, "private/evaluator.py", MEAN_GAP.format(y=column).encode())
    draft = bundles.with_spec(draft, metric="custom", metric_params=PARAMS, direction=Direction.MINIMIZE)
    bundle = bundles.saved(draft, tmp_path)
    grader = Grader(load_bundle(bundle.root), sandbox=box)
    report = grader.grade(bundle.read("private/oracle.csv"))
    assert report.status is GradeStatus.GRADED
    assert report.score is not None
    assert report.score > 0
    own = Grader(bundle)  # opens a sandbox of its own
    assert own.grade(bundle.read("private/oracle.csv")).score == report.score
    wanted = {"bundle_integrity", "evaluator_agrees", "metric_defined"}
    checks = [check for check in STANDARD_CHECKS if check.name in wanted]
    found = run_gate(bundle, sandbox=box, checks=checks, preset="paper")
    assert {loss.check: loss.message for loss in found.losses() if loss.verdict is not Verdict.VALID} == {}
