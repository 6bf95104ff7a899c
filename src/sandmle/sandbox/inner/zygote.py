"""The server that is forked: it imports the ML libraries once and does nothing else.

It never reads a request: those go straight to the forked process 1 (``init``). So neither its memory nor its
descriptors hold anything of any episode. It has one thread, or it refuses to serve.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from sandmle.sandbox.inner import init, jail, kernel, seccomp

_FDS = 3


def main() -> None:
    """Serves on the socket named on the command line until its other end is closed."""
    server = socket.socket(fileno=int(sys.argv[1]))
    setup = json.loads(sys.argv[2])
    # Not PR_SET_PDEATHSIG: it fires when the *thread* that started us ends. This one fires with the process.
    parent = os.pidfd_open(os.getppid())
    try:
        if setup["user_namespace"]:
            _enter_user_namespace()
        kernel.unshare(kernel.CLONE_NEWNS)
        jail.build_template(setup["root"], setup["view"])
        answer = _preload(setup["preload"])
        seccomp.build()  # here, so that every fork has it
        threads = _thread_count()
        if threads != 1:
            raise RuntimeError(f"the libraries left {threads} threads running, so the server cannot be forked safely")
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    except Exception as error:
        server.sendall(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        return
    gc.collect()
    gc.freeze()
    server.sendall(json.dumps(answer).encode())
    root, user_namespace = setup["root"], setup["user_namespace"]
    del setup, answer
    _serve(server, parent, root, user_namespace=user_namespace)


def _serve(server: socket.socket, parent: int, root: str, *, user_namespace: bool) -> None:
    own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    wake_reader, wake_writer = socket.socketpair()
    wake_writer.setblocking(False)
    wake_reader.setblocking(False)
    signal.set_wakeup_fd(wake_writer.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        watched: list[socket.socket | int] = [server, wake_reader, parent]
        readable = select.select(watched, [], [])[0]
        if parent in readable:
            return
        if wake_reader in readable:
            wake_reader.recv(4096)
            _reap()
        if server not in readable:
            continue
        data, fds, _, _ = socket.recv_fds(server, 1, _FDS)
        if not data:
            return
        kernel.unshare(kernel.CLONE_NEWPID)
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for unused in (server, wake_reader, wake_writer):
                unused.close()
            os.close(own_pids)
            os.close(parent)
            init.serve(socket.socket(fileno=fds[0]), fds[1], fds[2], root, user_namespace=user_namespace)
        for fd in fds:
            os.close(fd)
        kernel.setns(own_pids, kernel.CLONE_NEWPID)


def _enter_user_namespace() -> None:
    """Becomes root of a new user namespace, and process 1 of a process namespace that belongs to it."""
    uid, gid = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
    for path, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{path}", "w") as file:  # noqa: PTH123
            file.write(text)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def _preload(names: list[str]) -> dict[str, Any]:
    start = time.process_time()
    loaded = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        loaded.append(name)
    return {"loaded": loaded, "import_cpu_s": time.process_time() - start}


def _thread_count() -> int:
    with open("/proc/self/status") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("Threads:"):
                return int(line.split()[1])
    return 0


def _reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
