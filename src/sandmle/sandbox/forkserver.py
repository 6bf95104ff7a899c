"""The default backend: a server that has only imported the ML libraries is forked for every execution.

Covers: only the libraries, the inputs and the workspace are visible, all but the workspace read-only; own process,
network, IPC and host-name namespaces; an unprivileged user without capabilities; Landlock, a system-call filter,
resource limits; with control groups also memory and the number of processes. Nothing outlives the call.
Does not cover: kernel exploits, side channels (timing, caches), CPU contention between neighbours.
"""

import os
import socket
import subprocess
import threading
from typing import Any

from sandmle.errors import SandboxError, SandboxUnavailableError
from sandmle.sandbox.backend import NAMESPACES_HELP, LocalBackend
from sandmle.sandbox.base import Capability, ExecRequest
from sandmle.sandbox.boot import WARM_ENVIRONMENT, environment
from sandmle.sandbox.libraries import DEFAULT_LIBRARIES, preloaded
from sandmle.sandbox.scratch import Scratch
from sandmle.sandbox.server import start_server
from sandmle.sandbox.supervise import Channels
from sandmle.sandbox.view import View, library_view

_ISOLATED = frozenset(
    {
        Capability.FILESYSTEM,
        Capability.FILE_CONTENTS,
        Capability.PROCESS,
        Capability.PROCESS_CONTENTS,
        Capability.NETWORK,
        Capability.PRIVILEGE,
        Capability.SYSCALLS,
        Capability.DISK,
        Capability.LIFETIME,
    }
)
_COUNTED = frozenset({Capability.MEMORY, Capability.PROCESS_COUNT})


class ForkserverSandbox(LocalBackend):
    """Forks a warm process for every execution; see the module's text for what it covers."""

    name = "forkserver"

    def __init__(
        self,
        *,
        workers: int | None = None,
        python: str | None = None,
        threads: int = 1,
        libraries: str = DEFAULT_LIBRARIES,
    ) -> None:
        """See :class:`LocalBackend`.

        Args:
            workers: Executions at the same time; one per available core by default.
            python: The interpreter for the code; this one by default.
            threads: Threads that numerical libraries may use in one execution.
            libraries: What the server imports: a name in ``LIBRARIES``.
        """
        super().__init__(workers=workers, python=python, threads=threads)
        self._preload = preloaded(libraries)
        self._view: View | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._scratch: Scratch | None = None
        self._lock = threading.Lock()
        self.loaded: tuple[str, ...] = ()
        """Modules that are there when code starts."""

    @property
    def view(self) -> View:
        """What code sees of the machine's files."""
        if self._view is None:
            self._view = library_view(self.python)
        return self._view

    def _open(self) -> None:
        self._scratch = Scratch()
        self._start_server()
        self.capabilities = _ISOLATED | (_COUNTED if self.has_groups else frozenset())

    def _start_server(self) -> None:
        if self._scratch is None:
            raise SandboxError("the forkserver is closed")
        view = self.view
        setup = {
            "root": str(self._scratch.path),
            "view": view.to_dict(),
            "preload": list(self._preload),
            "environment": environment(self.threads),
            "user_namespace": os.geteuid() != 0,
        }
        env = environment(self.threads, WARM_ENVIRONMENT)
        self._server, self._socket, answer = start_server(view.python, "keeper", setup, env)
        if "failed" in answer:
            self._stop_server()
            advice = f"; {NAMESPACES_HELP}" if answer.get("namespaces") else ""
            raise SandboxUnavailableError(f"the forkserver sandbox cannot start: {answer['failed']}{advice}")
        self.loaded = tuple(answer["loaded"])

    def _launch(self, request: ExecRequest, channels: Channels, message: dict[str, Any]) -> None:
        slot = message["slot"]
        with self._lock:
            if self._server is None or self._server.poll() is not None or not self._hand_over(channels, slot):
                # Once anew: a dead server is the sandbox's failure, not the code's.
                self._stop_server()
                self._start_server()
                if not self._hand_over(channels, slot):
                    raise SandboxError("the forkserver died as soon as it had started")
        channels.close_far()
        channels.send_request(message)

    def _hand_over(self, channels: Channels, slot: int) -> bool:
        """Gives the far ends to the server; false when there is none any more."""
        if self._socket is None:
            return False
        try:
            socket.send_fds(self._socket, [bytes([slot])], channels.far_fds())
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _after(self, channels: Channels) -> None:
        """Leaves nothing to remove: the view dies with its namespace."""

    def _distrust(self) -> None:
        with self._lock:
            self._stop_server()

    def _shut(self) -> None:
        with self._lock:
            self._stop_server()
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def _stop_server(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None
