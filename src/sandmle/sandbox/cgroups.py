"""Memory, process count and CPU time of one execution slot, through cgroup v2 or v1, or nothing where neither works."""

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from sandmle.records import Limits

_ROOT = Path("/sys/fs/cgroup")
PREFIX = "sandmle-"
"""Of the names of all groups, before the number of the process that made them."""
_MB = 1 << 20


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


@dataclass
class _Counters:
    cpu: float = 0.0
    kills: int = 0
    refusals: int = 0


@dataclass
class V1Group:
    """A slot under cgroup v1: memory, pids and cpuacct each in its own tree."""

    folders: dict[str, Path]
    _base: _Counters = field(default_factory=_Counters)

    def join_paths(self) -> list[str]:
        """Returns the ``cgroup.procs`` of every controller."""
        return [str(folder / "cgroup.procs") for folder in self.folders.values()]

    def reset(self, limits: Limits, *, own_processes: int) -> None:
        """Sets memory and process limits, and forgets the peak."""
        memory = self.folders["memory"]
        size = str(limits.memory_mb * _MB)
        # The limit with swap may never be below the one without: lift it, set the one, lower it again.
        _write_if_there(memory / "memory.memsw.limit_in_bytes", "-1")
        _write(memory / "memory.limit_in_bytes", size)
        _write_if_there(memory / "memory.memsw.limit_in_bytes", size)
        _write(memory / "memory.max_usage_in_bytes", "0")
        _write(self.folders["pids"] / "pids.max", str(limits.processes + own_processes))
        self._share("1024")
        self._base = self._now()

    def hurry(self) -> None:
        """Raises the group's share of the processor until the next reset."""
        self._share("200000")

    def _share(self, weight: str) -> None:
        if "cpu" in self.folders:
            _write(self.folders["cpu"] / "cpu.shares", weight)

    def read(self) -> Reading:
        """Returns the counters since the last reset."""
        now = self._now()
        return Reading(
            cpu_s=now.cpu - self._base.cpu,
            peak_memory_mb=int(_read(self.folders["memory"] / "memory.max_usage_in_bytes")) / _MB,
            memory_kills=now.kills - self._base.kills,
            process_refusals=now.refusals - self._base.refusals,
        )

    def remove(self) -> None:
        """Removes the folders."""
        for folder in self.folders.values():
            _remove(folder)

    def _now(self) -> _Counters:
        return _Counters(
            cpu=int(_read(self.folders["cpuacct"] / "cpuacct.usage")) / 1e9,
            kills=_keyed(self.folders["memory"] / "memory.oom_control").get("oom_kill", 0),
            refusals=_keyed(self.folders["pids"] / "pids.events").get("max", 0),
        )


@dataclass
class V2Group:
    """A slot under cgroup v2."""

    folder: Path
    _base: _Counters = field(default_factory=_Counters)

    def join_paths(self) -> list[str]:
        """Returns the group's ``cgroup.procs``."""
        return [str(self.folder / "cgroup.procs")]

    def reset(self, limits: Limits, *, own_processes: int) -> None:
        """Sets memory and process limits; the peak counts anew where the kernel allows it (6.12 and later)."""
        _write(self.folder / "memory.max", str(limits.memory_mb * _MB))
        _write_if_there(self.folder / "memory.swap.max", "0")
        _write(self.folder / "pids.max", str(limits.processes + own_processes))
        _write_if_there(self.folder / "memory.peak", "0")
        _write_if_there(self.folder / "cpu.weight", "100")
        self._base = self._now()

    def hurry(self) -> None:
        """Raises the group's share of the processor until the next reset."""
        _write_if_there(self.folder / "cpu.weight", "10000")

    def read(self) -> Reading:
        """Returns the counters since the last reset."""
        now = self._now()
        peak = self.folder / "memory.peak"
        return Reading(
            cpu_s=now.cpu - self._base.cpu,
            peak_memory_mb=int(_read(peak)) / _MB if peak.exists() else None,
            memory_kills=now.kills - self._base.kills,
            process_refusals=now.refusals - self._base.refusals,
        )

    def remove(self) -> None:
        """Removes the folder."""
        _remove(self.folder)

    def _now(self) -> _Counters:
        return _Counters(
            cpu=_keyed(self.folder / "cpu.stat").get("usage_usec", 0) / 1e6,
            kills=_keyed(self.folder / "memory.events").get("oom_kill", 0),
            refusals=_keyed(self.folder / "pids.events").get("max", 0),
        )


CgroupKind = Literal["v1", "v2", "none"]


def cgroup_kind() -> tuple[CgroupKind, str]:
    """Returns what kind of control groups this process can make, and if none, why."""
    if os.geteuid() != 0:
        return "none", "making control groups needs root (or a delegated group)"
    if (_ROOT / "cgroup.controllers").is_file():
        have = set(_read(_ROOT / "cgroup.controllers").split())
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
            _write(_ROOT / "cgroup.subtree_control", "+memory +pids +cpu")
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
        for folder in tree.glob(f"**/{PREFIX}*-*") if tree.is_dir() else ():
            owner = folder.name.removeprefix(PREFIX).split("-")[0]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                _remove(folder)


def own_v1(controller: str) -> Path:
    """Returns this process's own v1 group of a controller: memory limits set above it keep holding."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            folder = _ROOT / controller / path.lstrip("/")
            return folder if folder.is_dir() else _ROOT / controller
    return _ROOT / controller


def _keyed(path: Path) -> dict[str, int]:
    try:
        return {key: int(value) for key, value in (line.split() for line in _read(path).splitlines())}
    except (FileNotFoundError, ValueError):
        return {}


def _read(path: Path) -> str:
    return path.read_text()


def _write(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)


def _write_if_there(path: Path, text: str) -> None:
    # memory.peak can be written from Linux 6.12 on, memsw exists only with swap accounting.
    with contextlib.suppress(OSError):
        _write(path, text)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
