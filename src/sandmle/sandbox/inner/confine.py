"""The last steps of the process that will be the code: it gives up all rights, then runs the script."""

import json
import math
import os
import resource
import signal
import traceback
from typing import Any, NoReturn

from sandmle.sandbox.inner import jail, kernel, landlock, runner, seccomp

CONFINED = b"+"
"""What is written to the notify pipe when nothing is left to give up; anything else there is an error text."""
_NOTIFY = 3
_MB = 1 << 20
_SPARE_PROCESSES = 16
_READABLE = ("/",)
_WRITABLE = (jail.WORKSPACE, "/tmp", "/dev/shm", "/dev/null", "/dev/zero", "/dev/full")


def join(namespaces: list[int], settings_fd: int) -> dict[str, Any]:
    """Moves this process to where its process 1 lives.

    Args:
        namespaces: Descriptor of its process 1, whose namespaces are joined: all but the process namespace, which one
            is born into. Or one for each namespace, the process namespace first.
        settings_fd: Where the settings come from, to its end.

    Returns:
        The settings for ``become``.
    """
    settings: dict[str, Any] = json.loads(kernel.read_all(settings_fd))
    os.close(settings_fd)
    # From outside, since the view shows no control groups and may have no writable /proc.
    join_cgroups(settings["cgroups"])
    offer_to_memory_killer()
    if len(namespaces) == 1:
        kernel.setns(namespaces[0], kernel.ALL_BUT_PROCESSES)
    for fd in namespaces[1:]:
        kernel.setns(fd, 0)
    os.chdir(jail.WORKSPACE)
    return settings


def become(settings: dict[str, Any], out: int, err: int, notify: int, *, is_filtered: bool = False) -> NoReturn:
    """Confines this process for good and runs the script in the workspace; the process ends with it.

    Args:
        settings: Limits, user and environment; see ``sandmle.sandbox.backend``.
        out: Where the code's stdout goes.
        err: Where the code's stderr goes.
        notify: Told when the code is about to start, or what went wrong.
        is_filtered: The system-call filter is there already.
    """
    try:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        notify = connect(out, err, notify)
        _drop_rights(settings)
        landlock.restrict(_READABLE, _WRITABLE)
        if not is_filtered:
            seccomp.install(seccomp.build())
        script = os.open(f"{jail.WORKSPACE}/{jail.SCRIPT_NAME}", os.O_RDONLY | os.O_CLOEXEC)
        code = kernel.read_all(script)
        os.close(script)
        rng_seed = settings["rng_seed"]
        forget(settings)
    except BaseException:
        give_up()
    run(f"{jail.WORKSPACE}/{jail.SCRIPT_NAME}", code, rng_seed, notify)


def connect(out: int, err: int, notify: int) -> int:
    """Gives this process the standard streams of the code and no other descriptor but one; returns that one."""
    null = os.open("/dev/null", os.O_RDONLY)
    for fd, target in ((null, 0), (out, 1), (err, 2)):
        os.dup2(fd, target, inheritable=True)
    os.dup2(notify, _NOTIFY, inheritable=False)
    os.closerange(_NOTIFY + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return _NOTIFY


def forget(settings: dict[str, Any]) -> None:
    """Takes over the environment from the settings, and leaves nothing of either in this process."""
    take_environment(settings["environment"])
    runner.load_numpy()
    settings.clear()


def take_environment(environment: dict[str, str]) -> None:
    """Makes this process's environment exactly this: what libraries or bubblewrap have added is not there."""
    for name in [name for name in os.environ if name not in environment]:
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def give_up() -> NoReturn:
    """Tells why this process could not be confined, after ``connect``, and ends it."""
    os.write(_NOTIFY, traceback.format_exc(limit=-3).encode())
    os._exit(70)


def run(path: str, code: bytes, rng_seed: int, notify: int) -> NoReturn:
    """Says that the code starts, and runs it; the process ends with it."""
    try:
        os.write(notify, CONFINED)
        os.close(notify)
        runner.run_script(path, code, rng_seed)
    finally:
        # Only when the runner itself breaks; nothing of this process may go on as if it were its parent.
        os.write(2, traceback.format_exc().encode())
        os._exit(70)


def _drop_rights(settings: dict[str, Any]) -> None:
    # The control group's clock is the exact one; without it this is the only one.
    spare_s = 0 if settings["uncounted"] else 2
    # What the server has loaded is not the code's.
    more = {resource.RLIMIT_DATA: settings["memory_mb"] * _MB + data_bytes()} if settings["uncounted"] else {}
    set_limits(settings, spare_cpu_s=spare_s, more=more)
    if settings["user_namespace"]:
        _nest_user_namespace()
        kernel.drop_bounding_set()
    else:
        kernel.drop_bounding_set()
        os.setgroups([])
        os.setresgid(settings["uid"], settings["uid"], settings["uid"])
        os.setresuid(settings["uid"], settings["uid"], settings["uid"])
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.drop_capabilities()
    # Last, since processes of one user in one namespace are counted together.
    # Where the control group counts too, it is to say no first, since it keeps count of its refusals.
    processes = settings["processes"] + (0 if settings["uncounted"] else _SPARE_PROCESSES)
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    # Changing ids cleared both: the code may see its own /proc, and must not outlive process 1.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def _nest_user_namespace() -> None:
    """Appears as nobody in a namespace of its own: process 1 belongs to another one and is out of reach."""
    kernel.unshare(kernel.CLONE_NEWUSER)
    for path, text in (("setgroups", "deny"), ("uid_map", "65534 0 1"), ("gid_map", "65534 0 1")):
        kernel.put(f"/proc/self/{path}", text.encode())


def set_limits(settings: dict[str, Any], *, spare_cpu_s: int = 0, more: dict[int, int]) -> None:
    """Sets the resource limits of this process for good, none above those that it has.

    Args:
        settings: The request's limits.
        spare_cpu_s: Given on top, where another clock is the exact one.
        more: Further limits by their number in ``resource``.
    """
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: math.ceil(settings["cpu_s"]) + spare_cpu_s,
        resource.RLIMIT_FSIZE: settings["file_mb"] * _MB,
        resource.RLIMIT_NOFILE: 1024,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 256,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_NICE: 0,
        **more,
    }
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def data_bytes() -> int:
    """Returns the memory of this process that its limit of data counts."""
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[5]) * resource.getpagesize()


def offer_to_memory_killer() -> None:
    """Makes the kernel choose this execution, and in it the bigger process, when memory runs out."""
    try:
        kernel.put("/proc/self/oom_score_adj", b"1000")
    except OSError as error:
        if error.errno not in (1, 13, 30):  # a read-only /proc, as under bubblewrap
            raise


def join_cgroups(paths: list[str]) -> None:
    """Moves this process into control groups, named by the files that take its number."""
    for path in paths:
        kernel.put(path, b"0")
