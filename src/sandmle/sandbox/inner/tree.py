"""A process and everything that it has started: found, measured and ended without a process namespace.

The process that asks must be the subreaper of what it asks about (``PR_SET_CHILD_SUBREAPER``), so that no descendant
can leave its tree by losing its parent.
"""

import contextlib
import os
import resource
import signal
import stat
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE_S = 0.02


class Process(NamedTuple):
    """What the kernel tells about a process."""

    pid: int
    parent: int
    cpu_s: float
    """With that of the children it has waited for."""
    threads: int
    birth: int
    """Start time in ticks: together with the pid it names a process once and for all."""
    own_s: float
    """CPU time of its own."""


def look(pid: int) -> Process | None:
    """Returns what is known about a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs an import in the forked child
            fields = file.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return None
    own_s, waited_s = (sum(map(int, part)) / _TICKS for part in (fields[11:13], fields[13:15]))
    return Process(pid, int(fields[1]), own_s + waited_s, int(fields[17]), int(fields[19]), own_s)


def below(root: int) -> list[Process]:
    """Returns all descendants of a process, parents before children."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (process := look(int(name))):
            children.setdefault(process.parent, []).append(process)
    found = list(children.get(root, ()))
    for process in found:
        found += children.get(process.pid, ())
    return found


def tasks_of_user(uid: int) -> int:
    """Returns how many processes and threads a user has, as ``RLIMIT_NPROC`` counts them."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                owner = _real_uid(name)
            except OSError:
                continue
            process = look(int(name)) if owner == uid else None
            count += process.threads if process else 0
    return count


def _real_uid(pid: str) -> int:
    # Not the owner of the folder: that is root for a process that may not be traced.
    with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
        for line in file:
            if line.startswith(b"Uid:"):
                return int(line.split()[1])
    return -1


def memory_mb(processes: list[Process], *, exact: bool) -> float:
    """Returns the anonymous and shared memory of processes.

    Args:
        processes: The processes.
        exact: Divide pages that several processes hold by their number; this takes the kernel milliseconds.
    """
    name, keys = ("smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) if exact else ("status", (b"RssAnon:", b"RssShmem:"))
    kilobytes = 0
    for process in processes:
        try:
            with open(f"/proc/{process.pid}/{name}", "rb") as file:  # noqa: PTH123
                kilobytes += sum(int(line.split()[1]) for line in file if line.startswith(keys))
        except PermissionError:  # its program may not be read; what it shares is then counted twice
            kilobytes += round(1024 * memory_mb([process], exact=False))
        except OSError:  # it has ended
            continue
    return kilobytes / 1024


def removed_files(processes: list[Process]) -> dict[tuple[int, int], int]:
    """Returns the size in bytes of each file that has no name any more but is held open, by device and inode."""
    sizes = {}
    for process in processes:
        folder = f"/proc/{process.pid}/fd"
        try:
            names = os.listdir(folder)  # noqa: PTH208
        except OSError:  # it has ended, or its program may not be read
            continue
        for name in names:
            try:
                status = os.stat(f"{folder}/{name}")  # noqa: PTH116
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sizes


def end_all(keep: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """Ends every descendant of this process; returns when none is left. SIGCHLD must be blocked.

    Args:
        keep: Children that are left alone, with all that is below them.

    Returns:
        The pid and wait status of every child that was reaped.
    """
    # First none may multiply any more: each pass finds fewer that still can, since the number of processes is limited.
    bound: set[tuple[int, int]] = set()
    while fresh := [process for process in _others(keep) if (process.pid, process.birth) not in bound]:
        for process in fresh:
            _forbid_children(process)
            _kill(process)
            bound.add((process.pid, process.birth))
    reaped = reap()
    # Until there are no children: a chain of short lives can be missed by any single look.
    while True:
        others = _others(keep)
        for process in others:
            _kill(process)
        if not others and (keep or not has_children()):
            return reaped
        signal.sigtimedwait({signal.SIGCHLD}, _PATIENCE_S)
        reaped += reap()


def reap() -> list[tuple[int, int]]:
    """Takes dead children off the kernel's hands; returns their pids and wait statuses."""
    reaped = []
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            reaped.append(child)
    return reaped


def has_children() -> bool:
    """Says whether this process has children, dead or alive."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _others(keep: frozenset[int]) -> list[Process]:
    found, skipped = [], set(keep)
    for process in below(os.getpid()):
        if process.pid in skipped or process.parent in skipped:
            skipped.add(process.pid)
        else:
            found.append(process)
    return found


def _forbid_children(process: Process) -> None:
    current = look(process.pid)
    if current is not None and current.birth == process.birth:
        try:
            resource.prlimit(process.pid, resource.RLIMIT_NPROC, (0, 0))
        except (ProcessLookupError, PermissionError):
            return  # it has ended, or runs a program that may not be traced; the kill comes anyway


def _kill(process: Process) -> None:
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        current = look(process.pid)
        if current is not None and current.birth == process.birth:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(fd)
