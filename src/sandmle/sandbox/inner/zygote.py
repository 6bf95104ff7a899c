"""The warm server: it has imported the ML libraries and is forked for every execution, straight into its namespaces.

It never reads a request: it passes descriptors on to its fork. So neither its memory nor its descriptors hold anything
of any episode. It has one thread, or it refuses to serve.
"""

import array
import json
import os
import select
import signal
import socket
from typing import NoReturn

from sandmle.sandbox.inner import confine, hugepages, kernel, seccomp, warm

_OWN = ("kernel", "seccomp", "landlock", "runner", "jail", "confine", "zygote")
_SPACE = socket.CMSG_SPACE(16 * array.array("i").itemsize)
"""For the descriptors of an execution: its namespaces, its settings, stdout, stderr, and two pipes for news."""


def serve(
    requests: socket.socket, preload: list[str], environment: dict[str, str], *, user_namespace: bool
) -> NoReturn:
    """Imports the libraries, says so, and forks until nobody is left to ask.

    Args:
        requests: Every message is one execution: descriptors of its namespaces and pipes.
        preload: Modules to import; those that are not installed are skipped.
        environment: That of the code, from which nothing of the server's own is to be taken away for each execution.
        user_namespace: The rights come from a user namespace: then the code's process still has one of its own to make.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ends are waited for, whatever the caller does with its own
    before = frozenset(hugepages.loaded_objects())
    answer = warm.load(preload)
    try:
        warm.settle(before, _OWN, answer)
    except RuntimeError as error:
        requests.sendall(json.dumps({"failed": str(error)}).encode())
        os._exit(1)
    requests.sendall(json.dumps(answer).encode())
    del answer
    confine.take_environment(environment)
    if not user_namespace:
        # Once for all forks: it takes the kernel longer than any other of the walls.
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        seccomp.install(seccomp.build(for_server=True))
    _serve(requests, is_filtered=not user_namespace)


def _serve(requests: socket.socket, *, is_filtered: bool) -> NoReturn:
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    asking = requests.fileno()
    running: dict[int, tuple[int, int]] = {}
    while True:
        readable = select.select([asking, *running], [], [])[0]
        for ended in readable:
            if ended != asking:
                _report_end(ended, *running.pop(ended))
        if asking in readable:
            data, rights, _, _ = requests.recvmsg(1, _SPACE)
            if not data:
                os._exit(0)
            _fork(array.array("i", rights[0][2]), running, is_filtered=is_filtered)
            kernel.setns(own_pids, kernel.CLONE_NEWPID)


def _fork(fds: "array.array[int]", running: dict[int, tuple[int, int]], *, is_filtered: bool) -> None:
    *namespaces, settings, out, err, notify, status = fds
    try:
        kernel.setns(namespaces[0], kernel.CLONE_NEWPID)
        child = os.fork()
    except OSError:
        # Its process 1 is gone, or there is no memory: closing the pipes tells whoever is left.
        child = -1
    if child == 0:
        confine.become(confine.join(namespaces, settings), out, err, notify, is_filtered=is_filtered)
    for fd in fds[:-1]:
        os.close(fd)
    if child > 0:
        running[os.pidfd_open(child)] = child, status
    else:
        os.close(status)


def _report_end(pidfd: int, child: int, status: int) -> None:
    """Tells a process 1 how its code ended. Until this is done, that process 1 cannot end either."""
    os.close(pidfd)
    _, code, usage = os.wait4(child, 0)
    try:
        os.write(status, json.dumps({"status": code, "cpu_s": usage.ru_utime + usage.ru_stime}).encode())
    except BrokenPipeError:
        pass  # process 1 was killed: that is how the code ended
    finally:
        os.close(status)
