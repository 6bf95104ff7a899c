"""The server that is forked where there are no namespaces: it imports the libraries once and does nothing else.

As the other server it never sees a request, holds no secret and has one thread. It is the subreaper of all executions:
should a keeper be killed from outside, what it kept falls to this process, which ends it.
"""

import os
import select
import signal
import socket
import sys
import time

from sandmle.sandbox.inner import hugepages, kernel, landlock, semaphores, tree, warden, warm, wire

_OWN = ("kernel", "seccomp", "landlock", "runner", "jail", "confine", "wire", "tree", "warden", "plain")
_FDS = 3
_TASKS_AGE_S = 1.0


def main() -> None:
    """Serves on the socket named on the command line until its other end is closed."""
    server = socket.socket(fileno=int(sys.argv[1]))
    parent = os.pidfd_open(os.getppid())
    try:
        setup = wire.receive(server)
        _give_up_root(setup["uid"])
        if landlock.abi_version() < landlock.SCOPE_ABI:
            raise RuntimeError(
                f"it needs Landlock {landlock.SCOPE_ABI} (Linux 6.12), and this kernel has {landlock.abi_version()}"
            )
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        before = frozenset(hugepages.loaded_objects())
        answer = warm.load(setup["preload"])
        semaphores.install()
        warm.settle(before, _OWN, answer, shared_user=True)
    except Exception as error:
        wire.send(server, {"failed": f"{error}" if isinstance(error, RuntimeError) else repr(error)})
        return
    wire.send(server, answer)
    readable, listable = tuple(setup["readable"]), tuple(setup["listable"])
    del setup, answer
    _serve(server, parent, readable, listable)


def _serve(server: socket.socket, parent: int, readable: tuple[str, ...], listable: tuple[str, ...]) -> None:
    own_pid, uid = os.getpid(), os.getuid()
    # Dead children are noticed by a signal that makes select() return; it is blocked but for that.
    wake_reader, wake_writer = socket.socketpair()
    for end in (wake_reader, wake_writer):
        end.setblocking(False)
    signal.set_wakeup_fd(wake_writer.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    keepers: set[int] = set()
    tasks, counted_s = 0, -_TASKS_AGE_S
    while True:
        watched: list[socket.socket | int] = [server, wake_reader, parent]
        readable_now = select.select(watched, [], [])[0]
        if parent in readable_now:
            return
        if wake_reader in readable_now:
            wake_reader.recv(4096)
            _take_the_dead(keepers)
        if server not in readable_now:
            continue
        data, fds, _, _ = socket.recv_fds(server, 1, _FDS)
        if not data:
            return
        if time.monotonic() - counted_s > _TASKS_AGE_S:
            tasks, counted_s = tree.tasks_of_user(uid), time.monotonic()
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for unused in (server, wake_reader, wake_writer):
                unused.close()
            os.close(parent)
            control = socket.socket(fileno=fds[0])
            warden.serve(control, fds[1], fds[2], own_pid, readable, listable, tasks)
        keepers.add(child)
        for fd in fds:
            os.close(fd)


def _take_the_dead(keepers: set[int]) -> None:
    failed = False
    for pid, status in tree.reap():
        failed |= pid in keepers and status != 0
        keepers.discard(pid)
    if failed:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        for pid, _ in tree.end_all(keep=frozenset(keepers)):
            keepers.discard(pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _give_up_root(uid: int | None) -> None:
    if uid is not None:
        kernel.drop_bounding_set()
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if os.geteuid() == 0:
        raise RuntimeError("it must not run as root")
    for place in (sys.executable, sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)):  # noqa: PTH120
        if not os.access(place, os.R_OK | os.X_OK):
            raise RuntimeError(
                f"user {os.getuid()}, as which it runs the code, may not read {place}; give it a Python that every "
                "user may read (python=/usr/bin/python3), or start as an ordinary user"
            )
