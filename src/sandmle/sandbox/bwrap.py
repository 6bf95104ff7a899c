"""The cold reference backend: bubblewrap makes the view, a fresh interpreter runs the code behind the same inner walls.

Covers: what the forkserver covers, but for the size of the workspace, which lies on the host's disk.
Costs a cold start of the interpreter and of every import, some seconds for ML code. It serves as the reference that the
forkserver must agree with, and for code that needs a clean process.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from sandmle.errors import SandboxError, SandboxUnavailableError
from sandmle.sandbox.backend import LocalBackend
from sandmle.sandbox.base import Capability, ExecRequest
from sandmle.sandbox.boot import environment, inner_command
from sandmle.sandbox.collect import copy_back
from sandmle.sandbox.supervise import SETUP_S, Channels, Watch
from sandmle.sandbox.view import View, library_view

_BOOT = "/.boot"
# Inside the view there are no control groups to join, so bubblewrap itself is started in them.
_JOIN_AND_RUN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1"; shift; n=$((n-1)); done; exec "$@"'
_HELD = frozenset(
    {
        Capability.FILESYSTEM,
        Capability.PROCESS,
        Capability.NETWORK,
        Capability.PRIVILEGE,
        Capability.SYSCALLS,
        Capability.LIFETIME,
    }
)
_COUNTED = frozenset({Capability.MEMORY, Capability.PROCESS_COUNT})
_KEPT_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SYS_RESOURCE")


class BwrapSandbox(LocalBackend):
    """Starts a fresh interpreter in bubblewrap for every execution."""

    name = "bwrap"

    def __init__(self, *, workers: int | None = None, python: str | None = None, threads: int = 1) -> None:
        """See :class:`LocalBackend`.

        Args:
            workers: Executions at the same time; one per available core by default.
            python: The interpreter for the code; this one by default.
            threads: Threads that numerical libraries may use in one execution.
        """
        super().__init__(workers=workers, python=python)
        self._threads = threads
        self._view: View | None = None
        self._program = ""
        self._scratch: Path | None = None
        self._running: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}

    @property
    def view(self) -> View:
        """What code sees of the machine's files."""
        if self._view is None:
            self._view = library_view(self.python)
        return self._view

    def _open(self) -> None:
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxUnavailableError("the bwrap sandbox needs bubblewrap; run: sudo apt install bubblewrap")
        self._program = program
        self._scratch = Path(tempfile.mkdtemp(prefix=f"sandmle-{os.getpid()}-"))
        self._scratch.chmod(0o711)
        (self._scratch / "empty").mkdir(mode=0o755)
        for path, text in self.view.files.items():
            file = self._scratch / "files" / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.capabilities = _HELD | (_COUNTED if self.has_groups else frozenset())

    def _launch(self, request: ExecRequest, channels: Channels, message: dict[str, Any]) -> None:
        folder = self._private_copy(request, message["uid"])
        root = os.geteuid() == 0
        inner = inner_command(
            self.view.python,
            "init",
            [*map(str, channels.far_fds()), "root" if root else "user_namespace"],
            root=_BOOT,
        )
        groups = message.pop("cgroups")
        message["cgroups"] = []
        join = ["/bin/sh", "-c", _JOIN_AND_RUN, "sh", str(len(groups)), *groups]
        command = [*join, self._program, *self._arguments(request, folder, as_root=root), "--", *inner]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Bubblewrap's own process 1 keeps the caller's environment whatever it shows to its child.
            env=environment(self._threads),
            pass_fds=channels.far_fds(),
            start_new_session=True,
        )
        self._running[channels.control.fileno()] = (process, folder)
        channels.close_far()
        channels.send_request(message)

    def _arguments(self, request: ExecRequest, folder: Path, *, as_root: bool) -> list[str]:
        view, scratch = self.view, self._need_scratch()
        arguments = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        arguments += ["--die-with-parent", "--as-pid-1", "--tmpfs", "/"]
        if as_root:
            # Process 1 gives these up as soon as it has taken on the slot's user.
            arguments += ["--cap-drop", "ALL", *(part for cap in _KEPT_CAPABILITIES for part in ("--cap-add", cap))]
        else:
            arguments += ["--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"]
        places = (
            [Path(target) for _, target in view.binds] + [Path(path) for path in view.files] + [Path(_BOOT) / "sandbox"]
        )
        for parent in sorted({str(parent) for place in places for parent in place.parents if parent != Path("/")}):
            # Left to itself, bubblewrap makes these for its own user only.
            arguments += ["--perms", "0755", "--dir", parent]
        for source, target in view.binds:
            arguments += ["--ro-bind", source, target]
        for target, link in view.symlinks:
            arguments += ["--symlink", target, link]
        for path in view.files:
            arguments += ["--ro-bind", str(scratch / "files" / path.lstrip("/")), path]
        for masked in view.mask_folders:
            arguments += ["--ro-bind", str(scratch / "empty"), masked]
        for masked in view.mask_files:
            arguments += ["--ro-bind", "/dev/null", masked]
        inner = Path(__file__).resolve().parent / "inner"
        arguments += ["--perms", "0755", "--dir", f"{_BOOT}/sandbox", "--ro-bind", str(inner), f"{_BOOT}/sandbox/inner"]
        arguments += ["--proc", "/proc", "--dev", "/dev"]
        size = str(request.limits.file_mb << 20)
        for place in ("/tmp", "/dev/shm"):
            arguments += ["--perms", "1777", "--size", size, "--tmpfs", place]
        arguments += ["--bind", str(folder), "/workspace"]
        if request.inputs is not None:
            arguments += ["--ro-bind", str(request.inputs.resolve()), "/workspace/input"]
        return [*arguments, "--remount-ro", "/", "--chdir", "/workspace"]

    def _private_copy(self, request: ExecRequest, uid: int) -> Path:
        """Returns a copy of the workspace that belongs to the slot's user."""
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=self._need_scratch()))
        fd = os.open(request.workspace, os.O_RDONLY | os.O_DIRECTORY)
        try:
            copy_back(fd, folder, max_bytes=request.limits.file_mb << 20)
        finally:
            os.close(fd)
        (folder / "input").mkdir(exist_ok=True)
        if os.geteuid() == 0:
            for place, folders, names in os.walk(folder):
                for name in ["", *folders, *names]:
                    os.chown(Path(place) / name, uid, uid, follow_symlinks=False)
        return folder

    def _workspace_fd(self, request: ExecRequest, watch: Watch) -> int:
        process, folder = self._running[watch.channels.control.fileno()]
        # Process 1 is dead; bubblewrap itself follows at once.
        process.wait(timeout=SETUP_S)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def _after(self, channels: Channels) -> None:
        process, folder = self._running.pop(channels.control.fileno(), (None, None))
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if folder is not None:
            _remove_tree(folder)

    def _need_scratch(self) -> Path:
        if self._scratch is None:
            raise SandboxError("the bwrap sandbox is closed")
        return self._scratch

    def _shut(self) -> None:
        if self._scratch is not None:
            _remove_tree(self._scratch)
            self._scratch = None


def _remove_tree(folder: Path) -> None:
    """Removes a folder; what died a moment ago may still hold files open, so a failure is tried once more."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        time.sleep(0.05)
        shutil.rmtree(folder, ignore_errors=True)
