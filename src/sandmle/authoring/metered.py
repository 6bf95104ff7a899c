"""A sandbox that adds up the seconds of what it runs."""

from typing import Self

from sandmle.records import ExecResult
from sandmle.sandbox.base import ExecRequest, Sandbox


class MeteredSandbox:
    """Passes everything on to another sandbox.

    Attributes:
        cpu_s: CPU seconds of all executions so far.
        wall_s: Their wall-clock seconds.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.name = sandbox.name
        self.capabilities = sandbox.capabilities
        self.workers = sandbox.workers
        self.cpu_s = self.wall_s = 0.0
        self._sandbox = sandbox

    def start(self) -> Self:
        """Starts the other sandbox."""
        self._sandbox.start()
        return self

    def execute(self, request: ExecRequest) -> ExecResult:
        """Runs code in the other sandbox and counts its seconds."""
        result = self._sandbox.execute(request)
        self.cpu_s += result.cpu_s
        self.wall_s += result.wall_s
        return result

    def close(self) -> None:
        """Closes the other sandbox."""
        self._sandbox.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.close()
