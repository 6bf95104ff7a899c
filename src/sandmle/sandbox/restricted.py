"""The backend for where there are neither root's rights nor user namespaces: the usual pod of a cluster. It is weaker.

Executions are forked from a warm server, as the default backend's are, and confined by Landlock, a system-call filter,
resource limits and a keeper that is the subreaper of all that the code starts. There are no namespaces.

Covers: no file but the libraries, the inputs and the workspace can be read, none but those in the workspace and a
temporary folder can be changed; no other process can be read, traced, signalled or slowed; no socket of any kind but
connected pairs; nothing outlives the call.
Does not cover: names, sizes, owners and times of *other files* can be asked for by who guesses their path, and that
*other processes* exist can be found out. Memory, processes and disk are watched ten times a second, and code that goes
over is ended, but no kernel limit holds all processes together in the meantime. Between the code and every other
process of its user stands one wall, Landlock, where the default backend has three: **so hidden answers must be kept by
another user or on another machine.** Started as root, all of it runs as another user for this very reason.

It needs Linux 6.12 (Landlock 6). It is never chosen for you: name it.
"""

import errno
import os
import secrets
import select
import signal
import socket
import stat
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandmle.errors import ConfigError, SandboxError, SandboxUnavailableError
from sandmle.records import ExecResult, ExecStatus
from sandmle.sandbox.backend import LocalBackend
from sandmle.sandbox.base import INPUT_DIR, Capability, ExecRequest
from sandmle.sandbox.boot import WARM_ENVIRONMENT, environment
from sandmle.sandbox.cgroups import Reading, SlotGroup
from sandmle.sandbox.collect import SCRIPT_NAME
from sandmle.sandbox.inner import jail
from sandmle.sandbox.libraries import DEFAULT_LIBRARIES, preloaded
from sandmle.sandbox.scratch import Scratch, remove_tree
from sandmle.sandbox.server import start_server
from sandmle.sandbox.supervise import Channels, Watch
from sandmle.sandbox.view import View, library_view

_DEATH_S = 5.0
_SERVER_ENVIRONMENT = {
    **WARM_ENVIRONMENT,
    # Its semaphores would need /dev/shm, which is everybody's; joblib then works in the calling process.
    "JOBLIB_MULTIPROCESSING": "0",
}
_HELD = frozenset(
    {
        Capability.FILE_CONTENTS,
        Capability.PROCESS_CONTENTS,
        Capability.NETWORK,
        Capability.PRIVILEGE,
        Capability.SYSCALLS,
        Capability.LIFETIME,
    }
)


class RestrictedSandbox(LocalBackend):
    """Forks a warm process for every execution, without namespaces; see the module's text for what it lacks."""

    name = "restricted"
    uses_groups = False
    fresh_places = ()

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
        self._folders: dict[int, Path] = {}
        self._uid: int | None = None
        """The user that everything runs as, where this process is root."""
        self.loaded: tuple[str, ...] = ()
        """Modules that are there when code starts."""

    @property
    def view(self) -> View:
        """What code can read of the machine's files."""
        if self._view is None:
            self._view = library_view(self.python)
        return self._view

    def _open(self) -> None:
        self._uid = self._first_uid if os.geteuid() == 0 else None
        self._scratch = Scratch()
        self._open_to_code(self._scratch.path)
        self._start_server()
        self.capabilities = _HELD

    def _start_server(self) -> None:
        readable, listable = reading_rules(self.view)
        setup = {"preload": self._preload, "uid": self._uid, "readable": readable, "listable": listable}
        env = environment(self.threads, _SERVER_ENVIRONMENT)
        self._server, self._socket, answer = start_server(self.view.python, "plain", setup, env)
        if "failed" in answer:
            self._stop_server()
            raise SandboxUnavailableError(f"the restricted sandbox cannot start: {answer['failed']}")
        self.loaded = tuple(answer["loaded"])

    def _launch(self, request: ExecRequest, channels: Channels, message: dict[str, Any]) -> None:
        if self._scratch is None:
            raise SandboxError("the restricted sandbox is closed")
        folder = self._scratch.path / secrets.token_hex(8)
        self._folders[channels.control.fileno()] = folder
        inputs = self._fill(folder, request, message["space_bytes"])
        tmp = str(folder / "tmp")
        message |= {"workspace": str(folder / "workspace"), "tmp": tmp, "inputs": inputs}
        message["environment"] |= {"HOME": tmp, "TMPDIR": tmp, "MPLCONFIGDIR": tmp, "JOBLIB_MULTIPROCESSING": "0"}
        with self._lock:
            if self._server is None or self._server.poll() is not None or self._socket is None:
                # Once anew: a dead server is the sandbox's failure, not the code's.
                self._stop_server()
                self._start_server()
            if self._socket is None:
                raise SandboxError("the restricted sandbox is closed")
            socket.send_fds(self._socket, [b"x"], channels.far_fds())
        channels.close_far()
        channels.send_request(message)

    def _fill(self, folder: Path, request: ExecRequest, space_bytes: int) -> str | None:
        """Makes the folder of an execution; returns where the code finds the inputs."""
        workspace, tmp = folder / "workspace", folder / "tmp"
        for place in (folder, workspace, tmp):
            place.mkdir()
        self._open_to_code(folder)
        _refuse_if_larger(request.workspace, space_bytes)
        owner = (self._uid, self._uid) if self._uid is not None else (os.geteuid(), os.getegid())
        jail.copy_workspace(str(request.workspace), str(workspace), owner)
        script = workspace / SCRIPT_NAME
        script.write_bytes(request.code.encode("utf-8", "surrogatepass"))
        for place in (script, workspace, tmp):
            os.chown(place, *owner)
        if request.inputs is None:
            return None
        inputs = request.inputs.resolve()
        if self._uid is not None and not _everyone_may_reach(inputs):
            copy = folder / "inputs"
            copy.mkdir()
            jail.copy_files(str(inputs), str(copy), (0, 0))
            for place in (copy, *copy.rglob("*")):
                place.chmod(0o755 if place.is_dir() else 0o644)
            inputs = copy
        (workspace / INPUT_DIR).symlink_to(inputs)
        return str(inputs)

    def _open_to_code(self, folder: Path) -> None:
        """Lets the code's user go through a folder, but not see what else is in it."""
        if self._uid is not None:
            os.chown(folder, 0, self._uid)
            folder.chmod(0o710)
        else:
            folder.chmod(0o700)

    def _watch(self, channels: Channels, request: ExecRequest, group: SlotGroup) -> Watch:
        return _KeeperWatch(channels, request.limits, group)

    def _after(self, channels: Channels) -> None:
        folder = self._folders.pop(channels.control.fileno(), None)
        if folder is not None:
            remove_tree(folder)

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


def reading_rules(view: View) -> tuple[list[str], list[str]]:
    """Returns what code may read and where it may list names, for a view.

    Landlock cannot take something out of a folder that it has allowed. So a folder with something masked in it may be
    listed only, and what else is in it is allowed piece by piece.
    """
    masks = {Path(path) for path in (*view.mask_folders, *view.mask_files)}
    masks |= {path.resolve() for path in masks}
    readable: list[str] = []
    listable: list[str] = []
    waiting = [Path(source) for source, _ in view.binds]
    while waiting:
        path = waiting.pop()
        if path in masks:
            continue
        if not any(mask.is_relative_to(path) for mask in masks):
            readable.append(str(path))
            continue
        listable.append(str(path))
        # Rules follow links: what a link leads to has a rule of its own, or none.
        waiting += [child for child in path.iterdir() if not child.is_symlink() or child.is_file()]
    return list(dict.fromkeys(readable)), list(dict.fromkeys(listable))


def _refuse_if_larger(workspace: Path, space_bytes: int) -> None:
    size = sum(
        os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
        for folder, _, names in os.walk(workspace)
        for name in names
    )
    if size > space_bytes:
        reason = f"it holds {size} bytes, and {space_bytes} fit"
        raise ConfigError(f"the workspace {workspace} cannot be copied into the sandbox: {reason}; raise file_mb")


def _everyone_may_reach(folder: Path) -> bool:
    passable = stat.S_IXOTH
    return all(parent.stat().st_mode & passable for parent in folder.parents) and jail.everyone_may_read(str(folder))


@dataclass
class _KeeperWatch(Watch):
    """A watch over a keeper, which is asked to end rather than killed: what it keeps would live on without it."""

    _limit: tuple[ExecStatus, str] | None = None
    _cpu_s: float = 0.0

    def close(self) -> None:
        """Waits until the keeper, and with it everything, is dead."""
        if self.init_fd >= 0:
            self._kill()
            with select.epoll() as poll:
                poll.register(self.init_fd, select.EPOLLIN)
                poll.poll(_DEATH_S)
        super().close()

    def disk_full(self) -> bool:
        """Says no: the code has no file system of its own that could be full."""
        return False

    def result(self, reading: Reading) -> ExecResult:
        """Puts together what is known; see :meth:`Watch.result`."""
        if self._limit is not None and self.killed_for is None:
            self.killed_for, self.kill_detail = self._limit
        result = super().result(reading)
        return result.replace(cpu_s=max(self._cpu_s, result.cpu_s))

    def _kill(self) -> None:
        if self.init_fd >= 0:
            try:
                signal.pidfd_send_signal(self.init_fd, signal.SIGTERM)
            except OSError as error:
                if error.errno != errno.ESRCH:
                    raise

    def _judge_early_death(self) -> None:
        if self._limit is None:
            super()._judge_early_death()

    def _handle(self, event: dict[str, Any]) -> None:
        if event["event"] == "limit":
            self._limit = ExecStatus(event["status"]), event["detail"]
        elif event["event"] == "usage":
            self._cpu_s = float(event["cpu_s"])
        super()._handle(event)
