"""Runs the independent solver on a task, in the sandbox."""

import re
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from sandmle.errors import SandmleError
from sandmle.gate.base import GateContext, SolverRun
from sandmle.policies.scripted.brief import Brief, brief_of_pieces, read_brief
from sandmle.policies.scripted.scripts import PIECES, unpack_script, write_script
from sandmle.records import Limits, PredictionKind, TargetSpec
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
"""Kinds of prediction that the solver knows how to make, row by row."""
_OWN_IMPORT = re.compile(r"^from sandmle\.gate\.solver_features import .*\n", re.MULTILINE)


def is_solvable(context: GateContext) -> bool:
    """Tells whether the solver knows how to make the predictions, for rows or for the pieces that they are made of."""
    return context.spec.target.kind in SOLVABLE or bool(read_brief(context.bundle.description()).pieces)


def solver_source() -> str:
    """Returns the solver's program."""
    folder = resources.files("sandmle.gate")
    parts = [folder.joinpath(name).read_text() for name in ("solver_features.py", "solver_script.py")]
    return _OWN_IMPORT.sub("", "\n\n".join(parts))


def solver_program(target: TargetSpec, metric: str, id_column: str) -> str:
    """Returns the solver's program for one task whose kind is solvable: what it is told, and its source."""
    told: dict[str, Any] = {
        "kind": target.kind.value,
        "columns": list(target.columns),
        "labels": list(target.labels),
        "low": target.low,
        "high": target.high,
        "max_items": target.max_items,
        "metric": metric,
        "id_column": id_column,
        "input": "input",
        "output": "submission.csv",
    }
    return f"TASK = {told!r}\n{solver_source()}"


def run_solver(context: GateContext) -> SolverRun:
    """Runs the solver once with the task's own limits. It is told what the description says, and nothing else.

    Rows that are made of pieces are first taken apart, as the scripted engineers do it, and put together afterwards.

    Raises:
        SandmleError: There is no sandbox.
    """
    if context.sandbox is None:
        raise SandmleError("the solver needs a sandbox")
    spec = context.spec
    limits = Limits(wall_s=spec.limits.step_wall_s, memory_mb=spec.limits.memory_mb)
    with tempfile.TemporaryDirectory(prefix="sandmle-solver-") as folder:
        request = ExecRequest(
            code=_program(context),
            workspace=Path(folder),
            inputs=context.bundle.public_dir,
            limits=limits,
            collect=("submission.csv",),
        )
        result = context.sandbox.execute(request)
    return SolverRun(result, result.file("submission.csv"))


def _program(context: GateContext) -> str:
    spec = context.spec
    if spec.target.kind in SOLVABLE:
        return solver_program(spec.target, spec.metric, spec.id_column)
    brief = read_brief(context.bundle.description())
    parts = (unpack_script(brief.pieces, brief.n_pieces), f"TASK = {_told_of_pieces(brief)!r}", solver_source())
    whole = write_script("pack", p={"pieces": brief.pieces, "metric_name": brief.metric_name})
    return "\n\n".join((*parts, whole))


def _told_of_pieces(brief: Brief) -> dict[str, Any]:
    kinds = {"mask": "probability", "span": "probability", "order": "values"}
    kind = kinds.get(brief.pieces, "class_probabilities")
    return {
        "kind": kind,
        "columns": ["answer"] if brief.pieces in kinds else [],
        "labels": ["0", "1"] if kind == "probability" else [],
        "low": None,
        "high": None,
        "max_items": None,
        "metric": brief_of_pieces(brief).metric,
        "id_column": "piece",
        "input": PIECES,
        "output": f"{PIECES}submission.csv",
    }
