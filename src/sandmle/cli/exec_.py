"""``sandmle exec``: one script in the sandbox, on a task's public files."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli.output import JsonOption, error_console, print_json, printable
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.records import ExecResult

_MAX_TIMEOUT_S = 1e6


def command(
    task: Annotated[Path, typer.Argument(metavar="TASK", help="A task's folder; its public files appear as ./input.")],
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python file, or - for standard input.")],
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=0.001, metavar="S", help="Seconds; the task's own limit by default."),
    ] = None,
    memory: Annotated[
        int | None, typer.Option("--memory", min=1, metavar="MB", help="Megabytes; the task's own limit by default.")
    ] = None,
    backend: Annotated[str, typer.Option("--backend", help="Sandbox backend: see `sandmle doctor`.")] = "forkserver",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Keeps the files that the script wrote, in a new folder."),
    ] = None,
    rng_seed: Annotated[int, typer.Option("--rng-seed", help="Seeds numpy's and Python's global generators.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Runs a script once, as an agent's code is run: no network, the task's public files only, all limits on.

    What the script prints goes to stdout and stderr; a last line on stderr says how it ended.

    Exit codes: 0 the script ended well, 1 it failed or hit a limit, 2 bad input or a fault of the sandbox.
    """
    from sandmle.records import ExecStatus, Limits
    from sandmle.sandbox import ExecRequest, open_backend
    from sandmle.tasks import load_bundle

    if timeout is not None and timeout > _MAX_TIMEOUT_S:
        raise ConfigError(f"--timeout {timeout} is no usable time; give seconds, at most {_MAX_TIMEOUT_S:.0f}")
    bundle = load_bundle(task)
    code = _read_script(script)
    limits = Limits(
        wall_s=timeout if timeout is not None else bundle.spec.limits.step_wall_s,
        memory_mb=memory if memory is not None else bundle.spec.limits.memory_mb,
    )
    with _workspace(out) as workspace, open_backend(backend, workers=1) as sandbox:
        request = ExecRequest(code, workspace, bundle.public_dir, limits, rng_seed)
        result = sandbox.execute(request)
        written = sorted(str(path.relative_to(workspace)) for path in workspace.rglob("*") if path.is_file())
    if as_json:
        print_json({**result.model_dump(mode="json", exclude={"files"}), "written": written})
    else:
        _show(result, written)
    raise typer.Exit(0 if result.status is ExecStatus.OK else 1)


def _read_script(script: str) -> str:
    try:
        data = sys.stdin.buffer.read() if script == "-" else Path(script).read_bytes()
        return data.decode()
    except OSError as error:
        raise ConfigError(f"script {script} cannot be read: {error.strerror}; give a Python file, or -") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"script {script} is not UTF-8 text (byte {error.start})") from error


@contextmanager
def _workspace(out: Path | None) -> Iterator[Path]:
    if out is None:
        with tempfile.TemporaryDirectory(prefix="sandmle-exec-") as folder:
            yield Path(folder)
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"--out {out} is not empty; give a new folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be made: {error.strerror}") from error
    yield out


def _show(result: "ExecResult", written: list[str]) -> None:
    typer.echo(result.stdout, nl=bool(result.stdout) and not result.stdout.endswith("\n"))
    typer.echo(result.stderr, nl=bool(result.stderr) and not result.stderr.endswith("\n"), err=True)
    facts = [result.status.value, result.detail]
    if result.exit_code:
        facts.append(f"exit code {result.exit_code}")
    facts.append(f"{result.wall_s:.2f} s, {result.cpu_s:.2f} s of CPU")
    if result.peak_memory_mb is not None:
        facts.append(f"{result.peak_memory_mb:.0f} MB")
    facts.append(f"wrote {', '.join(map(printable, written))}" if written else "wrote no file")
    error_console().print(f"sandmle: {'; '.join(filter(None, facts))}", markup=False, soft_wrap=True)
