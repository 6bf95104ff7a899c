"""Runs what the roles wrote, in the sandbox, and says in words what went wrong."""

import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sandmle.authoring.roles.draws import PARTS, Draw, read_draw
from sandmle.authoring.roles.outputs import DATA_SCRIPT, Scripts, TaskIdea, baseline_file
from sandmle.authoring.roles.reading import Complaint
from sandmle.errors import AuthoringError
from sandmle.records import ExecResult, ExecStatus, Limits, TaskLimits
from sandmle.sandbox.base import ExecRequest, Sandbox

DATA_LIMITS = Limits(wall_s=60.0, memory_mb=2048, file_mb=128, output_bytes=1_000_000)
BASELINE_LIMITS = Limits(wall_s=60.0, memory_mb=TaskLimits().memory_mb, output_bytes=1_000_000)
_TOLD_CHARS = 2500
_SUBMISSION = "submission.csv"


@dataclass(frozen=True)
class DrawRequest:
    """One call of ``make_data``."""

    name: str
    rng_seed: int
    n_train: int
    n_test: int


def run_data_script(sandbox: Sandbox, source: str, idea: TaskIdea, wanted: list[DrawRequest]) -> dict[str, Draw]:
    """Returns the draws of a data script by name.

    Raises:
        Complaint: The script failed, or made something else than the idea says.
        SandboxError: The sandbox itself failed.
    """
    task = {"draws": [vars(each) for each in wanted], "paths": list(idea.path_columns)}
    driver = resources.files("sandmle.authoring.roles").joinpath("driver_script.py").read_text()
    files = [f"{each.name}/{part}.csv" for each in wanted for part in PARTS]
    files += [f"{each.name}/{name}" for each in wanted for name in ("media.bin", "media.json")]
    with tempfile.TemporaryDirectory(prefix="sandmle-data-") as folder:
        workspace = Path(folder)
        (workspace / DATA_SCRIPT).write_text(source)
        result = sandbox.execute(
            ExecRequest(
                code=f"TASK = {task!r}\n{driver}", workspace=workspace, limits=DATA_LIMITS, collect=tuple(files)
            )
        )
    _refuse_failure(result, DATA_SCRIPT, "data_script")
    return {each.name: read_draw(result, each.name, idea, n_train=each.n_train, n_test=each.n_test) for each in wanted}


def run_baseline(sandbox: Sandbox, scripts: Scripts, name: str, inputs: Path, rng_seed: int) -> bytes:
    """Returns the submission that a baseline writes.

    Raises:
        Complaint: It failed, or wrote none.
        SandboxError: The sandbox itself failed.
    """
    file = baseline_file(name)
    result = _run_on(sandbox, scripts.files[file], inputs, rng_seed)
    _refuse_failure(result, file, "baseline")
    submission = result.file(_SUBMISSION)
    if submission is None:
        raise Complaint("baseline", f"{file} wrote no ./submission.csv")
    return submission


def run_solver(sandbox: Sandbox, program: str, inputs: Path) -> bytes | None:
    """Returns the submission of the gate's independent solver, or None where time or memory ran out.

    Raises:
        AuthoringError: The solver broke: without its rung nothing tells a column that gives the answers away.
        SandboxError: The sandbox itself failed.
    """
    result = _run_on(sandbox, program, inputs, 0)
    if result.status is ExecStatus.ERROR:
        lines = (result.stderr or result.detail).strip().splitlines() or ["no output"]
        raise AuthoringError(f"our own solver ended with error: {lines[-1].strip()[:300]}", lost_to="solver")
    return result.file(_SUBMISSION) if result.status is ExecStatus.OK else None


def _run_on(sandbox: Sandbox, code: str, inputs: Path, rng_seed: int) -> ExecResult:
    with tempfile.TemporaryDirectory(prefix="sandmle-baseline-") as folder:
        return sandbox.execute(
            ExecRequest(
                code=code,
                workspace=Path(folder),
                inputs=inputs,
                limits=BASELINE_LIMITS,
                rng_seed=rng_seed,
                collect=(_SUBMISSION,),
            )
        )


def _refuse_failure(result: ExecResult, file: str, kind: str) -> None:
    if result.status is ExecStatus.OK:
        return
    lines = [line for line in result.stderr.strip().splitlines() if line.strip()]
    last = lines[-1].strip() if lines else result.detail
    summary = f"{file} ended with {result.status.value}" + (f": {last[:300]}" if last else "")
    detail = f"{summary}\n\n{result.detail}\n\nThe end of stderr:\n{result.stderr[-_TOLD_CHARS:]}"
    raise Complaint(kind, summary, detail)
