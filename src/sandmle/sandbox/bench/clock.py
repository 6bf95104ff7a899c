"""A clock of all the CPU time that this process and whatever it starts take."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sandmle.sandbox import cgroups

_PATIENCE, _PAUSE_S = 50, 0.02

Clock = Callable[[], float]
"""Returns seconds of CPU time since some moment."""


@contextlib.contextmanager
def family_clock() -> Iterator[Clock | None]:
    """Moves this process into a control group of its own for as long as the block lasts, and yields that group's clock.

    What is started inside counts: servers, processes that join groups made below, the dead. None where there is no
    such group (another user than root, cgroup v2, none).
    """
    with contextlib.ExitStack() as stack:
        yield _join(stack)


def _join(stack: contextlib.ExitStack) -> Clock | None:
    if cgroups.cgroup_kind()[0] != "v1":
        return None
    parent = cgroups.own_v1("cpuacct")
    folder = parent / f"{cgroups.PREFIX}{os.getpid()}-bench"
    try:
        folder.mkdir()
        stack.callback(_remove, folder)
        _enter(folder)
        stack.callback(_enter, parent)
    except OSError:
        return None
    usage = folder / "cpuacct.usage"
    return lambda: int(usage.read_text()) / 1e9


def _remove(folder: Path) -> None:
    # What has just been killed stays in its group for a moment.
    for _ in range(_PATIENCE):
        try:
            folder.rmdir()
        except OSError:
            time.sleep(_PAUSE_S)
        else:
            return


def _enter(folder: Path) -> None:
    (folder / "cgroup.procs").write_text("0")
