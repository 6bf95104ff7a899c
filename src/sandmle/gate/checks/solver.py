"""An independent solver, which knows nothing of the rule, reaches the median, but for luck."""

from sandmle.errors import SandmleError
from sandmle.gate.base import Check, Finding, GateContext
from sandmle.gate.solving import is_solvable
from sandmle.records import ExecStatus

_DECIMALS = 4


def run(context: GateContext) -> Finding:
    """Grades what the solver wrote in the sandbox; its score on these rows is uncertain by a standard error.

    Raises:
        SandmleError: The solver broke, so that nothing is known about the task.
    """
    spec = context.spec
    median = spec.thresholds.median.score
    if not is_solvable(context):
        return Finding(True, f"the solver makes no {spec.target.kind.value} predictions", None, median)
    outcome = context.solver_run
    if outcome.result.status is not ExecStatus.OK:
        lines = (outcome.result.stderr or outcome.result.detail).strip().splitlines() or ["no output"]
        raise SandmleError(f"the solver ended with {outcome.result.status.value}: {lines[-1]}")
    report = context.grader.grade(outcome.submission)
    if report.score is None:
        raise SandmleError(f"the solver's submission was not graded: {report.message}")
    score = round(report.score, _DECIMALS)
    error = spec.thresholds.median.standard_error or 0.0
    message = ""
    if spec.direction.gain(report.score, median) < -error:
        message = f"the solver scores {score}, the median is {median:.6g} with a standard error of {error:.2g}"
    return Finding(not message, message, score, median)


CHECK = Check("solver_reaches_median", run, needs=frozenset({"sandbox", "calibrated"}), time_limit_s=300.0)
