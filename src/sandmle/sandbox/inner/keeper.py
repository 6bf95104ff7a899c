"""The server that starts executions: it holds the view's template and forks process 1 of each, which is small.

It never reads a request: those go straight to the forked process 1 (``init``). Beside it stands the warm server
(``zygote``), from which the code's own process is forked: the one costly fork of an execution.
"""

import json
import os
import select
import signal
import socket
import sys
from typing import Any

from sandmle.sandbox.inner import init, jail, kernel, wire, zygote

_FDS = 3


def main() -> None:
    """Serves on the socket named on the command line until its other end is closed."""
    server = socket.socket(fileno=int(sys.argv[1]))
    setup = wire.receive(server)
    # Not PR_SET_PDEATHSIG: it fires when the *thread* that started us ends. This one fires with the process.
    parent = os.pidfd_open(os.getppid())
    try:
        if setup["user_namespace"]:
            _enter_user_namespace()
        else:
            kernel.drop_bounding_set()
        kernel.new_session_keyring()  # here, and so for all forks; none of them may call it later
        kernel.unshare(kernel.CLONE_NEWNS)
        jail.build_template(setup["root"], setup["view"])
        requests, warm = _start_zygote(setup, [server.fileno(), parent])
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    except Exception as error:
        server.sendall(json.dumps({"failed": f"{type(error).__name__}: {error}", "namespaces": True}).encode())
        return
    server.sendall(json.dumps(warm).encode())
    if "failed" not in warm:
        covered = jail.below_fresh_places(setup["view"])
        _serve(server, parent, requests, setup["root"], covered, user_namespace=setup["user_namespace"])


def _start_zygote(setup: dict[str, Any], unwanted: list[int]) -> tuple[socket.socket, dict[str, object]]:
    """Forks the warm server; returns the socket for requests to it, and what it says when it is ready."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        for fd in (near.detach(), *unwanted):
            os.close(fd)
        zygote.serve(far, setup["preload"], setup["environment"], user_namespace=setup["user_namespace"])
    far.close()
    answer = near.recv(1 << 16)
    return near, json.loads(answer or b'{"failed": "the warm server died while it imported the libraries"}')


def _serve(
    server: socket.socket,
    parent: int,
    requests: socket.socket,
    root: str,
    covered: dict[str, Any],
    *,
    user_namespace: bool,
) -> None:
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries them; their ends are seen from outside
    slots = _Slots()
    while True:
        # The warm server never speaks again; its socket only becomes readable when it dies.
        watched: list[socket.socket | int] = [server, requests, parent]
        readable = select.select(watched, [], [])[0]
        if parent in readable or requests in readable:
            return
        data, fds, _, _ = socket.recv_fds(server, 1, _FDS)
        if not data:
            return
        slots.enter(data[0])
        kernel.unshare(kernel.CLONE_NEWPID)
        if os.fork() == 0:
            server.close()
            os.close(own_pids)
            os.close(parent)
            control = socket.socket(fileno=fds[0])
            init.serve(control, fds[1], fds[2], root, covered, user_namespace=user_namespace, zygote=requests)
        for fd in fds:
            os.close(fd)
        kernel.setns(own_pids, kernel.CLONE_NEWPID)


class _Slots:
    """The network, IPC and host-name namespaces of each slot, which its executions use one after the other.

    To make them takes the kernel longer than all else of an execution's isolation. Nothing stays in them: code may open
    no socket but Unix ones, which end with it, and no IPC object at all.
    """

    def __init__(self) -> None:
        self._namespaces: dict[int, list[int]] = {}
        self._current = -1

    def enter(self, slot: int) -> None:
        """Moves this process, and so its next fork, into a slot's namespaces."""
        if slot == self._current:
            return
        if slot in self._namespaces:
            for fd in self._namespaces[slot]:
                kernel.setns(fd, 0)
        else:
            kernel.unshare(kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)
            socket.sethostname("sandbox")
            self._namespaces[slot] = [
                os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("net", "ipc", "uts")
            ]
        self._current = slot


def _enter_user_namespace() -> None:
    """Becomes root of a new user namespace, and process 1 of a process namespace that belongs to it."""
    uid, gid = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
    for path, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        kernel.put(f"/proc/self/{path}", text.encode())
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
