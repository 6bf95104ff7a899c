"""``multiprocessing`` where /dev/shm is out of reach: semaphores of our own, shared values in the temporary folder.

The C library keeps named semaphores in /dev/shm. These live in anonymous shared memory, so processes made by fork share
them. Fresh interpreters cannot.
"""

import ctypes
import errno
import importlib
import math
import mmap
import threading
import time
from typing import Any

_RECURSIVE = 0
_SIZE = 64
_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class SemLock:
    """Behaves as ``_multiprocessing.SemLock`` does."""

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        """Makes a semaphore. It has no name, so there is nothing to unlink, now or later."""
        del unlink, name
        self.kind, self.maxvalue, self.name = kind, maxvalue, None
        self._memory = mmap.mmap(-1, _SIZE)
        self._place = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))
        self.handle = self._place.value
        self._held = 0
        self._owner = 0
        _check(_libc.sem_init(self._place, 1, value))

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Takes the semaphore; returns False if it was not free in time."""
        if self.kind == _RECURSIVE and self._is_mine():
            self._held += 1
            return True
        if not self._wait(block, timeout):
            return False
        self._held += 1
        self._owner = threading.get_ident()
        return True

    def release(self) -> None:
        """Gives the semaphore back."""
        if self.kind == _RECURSIVE:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._held > 1:
                self._held -= 1
                return
        elif self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        _check(_libc.sem_post(self._place))
        self._held -= 1

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    def _count(self) -> int:
        return self._held

    def _is_mine(self) -> bool:
        return self._held > 0 and self._owner == threading.get_ident()

    def _get_value(self) -> int:
        value = ctypes.c_int()
        _check(_libc.sem_getvalue(self._place, ctypes.byref(value)))
        return value.value

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def _after_fork(self) -> None:
        self._held = 0

    @classmethod
    def _rebuild(cls, *state: Any) -> "SemLock":
        raise OSError(errno.ENOSYS, "locks cannot be handed to a fresh interpreter in this sandbox")

    def _wait(self, block: bool, timeout: float | None) -> bool:
        deadline = None
        if block and timeout is not None:
            whole = time.time() + max(0.0, timeout)
            deadline = _Timespec(math.floor(whole), int(whole % 1 * 1e9))
        while True:
            if not block:
                result = _libc.sem_trywait(self._place)
            elif deadline is None:
                result = _libc.sem_wait(self._place)
            else:
                result = _libc.sem_timedwait(self._place, ctypes.byref(deadline))
            if result == 0:
                return True
            code = ctypes.get_errno()
            if code in (errno.EAGAIN, errno.ETIMEDOUT):
                return False
            if code != errno.EINTR:  # a signal: its handler has run by now
                raise OSError(code, "the semaphore cannot be waited for")


def _check(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "the semaphore does not work")


def install() -> None:
    """Makes ``multiprocessing`` use these in this process and its forks."""
    SemLock.__module__ = "_multiprocessing"
    importlib.import_module("_multiprocessing").SemLock = SemLock  # type: ignore[attr-defined]
    importlib.import_module("multiprocessing.heap").Arena._dir_candidates = []
