"""What our own solver's end means for a task of a model."""

import pytest

from sandmle.authoring.roles.workbench import run_solver
from sandmle.errors import AuthoringError
from sandmle.records import CollectedFile, ExecResult, ExecStatus
from tests.gate.plain import PlainSandbox


class Scripted(PlainSandbox):
    """Says what it is told to say."""

    def __init__(self, result):
        super().__init__()
        self.result = result

    def execute(self, request):
        return self.result


def test_a_solver_that_breaks_is_said_and_no_missing_rung(tmp_path):
    broken = Scripted(ExecResult(status=ExecStatus.ERROR, stderr="Traceback\nKeyError: 'input'"))
    with pytest.raises(AuthoringError, match="our own solver ended with error: KeyError: 'input'") as caught:
        run_solver(broken, "", tmp_path)
    assert caught.value.lost_to == "solver"


@pytest.mark.parametrize("status", [ExecStatus.TIMEOUT, ExecStatus.OOM])
def test_a_solver_that_runs_out_of_time_or_memory_gives_no_rung(tmp_path, status):
    assert run_solver(Scripted(ExecResult(status=status)), "", tmp_path) is None


def test_a_solver_that_gets_through_gives_its_submission(tmp_path):
    written = CollectedFile(name="submission.csv", data=b"id,y\n1,2\n")
    done = Scripted(ExecResult(status=ExecStatus.OK, files=(written,)))
    assert run_solver(done, "", tmp_path) == b"id,y\n1,2\n"
