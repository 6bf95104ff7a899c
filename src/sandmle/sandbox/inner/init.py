"""Process 1 of one execution: completes the view, gives up all rights, forks the code, waits, reports, and ends it all.

When this process ends, the kernel kills everything in its process namespace. It speaks JSON lines over one socket,
which the code never inherits: ``ready`` (with descriptors of itself and of the workspace), ``start``, ``exit``; or
``failed``.
"""

import array
import json
import math
import os
import resource
import signal
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

from sandmle.sandbox.inner import jail, kernel, landlock, runner, seccomp

_LENGTH_BYTES = 8
_GRACE_S = 0.25
"""The supervisor kills at the deadline; this process does so itself a little later, should the supervisor be slow."""
_SPARE_PROCESSES = 16
_READABLE = ("/",)
_WRITABLE = (jail.WORKSPACE, "/tmp", "/dev/shm", "/dev/null", "/dev/zero", "/dev/full")


def serve(control: socket.socket, out: int, err: int, root: str | None, *, user_namespace: bool) -> NoReturn:
    """Carries out one request and ends this process.

    Args:
        control: Socket to the supervisor; the request comes over it.
        out: Where the code's stdout goes.
        err: Where the code's stderr goes.
        root: The view's template, to be completed and entered; None when this process already stands in the view.
        user_namespace: The rights come from a user namespace rather than from being root.
    """
    try:
        request = _receive(control)
        _join_cgroups(request["cgroups"])
        _offer_to_memory_killer()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        fds = [os.pidfd_open(os.getpid()), *_prepare_view(root, request, user_namespace=user_namespace)]
        _send(control, {"event": "ready"}, fds)
        for fd in fds:
            os.close(fd)
        # Before the code exists: it must never see this process's memory or descriptors.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        started, reading = os.pipe2(os.O_CLOEXEC)[::-1]
        child = os.fork()
        if child == 0:
            _become_code(request, out, err, started, user_namespace=user_namespace)
        os.close(started)
        os.close(out)
        os.close(err)
        note = os.read(reading, 65536)
        if note != b"+":
            raise RuntimeError(f"cannot confine the code: {note.decode(errors='replace') or 'it died first'}")
        _send(control, {"event": "start"})
        status = _wait(child, request["wall_s"] + _GRACE_S)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        _send(
            control,
            {
                "event": "exit",
                "status": status,
                "cpu_s": usage.ru_utime + usage.ru_stime,
                "max_rss_kb": usage.ru_maxrss,
            },
        )
    except jail.Refused as error:
        _send(control, {"event": "refused", "message": str(error)})
    except BaseException:
        _send(control, {"event": "failed", "message": traceback.format_exc(limit=-3)})
    os._exit(0)


def _prepare_view(root: str | None, request: dict[str, Any], *, user_namespace: bool) -> list[int]:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    kernel.new_session_keyring()
    owner = (0, 0) if user_namespace else (request["uid"], request["uid"])
    if root is None:
        if user_namespace:
            # Outside this namespace the code has the same user id as this process: hide this one from it.
            jail.hide_processes()
        os.chown(jail.WORKSPACE, *owner)
        jail.copy_workspace(request["workspace"], jail.WORKSPACE, owner)
        _write_script(jail.WORKSPACE, request, owner)
        os.chdir(jail.WORKSPACE)
        return jail.open_spaces("")
    kernel.unshare(
        kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
    )
    # A nested user namespace is set up through /proc; the code itself may not write there by its Landlock rules.
    jail.complete(root, request, owner, proc_writable=user_namespace)
    _write_script(root + jail.WORKSPACE, request, owner)
    spaces = jail.open_spaces(root)
    jail.enter(root)
    return spaces


def _write_script(folder: str, request: dict[str, Any], owner: tuple[int, int]) -> None:
    path = f"{folder}/{jail.SCRIPT_NAME}"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(request["code"].encode("utf-8", "surrogatepass"))
    os.chown(path, *owner)


def _become_code(request: dict[str, Any], out: int, err: int, started: int, *, user_namespace: bool) -> NoReturn:
    try:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        null = os.open("/dev/null", os.O_RDONLY)
        for fd, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(fd, target, inheritable=True)
        notify = os.dup2(started, 3, inheritable=False)
        os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        _drop_rights(request, user_namespace=user_namespace)
        landlock.restrict(_READABLE, _WRITABLE)
        seccomp.install(seccomp.build())
        code = request["code"].encode("utf-8", "surrogatepass")
        rng_seed = request["rng_seed"]
        # Exactly this: what the server's libraries or bubblewrap have added is not there.
        os.environ.clear()
        os.environ.update(request["environment"])
        runner.load_numpy()
        request.clear()
        os.write(notify, b"+")
        os.close(notify)
    except BaseException:
        os.write(3, traceback.format_exc(limit=-3).encode())
        os._exit(70)
    try:
        runner.run_script(f"{jail.WORKSPACE}/{jail.SCRIPT_NAME}", code, rng_seed)
    finally:
        # Only when the runner itself breaks; nothing of this process may go on as if it were process 1.
        os.write(2, traceback.format_exc().encode())
        os._exit(70)


def _drop_rights(request: dict[str, Any], *, user_namespace: bool) -> None:
    _set_limits(request)
    if user_namespace:
        _nest_user_namespace()
        kernel.drop_bounding_set()
    else:
        kernel.drop_bounding_set()
        os.setgroups([])
        os.setresgid(request["uid"], request["uid"], request["uid"])
        os.setresuid(request["uid"], request["uid"], request["uid"])
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.drop_capabilities()
    # Last, since processes of one user in one namespace are counted together.
    # Where the control group counts too, it is to say no first, since it keeps count of its refusals.
    processes = request["processes"] + (0 if request["uncounted"] else _SPARE_PROCESSES)
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    # Changing ids cleared both: the code may see its own /proc, and must not outlive process 1.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def _nest_user_namespace() -> None:
    """Appears as nobody in a namespace of its own: process 1 belongs to another one and is out of reach."""
    kernel.unshare(kernel.CLONE_NEWUSER)
    for path, text in (("setgroups", "deny"), ("uid_map", "65534 0 1"), ("gid_map", "65534 0 1")):
        with open(f"/proc/self/{path}", "w") as file:  # noqa: PTH123
            file.write(text)


def _set_limits(request: dict[str, Any]) -> None:
    mb = 1 << 20
    # The control group's clock is the exact one; without it this is the only one.
    cpu_s = math.ceil(request["cpu_s"]) + (0 if request["uncounted"] else 2)
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: request["file_mb"] * mb,
        resource.RLIMIT_NOFILE: 1024,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 256,
    }
    if request["uncounted"]:
        limits[resource.RLIMIT_DATA] = request["memory_mb"] * mb
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _offer_to_memory_killer() -> None:
    """Makes the kernel choose this execution, and in it the bigger process, when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("1000")
    except OSError as error:
        if error.errno not in (1, 13, 30):  # a read-only /proc, as under bubblewrap
            raise


def _join_cgroups(paths: list[str]) -> None:
    for path in paths:
        with open(path, "w") as file:  # noqa: PTH123
            file.write("0")


def _wait(child: int, seconds: float) -> int | None:
    """Waits for the code, reaping orphans; returns its wait status, or None at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == child:
                return status
            if pid == 0:
                break
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        signal.sigtimedwait({signal.SIGCHLD}, left)


def _receive(control: socket.socket) -> dict[str, Any]:
    length = int.from_bytes(_read_exactly(control, _LENGTH_BYTES), "big")
    request: dict[str, Any] = json.loads(_read_exactly(control, length))
    return request


def _read_exactly(control: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = control.recv(min(1 << 20, count - len(data)))
        if not chunk:
            os._exit(0)  # the supervisor is gone
        data += chunk
    return bytes(data)


def _send(control: socket.socket, event: dict[str, Any], fds: list[int] | None = None) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        control.sendmsg([json.dumps(event).encode() + b"\n"], rights)
    except OSError:
        os._exit(0)  # the supervisor is gone


def main() -> NoReturn:
    """Entry point where another program has made the view already: descriptors are named on the command line."""
    control = socket.socket(fileno=int(sys.argv[1]))
    out, err = int(sys.argv[2]), int(sys.argv[3])
    # argv[4] is the host's workspace, to be copied from by the path that the request names.
    serve(control, out, err, None, user_namespace=sys.argv[5] == "user_namespace")
