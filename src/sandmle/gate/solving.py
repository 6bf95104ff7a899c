"""Runs the independent solver on a task, in the sandbox."""

import tempfile
from importlib import resources
from pathlib import Path

from sandmle.errors import SandmleError
from sandmle.gate.base import GateContext, SolverRun
from sandmle.records import Limits, PredictionKind
from sandmle.sandbox.base import ExecRequest

SOLVABLE = frozenset(
    {
        PredictionKind.LABEL,
        PredictionKind.PROBABILITY,
        PredictionKind.CLASS_PROBABILITIES,
        PredictionKind.LABEL_PROBABILITIES,
        PredictionKind.VALUES,
        PredictionKind.LABEL_SET,
        PredictionKind.RANKED_LABELS,
    }
)
"""Kinds of prediction that the solver knows how to make."""


def solver_source() -> str:
    """Returns the solver's program."""
    return resources.files("sandmle.gate").joinpath("solver_script.py").read_text()


def run_solver(context: GateContext) -> SolverRun:
    """Runs the solver once with the task's own limits. It is told what the description says, and nothing else.

    Raises:
        SandmleError: There is no sandbox.
    """
    if context.sandbox is None:
        raise SandmleError("the solver needs a sandbox")
    spec = context.spec
    told = {
        "kind": spec.target.kind.value,
        "columns": list(spec.target.columns),
        "labels": list(spec.target.labels),
        "low": spec.target.low,
        "high": spec.target.high,
        "max_items": spec.target.max_items,
        "metric": spec.metric,
        "id_column": spec.id_column,
    }
    limits = Limits(wall_s=spec.limits.step_wall_s, memory_mb=spec.limits.memory_mb)
    with tempfile.TemporaryDirectory(prefix="sandmle-solver-") as folder:
        workspace = Path(folder)
        request = ExecRequest(
            code=f"TASK = {told!r}\n{solver_source()}",
            workspace=workspace,
            inputs=context.bundle.public_dir,
            limits=limits,
            collect=("submission.csv",),
        )
        result = context.sandbox.execute(request)
    return SolverRun(result, result.file("submission.csv"))
