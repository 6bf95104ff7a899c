import ast

import pytest

from sandmle.gate.solving import solver_source
from sandmle.records import ExecResult, ExecStatus, Threshold, Verdict
from sandmle.sandbox.base import ExecRequest
from tests import bundles
from tests.bundles import with_spec
from tests.gate.conftest import Ask
from tests.gate.plain import PlainSandbox


class Scripted(PlainSandbox):
    """Says what it is told to say."""

    def __init__(self, result: ExecResult) -> None:
        super().__init__()
        self.result = result

    def execute(self, request: ExecRequest) -> ExecResult:
        return self.result


def test_the_solver_knows_nothing_of_this_package() -> None:
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for node in ast.walk(ast.parse(solver_source()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert "sandmle" not in imported
    assert "private" not in solver_source()


def test_a_median_that_no_solver_reaches(ask: Ask) -> None:
    draft = bundles.draft("regression")
    hard = with_spec(draft, thresholds=draft.spec.thresholds.replace(median=Threshold(score=0.1)))
    result = ask(hard, "solver_reaches_median", sandbox=PlainSandbox())
    assert result.verdict is Verdict.INVALID
    assert result.limit == 0.1


@pytest.mark.parametrize("status", [ExecStatus.ERROR, ExecStatus.TIMEOUT])
def test_a_solver_that_breaks_is_an_error_not_a_verdict(ask: Ask, status: ExecStatus) -> None:
    broken = Scripted(ExecResult(status=status, stderr="Traceback\nKeyError: 'x'"))
    result = ask(bundles.draft("regression"), "solver_reaches_median", sandbox=broken)
    assert result.verdict is Verdict.ERROR
    assert "KeyError: 'x'" in result.message


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (ExecResult(status=ExecStatus.OK, cpu_s=3.0), Verdict.VALID),
        (ExecResult(status=ExecStatus.OK, cpu_s=80.0), Verdict.INVALID),
        (ExecResult(status=ExecStatus.TIMEOUT), Verdict.INVALID),
        (ExecResult(status=ExecStatus.OOM), Verdict.INVALID),
    ],
)
def test_running_time_is_judged_but_not_stored(ask: Ask, result: ExecResult, verdict: Verdict) -> None:
    found = ask(bundles.draft("regression"), "running_time", sandbox=Scripted(result))
    assert found.verdict is verdict
    assert found.value is None
    assert str(result.cpu_s) not in found.message
