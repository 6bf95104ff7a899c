"""A sandbox that runs no code: each line of a script is an order. And graders that misbehave."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from sandmle.errors import ConfigError, SandboxError
from sandmle.records import CollectedFile, ExecResult, ExecStatus, GradeReport
from sandmle.sandbox.base import Capability, ExecRequest


def burn(cpu_s: float) -> None:
    """Uses CPU time of this thread."""
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s:
        pass


class FakeSandbox:
    """Understands ``print TEXT``, ``warn TEXT``, ``submit FILE``, ``write TEXT``, ``remove``, ``sleep S``,
    ``status NAME``, ``boom`` (the sandbox fails), ``bug`` (it raises something odd) and ``refuse`` (it takes the
    workspace no more)."""

    name = "fake"
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, workers: int | None = 2) -> None:
        self.workers = workers or 2
        self.requests: list[ExecRequest] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self.closed = False

    def start(self) -> Self:
        return self

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def execute(self, request: ExecRequest) -> ExecResult:
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return self._run(request)
        finally:
            with self._lock:
                self._at_once -= 1

    def _run(self, request: ExecRequest) -> ExecResult:
        out, err, status = [], [], ExecStatus.OK
        target = request.workspace / "submission.csv"
        for line in request.code.splitlines():
            order, _, rest = line.partition(" ")
            if order == "print":
                out.append(rest)
            elif order == "warn":
                err.append(rest)
            elif order == "submit":
                assert request.inputs is not None
                target.write_bytes((request.inputs / rest).read_bytes())
            elif order == "write":
                target.write_text(rest)
            elif order == "remove":
                target.unlink()
            elif order == "sleep":
                time.sleep(float(rest))
            elif order == "status":
                status = ExecStatus(rest)
            elif order == "boom":
                raise SandboxError("the fork server died")
            elif order == "refuse":
                raise ConfigError(f"workspace {request.workspace} cannot be read")
            elif order == "bug":
                raise KeyError("odd")
        data = target.read_bytes() if target.is_file() else None
        return ExecResult(
            status=status,
            exit_code={ExecStatus.OK: 0, ExecStatus.ERROR: 1}.get(status),
            stdout="\n".join(out),
            stderr="\n".join(err),
            wall_s=0.25,
            cpu_s=0.2,
            files=(CollectedFile(name="submission.csv", data=data, reason="" if data else "missing"),),
        )


class BrokenGrader:
    """A grader whose ``grade`` does what it is told, on files that another grader accepts."""

    def __init__(self, inner: object, fault: Callable[[], GradeReport]) -> None:
        self.inner = inner
        self.fault = fault

    def check(self, submission: bytes | None) -> object:
        return self.inner.check(submission)  # type: ignore[attr-defined]

    def grade(self, submission: bytes | None, *, leaderboard: str = "private") -> GradeReport:
        del submission, leaderboard
        return self.fault()


def saved_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
