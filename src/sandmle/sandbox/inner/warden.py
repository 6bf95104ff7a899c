"""The keeper of one execution where there are no namespaces: starts the code, watches what it uses, ends all of it.

It is the subreaper of everything that the code starts, so nothing can leave; it cannot be read, traced or signalled by
the code (no dump, Landlock's scopes). It ends only when everything below it is dead, so its own end says so. SIGTERM
asks it to end early; it comes from the supervisor, or from the kernel when the server dies.

It speaks as process 1 of the other backends does, and adds ``limit`` (the code went over one and is being ended) and
``usage`` (what all of it together has used).
"""

import os
import resource
import signal
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

from sandmle.sandbox.inner import confine, jail, kernel, landlock, seccomp, tree, wire

_GRACE_S = 0.25
"""The supervisor ends it at the deadline; this process does so itself a little later, should the supervisor be slow."""
_LOOK_S = 0.1
_LOOK_SHARE = 0.05
"""At most this share of the time is spent on looking."""
_SIGNALS = {signal.SIGCHLD, signal.SIGTERM}
_MB = 1 << 20
_MAX_ENTRIES = 4200
_MAX_FILES = 256
"""Open at once in one process: what a socket or a removed file holds is in no folder."""
_LONGEST_WAIT_S = 0.3
_WRITABLE_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
_READABLE = (
    "/dev/random", "/dev/urandom", "/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat",
    "/proc/uptime", "/proc/version", "/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu",
    "/sys/devices/system/node", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "/sys/kernel/mm/transparent_hugepage",
)  # fmt: skip
# Not the whole folder: with it would come the network of the host, its mounts, and its processes' names.
_OWN_FACTS = ("fd", "fdinfo", "limits", "maps", "smaps", "smaps_rollup", "stat", "statm", "status")


def serve(control: socket.socket, out: int, err: int, server: int, readable: tuple[str, ...], listable: tuple[str, ...],
          tasks: int) -> NoReturn:  # fmt: skip
    """Carries out one request and ends this process.

    Args:
        control: Socket to the supervisor; the request comes over it.
        out: Where the code's stdout goes.
        err: Where the code's stderr goes.
        server: The parent's pid.
        readable: Library files and folders that the code may read.
        listable: Folders in which the code may list names.
        tasks: Processes and threads that the user has already.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        if os.getppid() != server:
            raise wire.Gone
        request = wire.receive(control)
        os.setsid()
        kernel.new_session_keyring()
        fds = [os.pidfd_open(os.getpid()), os.open(request["workspace"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        wire.send(control, {"event": "ready"}, fds)
        for fd in fds:
            os.close(fd)
        # Before the code exists: it must never see this process's memory or descriptors.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        _start_and_watch(control, request, (out, err), readable, listable, tasks)
    except wire.Gone:
        tree.end_all()
    except BaseException:
        message = traceback.format_exc(limit=-3)
        tree.end_all()
        wire.tell(control, {"event": "failed", "message": message})
    os._exit(0)


def _start_and_watch(
    control: socket.socket,
    request: dict[str, Any],
    outputs: tuple[int, int],
    readable: tuple[str, ...],
    listable: tuple[str, ...],
    tasks: int,
) -> None:
    reading, started = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        _become_code(request, outputs, started, readable, listable, tasks)
    for fd in (started, *outputs):
        os.close(fd)
    note = os.read(reading, 65536)
    if note != confine.CONFINED:
        raise RuntimeError(f"cannot confine the code: {note.decode(errors='replace') or 'it died first'}")
    wire.send(control, {"event": "start"})
    keeper = _Keeper(request, child)
    ending = keeper.watch()
    if ending is not None:
        wire.send(control, ending)
    if tree.has_children():
        keeper.look()
        tree.end_all()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = max(usage.ru_utime + usage.ru_stime, keeper.cpu_s)
    wire.send(control, {"event": "usage", "cpu_s": cpu_s})


class _Keeper:
    """Looks again and again at what the code and everything below it uses."""

    def __init__(self, request: dict[str, Any], child: int) -> None:
        self._request = request
        self._child = child
        self._deadline_s = time.monotonic() + request["wall_s"] + _GRACE_S
        # The server's pages, which this process has as well, are not the code's as long as nobody writes to them.
        own = tree.look(os.getpid())
        self._shared_mb = tree.memory_mb([own] if own else [], exact=False)
        self._places = [request["workspace"], request["tmp"]]
        self.cpu_s = 0.0
        self._seen: dict[tuple[int, int], float] = {}

    def watch(self) -> dict[str, Any] | None:
        """Waits for the code; returns how it ended, or None when it is to be ended without a word."""
        wait_s = _LOOK_S
        while True:
            for pid, status in tree.reap():
                if pid == self._child:
                    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
                    return {"event": "exit", "status": status, "cpu_s": usage.ru_utime + usage.ru_stime}
            left_s = self._deadline_s - time.monotonic()
            if left_s <= 0:
                return None
            info = signal.sigtimedwait(_SIGNALS, min(left_s, wait_s))
            if info is not None and info.si_signo == signal.SIGTERM:
                return None
            if info is None:
                start_s = time.process_time()
                if passed := self.look():
                    return passed
                wait_s = min(_LONGEST_WAIT_S, max(_LOOK_S, (time.process_time() - start_s) / _LOOK_SHARE))

    def look(self) -> dict[str, Any] | None:
        """Measures once; returns the event that says which limit was passed, if any."""
        processes = tree.below(os.getpid())
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        waited_s = usage.ru_utime + usage.ru_stime
        self._seen |= {(process.pid, process.birth): process.own_s for process in processes}
        # Whoever ignores the end of its children has their time counted nowhere but here.
        self.cpu_s = max(self.cpu_s, waited_s + sum(process.cpu_s for process in processes), sum(self._seen.values()))
        request = self._request
        if self.cpu_s > request["cpu_s"]:
            return _passed("timeout", f"killed: more than {request['cpu_s']:g} s of CPU time")
        if sum(process.threads for process in processes) > request["processes"]:
            return _passed("limit", f"killed: more than {request['processes']} processes and threads")
        memory_mb = tree.memory_mb(processes, exact=False)
        if memory_mb - self._shared_mb > request["memory_mb"]:
            memory_mb = tree.memory_mb(processes, exact=True)
            if memory_mb > request["memory_mb"]:
                return _passed("oom", f"killed: more than {request['memory_mb']} MB of memory")
        if not _fits(self._places, request["space_bytes"], processes):
            return _passed("limit", f"killed: more than {request['file_mb']} MB of files, or too many of them")
        return None


def _passed(status: str, detail: str) -> dict[str, Any]:
    return {"event": "limit", "status": status, "detail": detail}


def _fits(places: list[str], space_bytes: int, processes: list[tree.Process]) -> bool:
    """Says whether each place holds no more than it may, and what is removed but still open no more either."""
    if sum(tree.removed_files(processes).values()) > space_bytes:
        return False
    for place in places:
        size, entries, waiting = 0, 0, [place]
        while waiting:
            try:
                found = os.scandir(waiting.pop())
            except FileNotFoundError:  # it was removed meanwhile
                continue
            except OSError:
                return False  # made so that nobody can look into it: too deep, or without the right to
            with found:
                for entry in found:
                    entries += 1
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        else:
                            size += entry.stat(follow_symlinks=False).st_blocks * 512
                    except FileNotFoundError:
                        continue
                    if entries > _MAX_ENTRIES or size > space_bytes:
                        return False
    return True


def _become_code(
    request: dict[str, Any],
    outputs: tuple[int, int],
    started: int,
    readable: tuple[str, ...],
    listable: tuple[str, ...],
    tasks: int,
) -> NoReturn:
    folder = request["workspace"]
    try:
        # The code may see its own /proc, and dies with its keeper.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        notify = confine.connect(*outputs, started)
        os.chdir(folder)
        confine.offer_to_memory_killer()
        more = {
            # What the server has loaded is not the code's.
            resource.RLIMIT_NOFILE: _MAX_FILES,
            resource.RLIMIT_DATA: request["memory_mb"] * _MB + confine.data_bytes(),
            # All that runs as this user counts, so this is no more than a bound on what a fork bomb can reach. The
            # keeper of this execution was not there yet when the tasks were counted.
            resource.RLIMIT_NPROC: tasks + 1 + request["processes"],
        }
        confine.set_limits(request, more=more)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.drop_capabilities()
        own = tuple(f"/proc/self/{name}" for name in _OWN_FACTS)
        inputs = (request["inputs"],) if request["inputs"] is not None else ()
        # No links: they would not come back, and the one that shows the inputs is not to be moved.
        landlock.restrict(
            (*readable, *_READABLE, *own, *inputs),
            (folder, request["tmp"], *_WRITABLE_DEVICES),
            listable=listable,
            without=landlock.MAKE_SYM,
        )
        seccomp.install(seccomp.build(shared_user=True))
        code = request["code"].encode("utf-8", "surrogatepass")
        rng_seed = request["rng_seed"]
        if (tempfile := sys.modules.get("tempfile")) is not None:
            vars(tempfile)["tempdir"] = None  # what the server has found is not this execution's
        confine.forget(request)
    except BaseException:
        confine.give_up()
    confine.run(f"{folder}/{jail.SCRIPT_NAME}", code, rng_seed, notify)
