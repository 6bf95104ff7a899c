"""What the local backends share: checking a request, running it in a slot, taking out the files."""

import os
import stat
from abc import ABC, abstractmethod
from typing import Any, Self

from sandmle.errors import ConfigError, SandboxError
from sandmle.records import ExecResult
from sandmle.sandbox import cgroups
from sandmle.sandbox.base import Capability, ExecRequest
from sandmle.sandbox.collect import collect, copy_back
from sandmle.sandbox.slots import Slots
from sandmle.sandbox.supervise import Channels, Watch
from sandmle.sandbox.view import View

_MB = 1 << 20
_FIRST_UID = 100_000
_UIDS_PER_PROCESS = 64


class LocalBackend(ABC):
    """A sandbox on this machine: slots, control groups, and a subclass that starts process 1 of an execution."""

    name: str
    capabilities: frozenset[Capability] = frozenset()

    has_groups = False
    """Control groups bound memory and processes, and count CPU time."""

    def __init__(self, *, workers: int | None = None, python: str | None = None) -> None:
        """Sets up nothing yet; see ``start``.

        Args:
            workers: Executions at the same time; one per available core by default.
            python: The interpreter for the code; this one by default.

        Raises:
            ConfigError: ``workers`` is below 1 or above 64.
        """
        self.workers = workers if workers is not None else len(os.sched_getaffinity(0))
        if not 1 <= self.workers <= _UIDS_PER_PROCESS:
            raise ConfigError(f"sandbox workers is {self.workers}; give 1 to {_UIDS_PER_PROCESS}")
        self.python = python
        self._slots = Slots(self.workers)
        self._groups: list[cgroups.SlotGroup] = []
        self._started = False

    def start(self) -> Self:
        """Makes the sandbox ready, and proves it with a self-test. Idempotent.

        Raises:
            SandboxUnavailableError: This machine lacks something; the message names it and how to get it.
        """
        if self._started:
            return self
        cgroups.remove_leftovers()
        self._groups = [cgroups.make_slot(index) for index in range(self.workers)]
        self.has_groups = not isinstance(self._groups[0], cgroups.NoGroup)
        try:
            self._open()
            self._started = True
            self._prove()
        except BaseException:
            self.close()
            raise
        return self

    def execute(self, request: ExecRequest) -> ExecResult:
        """Runs code; see :meth:`sandmle.sandbox.base.Sandbox.execute`."""
        self._check(request)
        if not self._started:
            raise SandboxError(f"the {self.name} sandbox is not started; use it in a with block or call start()")
        with self._slots.turn() as slot:
            group = self._groups[slot]
            group.reset(request.limits)
            channels = Channels.open()
            watch = Watch(channels, request.limits, group)
            try:
                self._launch(request, channels, self._message(request, slot))
                channels.close_far()
                watch.run()
                return self._take(request, watch, group)
            except OSError as error:
                raise SandboxError(f"the {self.name} sandbox failed: {error}") from error
            finally:
                watch.close()
                self._after(channels)
                channels.close()

    def close(self) -> None:
        """Ends everything that was started. Idempotent."""
        self._started = False
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
    def _workspace_fd(self, request: ExecRequest, watch: Watch) -> int:
        """Returns a new descriptor of the workspace as the code left it."""

    @abstractmethod
    def _after(self, channels: Channels) -> None:
        """Removes what ``_launch`` made for the execution with these channels."""

    def _prove(self) -> None:
        from sandmle.sandbox.selftest import run_self_test

        run_self_test(self)

    def _message(self, request: ExecRequest, slot: int) -> dict[str, Any]:
        limits = request.limits
        return {
            "code": request.code,
            "workspace": str(request.workspace.absolute()),
            "inputs": str(request.inputs.resolve()) if request.inputs is not None else None,
            "uid": self._slot_uid(slot),
            "cgroups": self._groups[slot].join_paths(),
            "limit_data": not self.has_groups,
            "rng_seed": request.rng_seed,
            "wall_s": limits.wall_s,
            "cpu_s": limits.cpu_s if limits.cpu_s is not None else limits.wall_s,
            "memory_mb": limits.memory_mb,
            "processes": limits.processes,
            "file_mb": limits.file_mb,
        }

    def _slot_uid(self, slot: int) -> int:
        """A user id that no other slot of any sandbox on this machine has, nor any real user."""
        return _FIRST_UID + (os.getpid() % 20_000) * _UIDS_PER_PROCESS + slot

    def _take(self, request: ExecRequest, watch: Watch, group: cgroups.SlotGroup) -> ExecResult:
        folder_fd = self._workspace_fd(request, watch)
        try:
            space = os.fstatvfs(folder_fd)
            disk_full = watch.workspace_fd >= 0 and (space.f_bavail == 0 or space.f_favail == 0)
            max_bytes = request.limits.file_mb * _MB
            files = collect(folder_fd, request.collect, max_bytes=max_bytes)
            copy_back(folder_fd, request.workspace, max_bytes=max_bytes)
        finally:
            os.close(folder_fd)
        return watch.result(group.read(), disk_full=disk_full).replace(files=files)

    def _check(self, request: ExecRequest) -> None:
        try:
            status = request.workspace.lstat()
        except OSError as error:
            raise ConfigError(f"workspace {request.workspace} cannot be used: {error.strerror}") from error
        if stat.S_ISLNK(status.st_mode) or not stat.S_ISDIR(status.st_mode):
            raise ConfigError(f"workspace {request.workspace} is not a folder of its own; give a folder, not a link")
        if request.inputs is not None:
            if not request.inputs.is_dir():
                raise ConfigError(f"inputs {request.inputs} is not a folder")
            if not os.access(request.inputs, os.R_OK | os.X_OK):
                raise ConfigError(f"inputs {request.inputs} cannot be read")
            self.view.refuse_if_visible(request.inputs, "the task folder")
        self.view.refuse_if_visible(request.workspace, "the workspace")
