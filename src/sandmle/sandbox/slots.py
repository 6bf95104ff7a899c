"""Turns at a bounded number of execution slots, first come first served."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """Hands out slot numbers; who waits longest is served first."""

    def __init__(self, count: int) -> None:
        """Makes ``count`` slots."""
        self._count = count
        self._lock = threading.Lock()
        self._free = deque(range(count))
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def turn(self) -> Iterator[int]:
        """Waits for a slot, and gives it back at the end."""
        slot = self._take()
        try:
            yield slot
        finally:
            self._give(slot)

    def wait_idle(self) -> None:
        """Waits until every turn that was taken or asked for before is over."""
        taken = [self._take() for _ in range(self._count)]
        for slot in taken:
            self._give(slot)

    def _take(self) -> int:
        while True:
            with self._lock:
                if self._free and not self._waiting:
                    return self._free.popleft()
                ticket = threading.Event()
                self._waiting.append(ticket)
                if self._free:
                    self._waiting[0].set()
            ticket.wait()
            with self._lock:
                self._waiting.remove(ticket)
                slot = self._free.popleft()
                if self._free and self._waiting:
                    self._waiting[0].set()
                return slot

    def _give(self, slot: int) -> None:
        with self._lock:
            self._free.append(slot)
            if self._waiting:
                self._waiting[0].set()
