"""A sandbox for tests that isolates nothing: it runs our own solver as a plain process."""

import subprocess
import sys
from pathlib import Path

from sandmle.records import CollectedFile, ExecResult, ExecStatus
from sandmle.sandbox.base import ExecRequest


class PlainSandbox:
    name = "plain"
    capabilities = frozenset()

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or 1

    def start(self) -> "PlainSandbox":
        return self

    def close(self) -> None:
        return None

    def __enter__(self) -> "PlainSandbox":
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None

    def execute(self, request: ExecRequest) -> ExecResult:
        assert request.inputs is not None
        (request.workspace / "input").symlink_to(request.inputs.resolve())
        done = subprocess.run(
            [sys.executable, "-c", request.code],
            cwd=request.workspace,
            capture_output=True,
            text=True,
            env={"PATH": "", "OMP_NUM_THREADS": "1"},
            check=False,
        )
        files = tuple(
            CollectedFile(
                name=name, data=path.read_bytes() if (path := Path(request.workspace, name)).exists() else None
            )
            for name in request.collect
        )
        status = ExecStatus.OK if done.returncode == 0 else ExecStatus.ERROR
        return ExecResult(status=status, exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr, files=files)
