"""A limit for work in a thread that a busy machine alone does not reach."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Answer = TypeVar("Answer")
STALL_FACTOR = 10.0
"""Wall-clock seconds for each second of CPU time: for work that waits, or gets little of the machine."""
_LEAST_WAIT_S = 0.01


class OverLimit(Exception):
    """The work used more CPU time than it may have, or did not come to an end."""


@dataclass
class _Work(Generic[Answer]):
    """A function with the CPU clock of the thread that runs it."""

    call: Callable[[], Answer]
    _clock_id: int | None = None
    _started_s: float = 0.0

    def run(self) -> Answer:
        """Runs the function."""
        clock_id = time.pthread_getcpuclockid(threading.get_ident())
        self._started_s = time.clock_gettime(clock_id)
        self._clock_id = clock_id
        return self.call()

    def cpu_s(self) -> float:
        """Returns the CPU seconds that the function has used; 0 before it has begun."""
        return 0.0 if self._clock_id is None else time.clock_gettime(self._clock_id) - self._started_s


async def within_cpu_limit(call: Callable[[], Answer], limit_s: float, stall_s: float | None = None) -> Answer:
    """Runs a function in a thread, within a limit of CPU time and a much longer one of wall-clock time.

    Args:
        call: The function. It cannot be stopped: past a limit it is left to itself.
        limit_s: CPU seconds of its thread.
        stall_s: Seconds on the wall clock; None for ``STALL_FACTOR`` times ``limit_s``.

    Raises:
        OverLimit: A limit was reached; the message says which.
    """
    work = _Work(call)
    stall_s = STALL_FACTOR * limit_s if stall_s is None else stall_s
    end_s = time.monotonic() + stall_s
    running = asyncio.ensure_future(asyncio.to_thread(work.run))
    try:
        while not running.done():
            left_s, wall_left_s = limit_s - work.cpu_s(), end_s - time.monotonic()
            if left_s <= 0:
                raise OverLimit(f"took more than {limit_s:g} s of CPU time")
            if wall_left_s <= 0:
                raise OverLimit(f"did not end within {stall_s:g} s")
            # A thread gets at most one second of CPU time a second: no limit can be reached before then.
            await asyncio.wait({running}, timeout=max(_LEAST_WAIT_S, min(left_s, wall_left_s)))
        return running.result()
    finally:
        running.cancel()
