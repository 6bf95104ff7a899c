"""A busy machine must not look like a grader that never ends, and one that never ends must be told."""

import threading
import time

import pytest

from sandmle.env.time_limit import OverLimit, within_cpu_limit
from tests.env.fakes import burn


async def test_waiting_is_not_held_against_the_work() -> None:
    limit_s = 0.2
    assert await within_cpu_limit(lambda: time.sleep(2 * limit_s) or "done", limit_s) == "done"


async def test_cpu_time_is() -> None:
    with pytest.raises(OverLimit, match=r"^took more than 0\.05 s of CPU time$"):
        await within_cpu_limit(lambda: burn(0.3), 0.05, stall_s=60.0)


async def test_work_that_hangs_is_given_up() -> None:
    end = threading.Event()
    try:
        with pytest.raises(OverLimit, match=r"^did not end within 0\.1 s$"):
            await within_cpu_limit(end.wait, 0.01)
    finally:
        end.set()


async def test_its_own_exception_comes_through() -> None:
    def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await within_cpu_limit(fail, 1.0)
