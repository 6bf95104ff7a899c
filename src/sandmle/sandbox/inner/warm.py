"""What both warm servers do before they serve: import the libraries, make sure of one thread, settle the heap."""

import ctypes
import gc
import importlib
import os
import sys
import time
from typing import Any

from sandmle.sandbox.inner import hugepages, kernel, landlock, seccomp

_GRAIN = 16
_LARGEST_HOLE = 1 << 16
_TOO_LARGE_FOR_A_HOLE = 100_000
"""Yet too small for a mapping of its own."""
_M_TRIM_THRESHOLD, _M_TOP_PAD = -1, -2
_NEVER, _ROOM_AT_THE_END = 1 << 30, 8 << 20


def load(names: list[str]) -> dict[str, Any]:
    """Imports the named modules, but for those that are not installed.

    Returns:
        What was imported, after which module there was a second thread, and the CPU time that all took.
    """
    start = time.process_time()
    loaded, threaded = [], ""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        loaded.append(name)
        if not threaded and _threads() > 1:
            threaded = name
    return {"loaded": loaded, "threaded": threaded, "import_cpu_s": time.process_time() - start}


def settle(before: frozenset[str], own: tuple[str, ...], answer: dict[str, Any], *, shared_user: bool = False) -> None:
    """Makes this process ready to be forked again and again.

    Args:
        before: The libraries that were loaded before the named modules; see ``hugepages``.
        own: The modules of this package that the forks will use, those that others import first.
        answer: What ``load`` said.
        shared_user: Which system-call filter the forks will install; it is built here, once.

    Raises:
        RuntimeError: The libraries left threads running: a fork would inherit their locks, held for ever.
    """
    if _threads() != 1:
        threaded = answer["threaded"]
        raise RuntimeError(
            f"importing {threaded} leaves a thread running: no safe forks; use threads=1, or leave it out"
        )
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    gc.collect()
    gc.freeze()
    _fill_holes()
    # Their functions then lie side by side, where they took a page each: every call writes to the function's page.
    for name in own:
        importlib.reload(sys.modules[f"{__package__}.{name}"])
    seccomp.build(shared_user=shared_user)
    landlock.abi_version()
    hugepages.gather(before)


def _fill_holes() -> None:
    """Takes all free pieces out of the heap for good.

    What this process and its forks allocate then lies together at the heap's end. In the holes it would lie all over
    the heap, and each page that is written to is copied, and each huge page broken up, for every fork.
    """
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = (ctypes.c_size_t,)
    libc.free.argtypes = (ctypes.c_void_p,)
    libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
    libc.mallopt(_M_TOP_PAD, _ROOM_AT_THE_END)
    end = libc.malloc(_TOO_LARGE_FOR_A_HOLE)
    for size in range(_LARGEST_HOLE, 0, -_GRAIN):
        while (piece := libc.malloc(size) or end) < end:
            pass
        libc.free(piece)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208
