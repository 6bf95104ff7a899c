"""How much of the execution time goes into imports: measured by running the import lines of recorded scripts alone."""

import ast
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sandmle.records import ActionKind, Record, Trajectory
from sandmle.sandbox.base import ExecRequest, Sandbox

_MOST_SCRIPTS = 40


class ImportShare(Record):
    """Imports against whole executions, over a sample of recorded executions."""

    n_executions: int
    """Executions looked at."""
    mean_wall_s: float
    """Mean wall time of one of them."""
    mean_import_s: float
    """Mean wall time of their import lines alone, in the same sandbox."""

    @property
    def share(self) -> float:
        """Share of the execution time that imports take, at most 1."""
        return min(1.0, self.mean_import_s / self.mean_wall_s) if self.mean_wall_s > 0 else 0.0


def measure_import_share(trajectories: Iterable[Trajectory], sandbox: Sandbox) -> ImportShare | None:
    """Runs the import lines of up to 40 recorded scripts, spread evenly over all, and compares times.

    Args:
        trajectories: Where the scripts and their times come from.
        sandbox: The sandbox in which they ran; recorded code is run nowhere else.

    Returns:
        The comparison; None when nothing was executed.
    """
    runs = [
        (step.code, step.exec_wall_s)
        for trajectory in trajectories
        for step in trajectory.steps
        if step.action is ActionKind.RUN and step.code and step.exec_wall_s is not None
    ]
    if not runs:
        return None
    sample = runs[:: max(1, len(runs) // _MOST_SCRIPTS)][:_MOST_SCRIPTS]
    import_s: dict[str, float] = {}
    for code, _ in sample:
        lines = import_lines(code)
        if lines not in import_s:
            with tempfile.TemporaryDirectory(prefix="sandmle-imports-") as folder:
                import_s[lines] = sandbox.execute(ExecRequest(lines, Path(folder))).wall_s
    return ImportShare(
        n_executions=len(sample),
        mean_wall_s=sum(wall_s for _, wall_s in sample) / len(sample),
        mean_import_s=sum(import_s[import_lines(code)] for code, _ in sample) / len(sample),
    )


def import_lines(code: str) -> str:
    """Returns the import statements of a script, in order; nothing when it does not parse."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return ""
    return "\n".join(ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
