"""Watches one execution from outside: deadlines, output, limits. It believes the kernel, never the code."""

import contextlib
import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sandmle.errors import ConfigError, SandboxError
from sandmle.records import ExecResult, ExecStatus, Limits
from sandmle.sandbox.cgroups import Reading, SlotGroup
from sandmle.sandbox.output import HeadTail

KEPT_OUTPUT_BYTES = 200_000
SETUP_S = 30.0
"""Seconds until the first line of the code; longer means that the sandbox is broken."""
_DRAIN_S = 0.2
_CPU_LOOK_S = 0.1
_NEARLY = 0.9
"""The kernel's clock for a process's limit and the one that it reports differ a little."""
_DEATH_S = 20.0
"""Seconds that the kernel gets to end an execution after the kill."""
_CHUNK = 1 << 16
_MAX_FDS = 8
_KILLED = (ExecStatus.TIMEOUT, ExecStatus.OOM, ExecStatus.OUTPUT_LIMIT)
_LENGTH_BYTES = 8


class NeverStartedError(SandboxError):
    """Process 1 died before the code's first line: nothing has happened yet, so it may be tried anew."""


@dataclass
class Channels:
    """The supervisor's and the execution's ends of everything between them."""

    control: socket.socket
    far_control: socket.socket
    out: int
    far_out: int
    err: int
    far_err: int

    @classmethod
    def open(cls) -> "Channels":
        """Makes a fresh set."""
        control, far_control = socket.socketpair()
        control.settimeout(SETUP_S)
        out, far_out = os.pipe2(os.O_CLOEXEC)
        err, far_err = os.pipe2(os.O_CLOEXEC)
        for fd in (out, err):
            os.set_blocking(fd, False)
        return cls(control, far_control, out, far_out, err, far_err)

    def far_fds(self) -> list[int]:
        """Returns the execution's ends: control, stdout, stderr."""
        return [self.far_control.fileno(), self.far_out, self.far_err]

    def close_far(self) -> None:
        """Closes the execution's ends in this process, so that their closing over there is seen."""
        if self.far_control.fileno() >= 0:
            self.far_control.close()
            os.close(self.far_out)
            os.close(self.far_err)

    def close(self) -> None:
        """Closes everything."""
        self.close_far()
        self.control.close()
        os.close(self.out)
        os.close(self.err)

    def send_request(self, request: dict[str, Any]) -> None:
        """Sends the request to process 1 of the execution. If that is dead already, the watch finds out why."""
        data = json.dumps(request).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.control.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)


@dataclass
class Watch:
    """One execution while it runs. ``run`` returns when everything in it is dead."""

    channels: Channels
    limits: Limits
    group: SlotGroup
    init_fd: int = -1
    """pidfd of process 1."""
    space_fds: list[int] = field(default_factory=list)
    """The places that the code may fill, readable after all is dead; the workspace first."""
    aborted: bool = False
    """Set from another thread when the sandbox is closed."""
    started_s: float | None = None
    ended_s: float = 0.0
    exit_event: dict[str, Any] | None = None
    killed_for: ExecStatus | None = None
    kill_detail: str = ""
    out: HeadTail = field(default_factory=lambda: HeadTail(KEPT_OUTPUT_BYTES))
    err: HeadTail = field(default_factory=lambda: HeadTail(KEPT_OUTPUT_BYTES))
    _pending: bytes = b""
    _next_look_s: float = 0.0
    _killed_s: float | None = None

    def run(self) -> None:
        """Watches until process 1, and with it everything, is dead.

        Raises:
            SandboxError: The execution could not be set up.
        """
        setup_deadline_s = time.monotonic() + SETUP_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.channels.control, selectors.EVENT_READ, "control")
            selector.register(self.channels.out, selectors.EVENT_READ, self.out)
            selector.register(self.channels.err, selectors.EVENT_READ, self.err)
            dead = False
            while not dead:
                timeout_s = self._timeout_s(setup_deadline_s)
                for key, _ in selector.select(timeout_s):
                    if key.data == "control":
                        if not self._read_control(selector):
                            selector.unregister(self.channels.control)
                    elif key.data == "init":
                        dead = True
                    elif not self._read_output(key.fd, key.data):
                        selector.unregister(key.fd)
                self._enforce(setup_deadline_s)
                if self.init_fd < 0 and "control" not in [key.data for key in selector.get_map().values()]:
                    dead = True
            self.ended_s = time.monotonic()
            self._drain(selector)
        if self.killed_for is None and (self.started_s is None or self.exit_event is None):
            self._judge_early_death()

    def close(self) -> None:
        """Kills what is left and closes the descriptors."""
        self._kill()
        for fd in (self.init_fd, *self.space_fds):
            if fd >= 0:
                os.close(fd)
        self.init_fd, self.space_fds = -1, []

    def disk_full(self) -> bool:
        """Says whether a place that the code may fill has no room left."""
        spaces = [os.fstatvfs(fd) for fd in self.space_fds]
        return any(space.f_bavail == 0 or space.f_favail == 0 for space in spaces)

    def result(self, reading: Reading) -> ExecResult:
        """Puts together what is known.

        Args:
            reading: The control group's counters.
        """
        event = self.exit_event or {}
        wait_status = event.get("status")
        exit_code = os.waitstatus_to_exitcode(wait_status) if wait_status is not None else None
        cpu_s = reading.cpu_s if reading.cpu_s is not None else float(event.get("cpu_s", 0.0))
        status, detail = self._status(exit_code, reading, cpu_s)
        start_s = self.started_s if self.started_s is not None else self.ended_s
        return ExecResult(
            status=status,
            exit_code=None if status in _KILLED else exit_code,
            stdout=self.out.text(),
            stderr=self.err.text(),
            stdout_bytes=self.out.total,
            stderr_bytes=self.err.total,
            wall_s=self.ended_s - start_s,
            cpu_s=cpu_s,
            peak_memory_mb=reading.peak_memory_mb,
            detail=detail,
        )

    def _status(self, exit_code: int | None, reading: Reading, cpu_s: float) -> tuple[ExecStatus, str]:
        if self.killed_for is not None:
            return self.killed_for, self.kill_detail
        for status, detail in self._passed_limits(reading):
            return status, detail
        if exit_code is None:
            return ExecStatus.TIMEOUT, f"killed after {self.limits.wall_s:g} s"
        if exit_code == 0:
            return ExecStatus.OK, ""
        if exit_code in (-signal.SIGXCPU, -signal.SIGKILL) and cpu_s >= _NEARLY * self._cpu_limit_s():
            return ExecStatus.TIMEOUT, f"killed: more than {self._cpu_limit_s():g} s of CPU time"
        return self._other_failure(exit_code, reading)

    def _passed_limits(self, reading: Reading) -> Iterator[tuple[ExecStatus, str]]:
        """Yields the limits that end an execution whatever the code makes of them."""
        if reading.memory_kills:
            yield ExecStatus.OOM, f"killed: more than {self.limits.memory_mb} MB of memory"
        if max(self.out.total, self.err.total) > self.limits.output_bytes:
            yield ExecStatus.OUTPUT_LIMIT, f"killed: more than {self.limits.output_bytes} bytes of output"

    def _other_failure(self, exit_code: int, reading: Reading) -> tuple[ExecStatus, str]:
        if exit_code == -signal.SIGXFSZ:
            return ExecStatus.LIMIT, f"killed: a file larger than {self.limits.file_mb} MB"
        if reading.process_refusals:
            return ExecStatus.LIMIT, f"failed at the limit of {self.limits.processes} processes and threads"
        if self.disk_full():
            return ExecStatus.LIMIT, f"failed with {self.limits.file_mb} MB of files, all that there is room for"
        return ExecStatus.ERROR, ""

    def _cpu_limit_s(self) -> float:
        return self.limits.cpu_s if self.limits.cpu_s is not None else self.limits.wall_s

    def _timeout_s(self, setup_deadline_s: float) -> float:
        now = time.monotonic()
        deadline_s = setup_deadline_s if self.started_s is None else self.started_s + self.limits.wall_s
        return max(0.0, min(deadline_s - now, _CPU_LOOK_S)) if self._killed_s is None else _CPU_LOOK_S

    def _enforce(self, setup_deadline_s: float) -> None:
        now = time.monotonic()
        if self.aborted:
            self._kill()
            raise SandboxError("the sandbox was closed while code was running")
        if self._killed_s is not None:
            if now > self._killed_s + _DEATH_S:
                raise SandboxError(f"the kernel did not end an execution within {_DEATH_S:g} s")
            return
        if self.started_s is None:
            if now > setup_deadline_s:
                self._kill()
                raise SandboxError(f"the sandbox could not start the code within {SETUP_S:g} s")
            return
        if now >= self.started_s + self.limits.wall_s:
            self._stop(ExecStatus.TIMEOUT, f"killed after {self.limits.wall_s:g} s")
        elif max(self.out.total, self.err.total) > self.limits.output_bytes:
            self._stop(*next(self._passed_limits(Reading())))
        elif now >= self._next_look_s:
            self._next_look_s = now + _CPU_LOOK_S
            self._look_at_counters()

    def _look_at_counters(self) -> None:
        reading = self.group.read()
        for status, detail in self._passed_limits(reading):
            # The kernel has killed one process of it; the others may wait for that one for ever.
            self._stop(status, detail)
            return
        if reading.cpu_s is not None and reading.cpu_s > self._cpu_limit_s():
            self._stop(ExecStatus.TIMEOUT, f"killed: more than {self._cpu_limit_s():g} s of CPU time")

    def _judge_early_death(self) -> None:
        """Process 1 is gone without having told how the code ended; nobody but the kernel may do that."""
        for status, detail in self._passed_limits(self.group.read()):
            self.killed_for, self.kill_detail = status, detail
            return
        if self.started_s is None:
            raise NeverStartedError("the sandbox's process 1 died before the code started")
        raise SandboxError("the sandbox's process 1 died while the code was running")

    def _stop(self, status: ExecStatus, detail: str) -> None:
        # An execution that has already told its exit status ended in time: it is only being taken down.
        if self.exit_event is None:
            self.killed_for, self.kill_detail = status, detail
        self._killed_s = time.monotonic()
        self._kill()
        self.group.hurry()

    def _kill(self) -> None:
        if self.init_fd >= 0:
            try:
                signal.pidfd_send_signal(self.init_fd, signal.SIGKILL)
            except ProcessLookupError:
                return

    def _read_control(self, selector: selectors.BaseSelector) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self.channels.control, _CHUNK, _MAX_FDS, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return False  # it died with our request unread
        if fds:
            self.init_fd = fds[0]
            selector.register(self.init_fd, selectors.EVENT_READ, "init")
            self.space_fds = list(fds[1:])
        self._pending += data
        *lines, self._pending = self._pending.split(b"\n")
        for line in lines:
            self._handle(json.loads(line))
        return bool(data)

    def _handle(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "start":
            self.started_s = time.monotonic()
            self._next_look_s = self.started_s + _CPU_LOOK_S
        elif kind == "exit":
            self.exit_event = event
        elif kind == "refused":
            raise ConfigError(event["message"])
        elif kind == "failed":
            for status, detail in self._passed_limits(self.group.read()):
                self._stop(status, detail)  # the kernel killed it before it was the code
                return
            self._kill()
            what = "could not set up an execution" if self.started_s is None else "failed while the code was running"
            raise SandboxError(f"the sandbox {what}: {event['message'].strip()}")

    def _read_output(self, fd: int, sink: HeadTail) -> bool:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        sink.feed(data)
        return bool(data)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Takes what is still in the pipes; all writers are dead, so this ends at once."""
        self._read_rest_of_control()
        deadline_s = time.monotonic() + _DRAIN_S
        for key in list(selector.get_map().values()):
            if isinstance(key.data, HeadTail):
                while time.monotonic() < deadline_s and self._more(key.fd, key.data):
                    pass

    def _more(self, fd: int, sink: HeadTail) -> bool:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        sink.feed(data)
        return bool(data)

    def _read_rest_of_control(self) -> None:
        self.channels.control.setblocking(False)
        try:
            while data := self.channels.control.recv(_CHUNK):
                self._pending += data
        except (BlockingIOError, ConnectionResetError):
            pass
        *lines, self._pending = self._pending.split(b"\n")
        for line in lines:
            self._handle(json.loads(line))
