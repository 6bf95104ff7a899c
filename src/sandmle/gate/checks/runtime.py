"""One honest run fits well into a step's time and memory."""

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.gate.solving import is_solvable
from sandmle.records import ExecStatus

_SHARE = 0.5
"""Part of a step's wall-clock limit that the solver may use up in CPU seconds."""


def run(context: GateContext) -> Finding:
    """Looks at the solver's run. The seconds stay out of the report: they differ between two runs of the gate."""
    if not is_solvable(context):
        return Finding(True, "the solver was not run")
    result = context.solver_run.result
    limit_s = _SHARE * context.spec.limits.step_wall_s
    if result.status in (ExecStatus.TIMEOUT, ExecStatus.OOM, ExecStatus.LIMIT):
        return Finding(False, f"the solver ran into a limit: {result.status.value}", None, limit_s)
    if result.cpu_s > limit_s:
        return Finding(False, "the solver used more than half of a step's time", None, limit_s)
    return Finding(True, "", None, limit_s)


CHECK = Check("running_time", run, needs=frozenset({"sandbox"}), time_limit_s=300.0)
