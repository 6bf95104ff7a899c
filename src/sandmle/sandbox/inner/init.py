"""Process 1 of one execution: completes the view, has the code's process made in it, waits, reports, and ends it all.

When this process ends, the kernel kills everything in its process namespace. It speaks JSON lines over one socket,
which the code never inherits: ``ready`` (with descriptors of itself and of the workspace), ``start``, ``exit``; or
``failed``.
"""

import json
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

from sandmle.sandbox.inner import confine, jail, kernel, wire

_NAMESPACES = ("pid", "mnt", "net", "ipc", "uts", "cgroup")
_GRACE_S = 0.25
"""The supervisor kills at the deadline; this process does so itself a little later, should the supervisor be slow."""


def serve(
    control: socket.socket,
    out: int,
    err: int,
    root: str | None,
    covered: dict[str, Any],
    *,
    user_namespace: bool,
    zygote: socket.socket | None = None,
) -> NoReturn:
    """Carries out one request and ends this process.

    Args:
        control: Socket to the supervisor; the request comes over it.
        out: Where the code's stdout goes.
        err: Where the code's stderr goes.
        root: The view's template, to be completed and entered; None when this process already stands in the view.
        covered: See ``jail.complete``.
        user_namespace: The rights come from a user namespace rather than from being root.
        zygote: Makes the code's process; None to fork it from this one.
    """
    # To the first process of a namespace the kernel delivers only signals that it handles: it is to handle none.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        request = wire.receive(control)
        request["user_namespace"] = user_namespace
        confine.join_cgroups(request["cgroups"])
        confine.offer_to_memory_killer()
        spaces = _prepare_view(root, request, covered)
        own = os.pidfd_open(os.getpid())
        wire.send(control, {"event": "ready"}, [own, *spaces])
        for fd in spaces:
            os.close(fd)
        # In a user namespace, process 1 is out of reach even for the server once it is not dumpable.
        namespaces = (
            [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in _NAMESPACES] if user_namespace else [own]
        )
        # Before the code exists: it must never see this process's memory or descriptors.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        end = (
            _run_own(request, control, out, err)
            if zygote is None
            else _run_by(zygote, request, control, out, err, namespaces)
        )
        wire.send(control, {"event": "exit", **end})
    except jail.Refused as error:
        wire.tell(control, {"event": "refused", "message": str(error)})
    except wire.Gone:
        os._exit(0)
    except BaseException:
        wire.tell(control, {"event": "failed", "message": traceback.format_exc(limit=-3)})
    os._exit(0)


def _run_own(request: dict[str, Any], control: socket.socket, out: int, err: int) -> dict[str, Any]:
    """Forks the code from this process and waits for its end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    reading, notify = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        confine.become(request, out, err, notify)
    for fd in (notify, out, err):
        os.close(fd)
    _tell_start(control, reading)
    status = _wait(child, request["wall_s"] + _GRACE_S)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"status": status, "cpu_s": usage.ru_utime + usage.ru_stime}


def _run_by(
    zygote: socket.socket, request: dict[str, Any], control: socket.socket, out: int, err: int, namespaces: list[int]
) -> dict[str, Any]:
    """Has the code forked from the warm server into this process's namespaces, and waits for its end.

    The server gets descriptors only; what is in them is read by its fork, never by itself.
    """
    # Orphans of the code end up with this process: the kernel buries them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    settings, settings_end = os.pipe2(os.O_CLOEXEC)
    reading, notify = os.pipe2(os.O_CLOEXEC)
    ending, status_end = os.pipe2(os.O_CLOEXEC)
    os.write(settings_end, json.dumps({key: value for key, value in request.items() if key != "code"}).encode())
    os.close(settings_end)
    fds = (*namespaces, settings, out, err, notify, status_end)
    socket.send_fds(zygote, [b"x"], fds)
    for fd in fds:
        os.close(fd)
    zygote.close()
    _tell_start(control, reading)
    if not select.select([ending], [], [], request["wall_s"] + _GRACE_S)[0]:
        return {"status": None}
    end = os.read(ending, 4096)
    if not end:
        raise RuntimeError("the warm server died")
    return dict(json.loads(end))


def _tell_start(control: socket.socket, reading: int) -> None:
    note = os.read(reading, 65536)
    os.close(reading)
    if note != confine.CONFINED:
        raise RuntimeError(f"cannot confine the code: {note.decode(errors='replace') or 'it died first'}")
    wire.send(control, {"event": "start"})


def _prepare_view(root: str | None, request: dict[str, Any], covered: dict[str, Any]) -> list[int]:
    """Completes and enters the view; returns the places that code may fill."""
    user_namespace = request["user_namespace"]
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    owner = (0, 0) if user_namespace else (request["uid"], request["uid"])
    if root is None:
        kernel.new_session_keyring()
        if user_namespace:
            # Outside this namespace the code has the same user id as this process: hide this one from it.
            jail.hide_processes()
        os.chown(jail.WORKSPACE, *owner)
        jail.copy_workspace(request["workspace"], jail.WORKSPACE, owner)
        _write_script(jail.WORKSPACE, request, owner)
        os.chdir(jail.WORKSPACE)
        return jail.open_spaces("")
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWCGROUP)
    # A nested user namespace is set up through /proc; the code itself may not write there by its Landlock rules.
    jail.complete(root, request, owner, covered, proc_writable=user_namespace)
    _write_script(root + jail.WORKSPACE, request, owner)
    spaces = jail.open_spaces(root)
    jail.enter(root)
    return spaces


def _write_script(folder: str, request: dict[str, Any], owner: tuple[int, int]) -> None:
    path = f"{folder}/{jail.SCRIPT_NAME}"
    kernel.put(path, request["code"].encode("utf-8", "surrogatepass"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.chown(path, *owner)


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


def main() -> NoReturn:
    """Entry point where another program has made the view already: descriptors are named on the command line."""
    control = socket.socket(fileno=int(sys.argv[1]))
    out, err = int(sys.argv[2]), int(sys.argv[3])
    # argv[4] is the host's workspace, to be copied from by the path that the request names.
    serve(control, out, err, None, {}, user_namespace=sys.argv[5] == "user_namespace")
