"""Ways to run one script: cold Python without any walls, a Jupyter kernel, and every sandbox backend."""

import contextlib
import importlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sandmle.errors import SandboxError
from sandmle.records import ExecStatus, Limits
from sandmle.sandbox.base import ExecRequest, Sandbox
from sandmle.sandbox.bench.clock import Clock
from sandmle.sandbox.boot import environment
from sandmle.sandbox.inner import tree

_WALL_S = 300.0
_COLLECT = "submission.csv"
_AFTERMATH_S = 0.005
"""What servers still do after an answer belongs to the execution."""


@dataclass(frozen=True)
class Spent:
    """What one run took."""

    wall_s: float
    cpu_s: float


class Entrant(Protocol):
    """One way to run a script."""

    name: str
    is_cold: bool
    """Every run starts an interpreter: measured less often, since it takes seconds."""

    def run(self, code: str, inputs: Path) -> Spent:
        """Runs a script to its end, in a fresh folder.

        Raises:
            SandboxError: The script did not end well.
        """
        ...

    def other_cpu_s(self) -> float:
        """Returns the CPU time so far of processes that stay, and that ``Spent`` does not count."""
        ...

    def server_mb(self) -> float | None:
        """Returns the memory of processes that stay between runs."""
        ...


class ColdPython:
    """A fresh interpreter with nothing around it: only for scripts of our own."""

    name = "python (no walls)"
    is_cold = True

    def __init__(self, python: str | None) -> None:
        """Uses an interpreter; this one by default."""
        self._python = python or sys.executable

    def run(self, code: str, inputs: Path) -> Spent:
        """Runs the script and asks the kernel what it and its children took."""
        with _workspace() as workspace:
            shutil.copytree(inputs, workspace / "input")
            (workspace / "main.py").write_text(code)
            start_s = time.perf_counter()
            process = subprocess.Popen(
                [self._python, "-s", "-P", "main.py"],
                cwd=workspace,
                env={**environment(1), "HOME": str(workspace), "TMPDIR": str(workspace)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            assert process.stderr is not None
            with process.stderr:
                errors = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            wall_s = time.perf_counter() - start_s
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SandboxError(f"cold python failed: {errors.decode(errors='replace')[-300:]}")
        return Spent(wall_s, usage.ru_utime + usage.ru_stime)

    def other_cpu_s(self) -> float:
        """Returns 0: nothing stays."""
        return 0.0

    def server_mb(self) -> float | None:
        """Returns None: nothing stays."""
        return None


class JupyterKernel:
    """A fresh kernel for each script, as agents that work in notebooks get one for each episode."""

    name = "Jupyter kernel (no walls)"
    is_cold = True

    def __init__(self) -> None:
        """Finds the client.

        Raises:
            ImportError: ``jupyter_client`` or ``ipykernel`` is not installed.
        """
        importlib.import_module("ipykernel")
        self._manager: Any = importlib.import_module("jupyter_client.manager")

    def run(self, code: str, inputs: Path) -> Spent:
        """Starts a kernel, runs the script as one cell, shuts the kernel down."""
        with _workspace() as workspace:
            shutil.copytree(inputs, workspace / "input")
            before_s, start_s = _children_cpu_s(), time.perf_counter()
            manager, client = self._manager.start_new_kernel(
                cwd=str(workspace), env={**os.environ, **environment(1), "HOME": str(workspace)}
            )
            try:
                reply = client.execute_interactive(code, output_hook=lambda _: None, timeout=_WALL_S)
            finally:
                client.stop_channels()
                manager.shutdown_kernel(now=True)
            wall_s = time.perf_counter() - start_s
        if reply["content"]["status"] != "ok":
            raise SandboxError(f"the Jupyter kernel failed: {reply['content'].get('evalue')}")
        return Spent(wall_s, _children_cpu_s() - before_s)

    def other_cpu_s(self) -> float:
        """Returns 0: nothing stays."""
        return 0.0

    def server_mb(self) -> float | None:
        """Returns None: nothing stays."""
        return None


class Backend:
    """A started sandbox."""

    def __init__(self, sandbox: Sandbox, servers: list[int], clock: Clock | None) -> None:
        """Measures a sandbox.

        Args:
            sandbox: It is started.
            servers: Its processes that stay between executions.
            clock: Counts all of it, this process included; None to add up what the parts tell, which misses what
                processes of the sandbox's own take that nobody waits for.
        """
        self.name = sandbox.name
        self.is_cold = sandbox.name == "bwrap"
        self._sandbox = sandbox
        self._servers = servers
        self._clock = clock
        self._told_s = 0.0

    def run(self, code: str, inputs: Path) -> Spent:
        """Executes the script."""
        with _workspace() as workspace:
            limits = Limits(wall_s=_WALL_S, memory_mb=4096)
            request = ExecRequest(code, workspace, inputs, limits, collect=(_COLLECT,))
            clock = self._clock or time.thread_time
            before_s, start_s = clock(), time.perf_counter()
            result = self._sandbox.execute(request)
            wall_s = time.perf_counter() - start_s
            if self._clock is not None:
                time.sleep(_AFTERMATH_S)
            spent_s = clock() - before_s
        if result.status is not ExecStatus.OK:
            raise SandboxError(f"{self.name} failed: {result.status} {result.detail} {result.stderr[-300:]}")
        if self._clock is not None:
            return Spent(wall_s, spent_s)
        self._told_s += result.cpu_s
        return Spent(wall_s, result.cpu_s + spent_s)

    def other_cpu_s(self) -> float:
        """Returns what servers and helpers took beyond what executions were told to have taken."""
        if self._clock is not None:
            return 0.0
        living = [tree.look(pid) for pid in self._servers]
        return sum(process.cpu_s for process in living if process) - self._told_s

    def server_mb(self) -> float | None:
        """Returns the memory of the server, pages that it shares divided by who shares them."""
        living = [process for pid in self._servers if (process := tree.look(pid))]
        return tree.memory_mb(living, exact=True) if living else None


@contextlib.contextmanager
def _workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"sandmle-{os.getpid()}-") as name:
        yield Path(name)


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
