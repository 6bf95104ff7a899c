"""The warm server: it has imported the ML libraries and is forked for every execution, straight into its namespaces.

It never reads a request: it passes descriptors on to its fork. So neither its memory nor its descriptors hold anything
of any episode. It has one thread, or it refuses to serve.
"""

import json
import os
import select
import signal
import socket
from typing import NoReturn

from sandmle.sandbox.inner import confine, hugepages, kernel, warm
from sandmle.sandbox.inner.init import NAMESPACES

_OTHERS = ("settings", "out", "err", "notify", "status")
_FDS = len(NAMESPACES) + len(_OTHERS)


def serve(requests: socket.socket, preload: list[str]) -> NoReturn:
    """Imports the libraries, says so, and forks until nobody is left to ask.

    Args:
        requests: Every message is one execution: descriptors of its namespaces and pipes.
        preload: Modules to import; those that are not installed are skipped.
    """
    before = frozenset(hugepages.loaded_objects())
    answer = warm.load(preload)
    try:
        warm.settle(before)
    except RuntimeError as error:
        requests.sendall(json.dumps({"failed": str(error)}).encode())
        os._exit(1)
    requests.sendall(json.dumps(answer).encode())
    del answer
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    wake, wake_writer = socket.socketpair()
    for end in (wake, wake_writer):
        end.setblocking(False)
    signal.set_wakeup_fd(wake_writer.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    while True:
        readable = select.select([requests, wake], [], [])[0]
        if wake in readable:
            wake.recv(4096)
            _report_ends(running)
        if requests in readable:
            data, fds, _, _ = socket.recv_fds(requests, 16, _FDS)
            if not data:
                os._exit(0)
            _fork(fds, running)
            kernel.setns(own_pids, kernel.CLONE_NEWPID)


def _fork(fds: list[int], running: dict[int, int]) -> None:
    namespaces, (settings, out, err, notify, status) = fds[: len(NAMESPACES)], fds[len(NAMESPACES) :]
    try:
        kernel.setns(namespaces[0], kernel.CLONE_NEWPID)
        child = os.fork()
    except OSError:
        # Its process 1 is gone, or there is no memory: closing the pipes tells whoever is left.
        child = -1
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        confine.become(confine.join(namespaces[1:], settings), out, err, notify)
    for fd in (*namespaces, settings, out, err, notify):
        os.close(fd)
    if child > 0:
        running[child] = status
    else:
        os.close(status)


def _report_ends(running: dict[int, int]) -> None:
    """Tells each process 1 how its code ended. Until this is done, that process 1 cannot end either."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        fd = running.pop(pid)
        end = {"status": status, "cpu_s": usage.ru_utime + usage.ru_stime}
        try:
            os.write(fd, json.dumps(end).encode())
        except BrokenPipeError:
            pass  # process 1 was killed: that is how the code ended
        finally:
            os.close(fd)
