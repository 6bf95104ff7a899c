"""The cold reference backend: bubblewrap makes the view, a fresh interpreter runs the code behind the same inner walls.

Covers: what the forkserver covers, but for the number of files in the workspace.
Costs a cold start of the interpreter and of every import, some seconds for ML code. It serves as the reference that the
forkserver must agree with, and for code that needs a clean process.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from sandmle.errors import SandboxError, SandboxUnavailableError
from sandmle.sandbox.backend import NAMESPACES_HELP, LocalBackend
from sandmle.sandbox.base import Capability, ExecRequest
from sandmle.sandbox.boot import environment, inner_command
from sandmle.sandbox.inner import jail
from sandmle.sandbox.scratch import Scratch, remove_tree
from sandmle.sandbox.supervise import Channels
from sandmle.sandbox.view import View, library_view

_BOOT = "/.boot"
# Inside the view there are no control groups to join, so bubblewrap itself is started in them.
_JOIN_AND_RUN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1"; shift; n=$((n-1)); done; exec "$@"'
_HELD = frozenset(
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
_KEPT_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SYS_RESOURCE")


class BwrapSandbox(LocalBackend):
    """Starts a fresh interpreter in bubblewrap for every execution."""

    name = "bwrap"
    own_processes = 2

    def __init__(self, *, workers: int | None = None, python: str | None = None, threads: int = 1) -> None:
        """See :class:`LocalBackend`.

        Args:
            workers: Executions at the same time; one per available core by default.
            python: The interpreter for the code; this one by default.
            threads: Threads that numerical libraries may use in one execution.
        """
        super().__init__(workers=workers, python=python, threads=threads)
        self._view: View | None = None
        self._program = ""
        self._scratch: Scratch | None = None
        self._running: dict[int, tuple[subprocess.Popen[bytes] | None, Path | None]] = {}

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
        self._scratch = Scratch()
        # Bubblewrap lets what it binds keep its owner and mode, and the code is another user.
        (self._scratch.path / "empty").mkdir(mode=0o755)
        for path, text in self.view.files.items():
            file = self._scratch.path / "files" / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self._try_bubblewrap()
        self.capabilities = _HELD | (_COUNTED if self.has_groups else frozenset())

    def _try_bubblewrap(self) -> None:
        """Makes the view once, for bubblewrap's own words if it cannot."""
        arguments = self._arguments(None, 1 << 20, as_root=os.geteuid() == 0)
        done = subprocess.run(
            [self._program, *arguments, "--", "/bin/true"], capture_output=True, text=True, env=environment(1)
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise SandboxUnavailableError(f"the bwrap sandbox cannot start: {reason}; {NAMESPACES_HELP}")

    def _launch(self, request: ExecRequest, channels: Channels, message: dict[str, Any]) -> None:
        root = os.geteuid() == 0
        groups, message["cgroups"] = message["cgroups"], []
        inputs, copied = self._readable_inputs(request)
        self._running[channels.control.fileno()] = (None, copied)
        workspace_fd = os.open(request.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            # The host's folder is in no mount of the view: process 1 copies from this descriptor, then closes it.
            message["workspace"] = f"/proc/self/fd/{workspace_fd}"
            fds = [*channels.far_fds(), workspace_fd]
            mode = "root" if root else "user_namespace"
            inner = inner_command(self.view.python, "init", [*map(str, fds), mode], root=_BOOT)
            join = ["/bin/sh", "-c", _JOIN_AND_RUN, "sh", str(len(groups)), *groups]
            arguments = self._arguments(inputs, message["space_bytes"], as_root=root)
            process = subprocess.Popen(
                [*join, self._program, *arguments, "--", *inner],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Bubblewrap's own process 1 keeps the caller's environment whatever it shows to its child.
                env=environment(self.threads),
                pass_fds=fds,
                start_new_session=True,
            )
        finally:
            os.close(workspace_fd)
        self._running[channels.control.fileno()] = (process, copied)
        channels.close_far()
        channels.send_request(message)

    def _arguments(self, inputs: Path | None, space_bytes: int, *, as_root: bool) -> list[str]:
        view, scratch = self.view, self._need_scratch()
        arguments = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        arguments += ["--die-with-parent", "--as-pid-1", "--tmpfs", "/"]
        if as_root:
            # Process 1 gives these up as soon as it has taken on the slot's user.
            arguments += ["--cap-drop", "ALL", *(part for cap in _KEPT_CAPABILITIES for part in ("--cap-add", cap))]
        else:
            arguments += ["--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"]
        # First, so that libraries below /tmp stay visible.
        arguments += ["--perms", "1777", "--size", str(space_bytes), "--tmpfs", "/tmp"]
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
        for place, mode in (("/dev/shm", "1777"), (jail.WORKSPACE, "0755")):
            arguments += ["--perms", mode, "--size", str(space_bytes), "--tmpfs", place]
        if inputs is not None:
            arguments += ["--ro-bind", str(inputs), jail.INPUT]
        return [*arguments, "--remount-ro", "/", "--chdir", jail.WORKSPACE]

    def _readable_inputs(self, request: ExecRequest) -> tuple[Path | None, Path | None]:
        """Returns the inputs as a folder that every user may read, and the copy made for that, if any."""
        if request.inputs is None:
            return None, None
        inputs = request.inputs.resolve()
        if os.geteuid() != 0 or jail.everyone_may_read(str(inputs)):
            return inputs, None
        copy = Path(tempfile.mkdtemp(prefix="inputs-", dir=self._need_scratch()))
        copy.chmod(0o755)
        jail.copy_files(str(inputs), str(copy), (0, 0))
        return copy, copy

    def _after(self, channels: Channels) -> None:
        process, copied = self._running.pop(channels.control.fileno(), (None, None))
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if copied is not None:
            remove_tree(copied)

    def _distrust(self) -> None:
        """Executions share nothing that could be broken."""

    def _need_scratch(self) -> Path:
        if self._scratch is None:
            raise SandboxError("the bwrap sandbox is closed")
        return self._scratch.path

    def _shut(self) -> None:
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None
