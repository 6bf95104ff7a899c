"""What the local backends share: checking a request, running it in a slot, taking out the files."""

import os
import platform
import secrets
import stat
from abc import ABC, abstractmethod
from typing import Any, Self

from sandmle.errors import ConfigError, SandboxError, SandboxUnavailableError
from sandmle.records import ExecResult
from sandmle.sandbox import cgroups, scratch, users
from sandmle.sandbox.base import Capability, ExecRequest
from sandmle.sandbox.boot import environment
from sandmle.sandbox.collect import collect, copy_back
from sandmle.sandbox.inner import jail
from sandmle.sandbox.slots import Slots
from sandmle.sandbox.supervise import Channels, NeverStartedError, Watch
from sandmle.sandbox.view import View

_MB = 1 << 20
_SPACE_FOR_OURSELVES = 1 << 18
NEEDS_LINUX = "sandboxes need Linux: use a Linux machine, a virtual one or WSL 2"
NAMESPACES_HELP = (
    "it needs root, or unprivileged user namespaces (on Ubuntu 24.04: sudo sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0); or name the weaker backend, restricted; `sandmle doctor` tells "
    "more"
)
"""What every backend that makes namespaces needs."""


class LocalBackend(ABC):
    """A sandbox on this machine: slots, control groups, and a subclass that starts process 1 of an execution."""

    name: str
    capabilities: frozenset[Capability] = frozenset()

    own_processes = 1
    """Processes of the sandbox's own in the control group of an execution."""
    fresh_places: tuple[str, ...] = ("/dev", "/proc", jail.WORKSPACE)
    """Where code sees folders of its own instead of the machine's."""
    uses_groups = True
    """The backend puts executions into control groups where it can make them."""
    has_groups = False
    """Control groups bound memory and processes, and count CPU time."""

    def __init__(self, *, workers: int | None = None, python: str | None = None, threads: int = 1) -> None:
        """Sets up nothing yet; see ``start``.

        Args:
            workers: Executions at the same time; one per available core by default.
            python: The interpreter for the code; this one by default.
            threads: Threads that numerical libraries may use in one execution.

        Raises:
            ConfigError: ``workers`` is below 1 or above 64.
            SandboxUnavailableError: This is not Linux.
        """
        if platform.system() != "Linux":
            raise SandboxUnavailableError(NEEDS_LINUX)
        self.workers = workers if workers is not None else len(os.sched_getaffinity(0))
        if not 1 <= self.workers <= users.SLOTS:
            raise ConfigError(f"sandbox workers is {self.workers}; give 1 to {users.SLOTS}")
        self.python = python
        self.threads = threads
        self._slots = Slots(self.workers)
        self._groups: list[cgroups.SlotGroup] = []
        self._watches: dict[int, Watch] = {}
        self._first_uid = 0
        self._owner_pid = 0
        self._started = False

    def start(self) -> Self:
        """Makes the sandbox ready, and proves it with a self-test. Idempotent.

        Raises:
            SandboxUnavailableError: This machine lacks something; the message names it and how to get it.
        """
        if self._started:
            return self
        cgroups.remove_leftovers()
        scratch.remove_leftovers()
        sandbox_id = secrets.token_hex(4)
        self._owner_pid = os.getpid()
        self._first_uid = users.pick_first_uid()
        self._groups = [
            cgroups.make_slot(sandbox_id, index) if self.uses_groups else cgroups.NoGroup()
            for index in range(self.workers)
        ]
        self.has_groups = all(not isinstance(group, cgroups.NoGroup) for group in self._groups)
        try:
            self.view.refuse_if_covered(self.fresh_places)
            self._open()
            self._started = True
            self._prove()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | SandboxError) and not isinstance(error, SandboxUnavailableError):
                raise SandboxUnavailableError(f"the {self.name} sandbox cannot start: {error}") from error
            raise
        return self

    def execute(self, request: ExecRequest) -> ExecResult:
        """Runs code; see :meth:`sandmle.sandbox.base.Sandbox.execute`."""
        self._check(request)
        self._need_started()
        with self._slots.turn() as slot:
            self._need_started()  # it may have been closed meanwhile
            try:
                try:
                    return self._run(request, slot)
                except NeverStartedError:
                    # The server died under its hands; the next one is made anew.
                    self._distrust()
                    return self._run(request, slot)
            except OSError as error:
                raise SandboxError(f"the {self.name} sandbox failed: {error}") from error
            finally:
                self._watches.pop(slot, None)

    def close(self) -> None:
        """Ends everything that was started; executions that are under way raise SandboxError. Idempotent."""
        if self._owner_pid != os.getpid():
            return  # a fork of the process that started it; the original still uses it
        self._started = False
        for watch in list(self._watches.values()):
            watch.aborted = True
        self._slots.wait_idle()
        self._shut()
        for group in self._groups:
            group.remove()
        self._groups = []

    def __enter__(self) -> Self:
        """Starts the sandbox."""
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        """Closes the sandbox."""
        self.close()

    @property
    @abstractmethod
    def view(self) -> View:
        """What code sees of the machine's files."""

    @abstractmethod
    def _open(self) -> None:
        """Starts what all executions share, and sets ``capabilities``."""

    @abstractmethod
    def _shut(self) -> None:
        """Ends what ``_open`` started."""

    @abstractmethod
    def _launch(self, request: ExecRequest, channels: Channels, message: dict[str, Any]) -> None:
        """Starts process 1 with the far ends of the channels, and sends it the message."""

    @abstractmethod
    def _after(self, channels: Channels) -> None:
        """Removes what ``_launch`` made for the execution with these channels."""

    def _need_started(self) -> None:
        if not self._started:
            raise SandboxError(f"the {self.name} sandbox is not started; use it in a with block or call start()")
        if self._owner_pid != os.getpid():
            raise SandboxError(f"the {self.name} sandbox was started by another process; open one in each process")

    def _run(self, request: ExecRequest, slot: int) -> ExecResult:
        group = self._groups[slot]
        group.reset(request.limits, own_processes=self.own_processes)
        channels = Channels.open()
        watch = self._watches[slot] = self._watch(channels, request, group)
        try:
            self._launch(request, channels, self._message(request, slot))
            channels.close_far()
            try:
                watch.run()
            except SandboxError:
                if watch.init_fd < 0 and not watch.aborted:
                    self._distrust()
                raise
            return self._take(request, watch, group)
        finally:
            watch.close()
            self._after(channels)
            channels.close()

    def _watch(self, channels: Channels, request: ExecRequest, group: cgroups.SlotGroup) -> Watch:
        """Returns what watches an execution."""
        return Watch(channels, request.limits, group)

    @abstractmethod
    def _distrust(self) -> None:
        """Gives up what executions share, after one did not even get its process 1; the next one makes it anew."""

    def _prove(self) -> None:
        from sandmle.sandbox.selftest import run_self_test

        run_self_test(self)

    def _message(self, request: ExecRequest, slot: int) -> dict[str, Any]:
        limits = request.limits
        return {
            "code": request.code,
            "environment": environment(self.threads),
            "workspace": str(request.workspace.absolute()),
            "inputs": str(request.inputs.resolve()) if request.inputs is not None else None,
            "slot": slot,
            "uid": self._first_uid + slot,
            "cgroups": self._groups[slot].join_paths(),
            "uncounted": not self.has_groups,
            "rng_seed": request.rng_seed,
            "wall_s": limits.wall_s,
            "cpu_s": limits.cpu_s if limits.cpu_s is not None else limits.wall_s,
            "memory_mb": limits.memory_mb,
            "processes": limits.processes,
            "file_mb": limits.file_mb,
            "space_bytes": self._space_bytes(request),
        }

    def _space_bytes(self, request: ExecRequest) -> int:
        """What the workspace can hold: what the code may write, and what the sandbox itself puts there."""
        return request.limits.file_mb * _MB + len(request.code) * 4 + _SPACE_FOR_OURSELVES

    def _take(self, request: ExecRequest, watch: Watch, group: cgroups.SlotGroup) -> ExecResult:
        result = watch.result(group.read())
        if not watch.space_fds:
            return result  # it ran out of memory before it began
        max_bytes = request.limits.file_mb * _MB
        files = collect(watch.space_fds[0], request.collect, max_bytes=max_bytes)
        copy_back(watch.space_fds[0], request.workspace, max_bytes=max_bytes)
        return result.replace(files=files)

    def _check(self, request: ExecRequest) -> None:
        check_request(request)
        if request.inputs is not None:
            self.view.refuse_if_visible(request.inputs, "the task folder")
        self.view.refuse_if_visible(request.workspace, "the workspace")


def check_request(request: ExecRequest) -> None:
    """Refuses what no sandbox can run.

    Raises:
        ConfigError: The workspace, the inputs or a name to collect cannot be used; the message names it and the fix.
    """
    for name in request.collect:
        if name.startswith("/") or "\0" in name or {"", ".", ".."} & set(name.split("/")):
            raise ConfigError(f"cannot collect {name!r}; give a path inside the workspace")
    workspace, inputs = request.workspace, request.inputs
    try:
        status = workspace.lstat()
    except OSError as error:
        raise ConfigError(f"workspace {workspace} cannot be used: {error.strerror}; give an existing folder") from error
    if stat.S_ISLNK(status.st_mode) or not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"workspace {workspace} is not a folder of its own; give a folder, not a link")
    if not os.access(workspace, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(f"workspace {workspace} cannot be read and written by this user; change its owner or mode")
    if inputs is None:
        return
    if not inputs.is_dir():
        raise ConfigError(f"inputs {inputs} is not a folder; give an existing folder, or none")
    if not os.access(inputs, os.R_OK | os.X_OK):
        raise ConfigError(f"inputs {inputs} cannot be read by this user; change its owner or mode")
