"""Memory, process count and CPU time of one execution slot, through cgroup v2 or v1, or nothing where neither works."""

import contextlib
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from sandmle.records import Limits

_ROOT = Path("/sys/fs/cgroup")
PREFIX = "sandmle-"
"""Of the names of all groups, before the number of the process that made them."""
_MB = 1 << 20
_LONGEST = 4096
_ATTEMPTS, _PAUSE_S = 200, 0.01


@dataclass(frozen=True)
class Reading:
    """Counters of a slot since its last reset; None where the kernel does not tell."""

    cpu_s: float | None = None
    peak_memory_mb: float | None = None
    memory_kills: int = 0
    process_refusals: int = 0


class SlotGroup(Protocol):
    """The control group of one slot, used by one execution at a time."""

    def join_paths(self) -> list[str]:
        """Returns the files into which a process writes ``0`` to join."""
        ...

    def reset(self, limits: Limits, *, own_processes: int) -> None:
        """Sets the limits of the next execution and starts counting from zero.

        Args:
            limits: Memory and processes of the code.
            own_processes: Processes of the sandbox's own that will be in the group.
        """
        ...

    def hurry(self) -> None:
        """Gives what is being killed the processor, so that it dies at once on a busy machine."""
        ...

    def read(self) -> Reading:
        """Returns the counters."""
        ...

    def remove(self) -> None:
        """Removes the group; it must be empty."""
        ...


class NoGroup:
    """Stands in where control groups cannot be used."""

    def join_paths(self) -> list[str]:
        """Returns nothing to join."""
        return []

    def reset(self, limits: Limits, *, own_processes: int) -> None:
        """Does nothing."""

    def hurry(self) -> None:
        """Does nothing."""

    def read(self) -> Reading:
        """Knows nothing."""
        return Reading()

    def remove(self) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class _Counters:
    cpu: float = 0.0
    kills: int = 0
    refusals: int = 0

    def since(self, base: "_Counters", peak_memory_mb: float | None) -> Reading:
        return Reading(self.cpu - base.cpu, peak_memory_mb, self.kills - base.kills, self.refusals - base.refusals)


class _Knobs:
    """The files of one control group, opened once: to open them for each execution costs more than to use them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._fds: dict[str, int] = {}

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def read(self, name: str) -> str:
        return os.pread(self._open(name), _LONGEST, 0).decode()

    def write(self, name: str, text: str) -> None:
        os.pwrite(self._open(name), text.encode(), 0)

    def write_if_there(self, name: str, text: str) -> None:
        # memory.peak can be written from Linux 6.12 on, memsw exists only with swap accounting.
        with contextlib.suppress(OSError):
            self.write(name, text)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def keyed(self, name: str, key: str) -> int:
        """Returns a number from a file of lines ``key number``; 0 if the file or the key is missing."""
        try:
            lines = self.read(name).splitlines()
        except FileNotFoundError:
            return 0
        return next((int(line[len(key) + 1 :]) for line in lines if line.startswith(f"{key} ")), 0)

    def remove(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds = {}
        _remove(self.folder)

    def _open(self, name: str) -> int:
        if name not in self._fds:
            path = self.path(name)
            try:
                self._fds[name] = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                raise
            except OSError:  # it can only be read
                self._fds[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return self._fds[name]


class V1Group:
    """A slot under cgroup v1: memory, pids and cpuacct each in its own tree."""

    def __init__(self, folders: dict[str, Path]) -> None:
        """Takes the group's folder in the tree of each controller."""
        self._knobs = {controller: _Knobs(folder) for controller, folder in folders.items()}
        self._base = _Counters()
        self._set: tuple[str, str] | None = None
        self._hurried = True

    def join_paths(self) -> list[str]:
        """Returns the ``cgroup.procs`` of every controller."""
        return [knobs.path("cgroup.procs") for knobs in self._knobs.values()]

    def reset(self, limits: Limits, *, own_processes: int) -> None:
        """Sets memory and process limits, and forgets the peak."""
        memory = self._knobs["memory"]
        size, processes = str(limits.memory_mb * _MB), str(limits.processes + own_processes)
        if self._set != (size, processes):
            # The limit with swap may never be below the one without: lift it, set the one, lower it again.
            memory.write_if_there("memory.memsw.limit_in_bytes", "-1")
            _write_once_empty(memory, "memory.limit_in_bytes", size)
            memory.write_if_there("memory.memsw.limit_in_bytes", size)
            self._knobs["pids"].write("pids.max", processes)
            self._set = size, processes
        memory.write("memory.max_usage_in_bytes", "0")
        if self._hurried:
            self._share("1024")
            self._hurried = False
        self._base = self._now()

    def hurry(self) -> None:
        """Raises the group's share of the processor until the next reset."""
        self._share("200000")
        self._hurried = True

    def _share(self, weight: str) -> None:
        if "cpu" in self._knobs:
            self._knobs["cpu"].write("cpu.shares", weight)

    def read(self) -> Reading:
        """Returns the counters since the last reset."""
        peak = int(self._knobs["memory"].read("memory.max_usage_in_bytes"))
        return self._now().since(self._base, peak / _MB)

    def remove(self) -> None:
        """Removes the folders."""
        for knobs in self._knobs.values():
            knobs.remove()

    def _now(self) -> _Counters:
        return _Counters(
            cpu=int(self._knobs["cpuacct"].read("cpuacct.usage")) / 1e9,
            kills=self._knobs["memory"].keyed("memory.oom_control", "oom_kill"),
            refusals=self._knobs["pids"].keyed("pids.events", "max"),
        )


def _write_once_empty(memory: _Knobs, name: str, size: str) -> None:
    """Sets a limit; for a moment the group may still hold more than that of the execution before."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            memory.write(name, size)
        except OSError as error:
            if error.errno != errno.EBUSY or not left:
                raise
            memory.write_if_there("memory.force_empty", "0")
            time.sleep(_PAUSE_S)
        else:
            return


class V2Group:
    """A slot under cgroup v2."""

    def __init__(self, folder: Path) -> None:
        """Takes the group's folder."""
        self._knobs = _Knobs(folder)
        self._has_peak = self._knobs.has("memory.peak")
        self._base = _Counters()

    def join_paths(self) -> list[str]:
        """Returns the group's ``cgroup.procs``."""
        return [self._knobs.path("cgroup.procs")]

    def reset(self, limits: Limits, *, own_processes: int) -> None:
        """Sets memory and process limits; the peak counts anew where the kernel allows it (6.12 and later)."""
        knobs = self._knobs
        knobs.write("memory.max", str(limits.memory_mb * _MB))
        knobs.write_if_there("memory.swap.max", "0")
        knobs.write("pids.max", str(limits.processes + own_processes))
        # For who reads through the same descriptor.
        knobs.write_if_there("memory.peak", "0")
        knobs.write_if_there("cpu.weight", "100")
        self._base = self._now()

    def hurry(self) -> None:
        """Raises the group's share of the processor until the next reset."""
        self._knobs.write_if_there("cpu.weight", "10000")

    def read(self) -> Reading:
        """Returns the counters since the last reset."""
        peak_mb = int(self._knobs.read("memory.peak")) / _MB if self._has_peak else None
        return self._now().since(self._base, peak_mb)

    def remove(self) -> None:
        """Removes the folder."""
        self._knobs.remove()

    def _now(self) -> _Counters:
        return _Counters(
            cpu=self._knobs.keyed("cpu.stat", "usage_usec") / 1e6,
            kills=self._knobs.keyed("memory.events", "oom_kill"),
            refusals=self._knobs.keyed("pids.events", "max"),
        )


CgroupKind = Literal["v1", "v2", "none"]


def cgroup_kind() -> tuple[CgroupKind, str]:
    """Returns what kind of control groups this process can make, and if none, why."""
    if os.geteuid() != 0:
        return "none", "making control groups needs root (or a delegated group)"
    if (_ROOT / "cgroup.controllers").is_file():
        have = set((_ROOT / "cgroup.controllers").read_text().split())
        if not {"memory", "pids"} <= have:
            return "none", "the memory and pids controllers are not offered to this machine's cgroup v2 tree"
        return ("v2", "") if os.access(_ROOT, os.W_OK) else ("none", "/sys/fs/cgroup is read-only")
    missing = [name for name in ("memory", "pids", "cpuacct") if not (_ROOT / name / "cgroup.procs").is_file()]
    if missing:
        return "none", f"no cgroup v1 controller {', '.join(missing)} is mounted"
    if not os.access(_ROOT / "memory", os.W_OK):
        return "none", "/sys/fs/cgroup is read-only"
    return "v1", ""


def make_slot(sandbox_id: str, index: int) -> SlotGroup:
    """Makes the control group of a slot, or a stand-in where control groups cannot be used.

    Args:
        sandbox_id: Tells the sandboxes of this process apart.
        index: The slot.
    """
    kind, _ = cgroup_kind()
    name = f"{PREFIX}{os.getpid()}-{sandbox_id}-{index}"
    try:
        if kind == "v1":
            # A group of its own under "cpu" gets its share of the cores however many processes it starts.
            controllers = ["memory", "pids", "cpuacct"] + (
                ["cpu"] if (_ROOT / "cpu" / "cgroup.procs").is_file() else []
            )
            folders = {controller: own_v1(controller) / name for controller in controllers}
            for folder in folders.values():
                folder.mkdir(exist_ok=True)
            return V1Group(folders)
        if kind == "v2":
            (_ROOT / "cgroup.subtree_control").write_text("+memory +pids +cpu")
            folder = _ROOT / name
            folder.mkdir(exist_ok=True)
            return V2Group(folder)
    except OSError:
        # Read-only or undelegated trees show only on writing; the backend then declares fewer capabilities.
        return NoGroup()
    return NoGroup()


def remove_leftovers() -> None:
    """Removes groups of processes that are gone: a killed parent could not clean up."""
    trees = [_ROOT, *(_ROOT / name for name in ("memory", "pids", "cpuacct", "cpu"))]
    for tree in trees:
        # Unlike a glob this walk goes on when another process removes a group under it.
        for parent, names, _ in os.walk(tree):
            for name in names:
                owner = name.removeprefix(PREFIX).split("-")[0]
                if name.startswith(PREFIX) and owner.isdigit() and not Path(f"/proc/{owner}").exists():
                    _remove(Path(parent, name))


def own_v1(controller: str) -> Path:
    """Returns this process's own v1 group of a controller: memory limits set above it keep holding."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            folder = _ROOT / controller / path.lstrip("/")
            return folder if folder.is_dir() else _ROOT / controller
    return _ROOT / controller


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
