import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandmle.errors import ConfigError, SandboxUnavailableError, SandmleError
from sandmle.parallel import map_items, map_with


def double(value: int) -> int:
    return 2 * value


def fail_on_odd(value: int) -> int:
    if value == 1:
        raise SandmleError("one is refused")
    if value == 3:
        raise ValueError("three is a bug")
    return value


def die_on_two(value: int) -> int:
    if value == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


@contextmanager
def counted(folder: Path) -> Iterator[Path]:
    (folder / f"opened-{os.getpid()}").touch()
    yield folder
    (folder / f"closed-{os.getpid()}").touch()


class Counted:
    """A picklable factory: partial of a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> object:
        return counted(self.folder)


def slow_pid(folder: Path, value: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def refuse() -> object:
    raise SandboxUnavailableError("no namespaces here; use --sandbox restricted")


def first(resource: object, item: int) -> int:
    return item


@pytest.mark.parametrize("workers", [1, 3])
def test_every_item_has_one_outcome(workers: int) -> None:
    outcomes = list(map_items(double, range(7), workers=workers))
    assert sorted((outcome.index, outcome.result) for outcome in outcomes) == [(n, 2 * n) for n in range(7)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_item_does_not_stop_the_others(workers: int) -> None:
    outcomes = {outcome.index: outcome for outcome in map_items(fail_on_odd, range(5), workers=workers)}
    assert [outcomes[n].result for n in (0, 2, 4)] == [0, 2, 4]
    assert outcomes[1].error == "one is refused"
    assert outcomes[1].trace == ""
    assert outcomes[3].error == "ValueError: three is a bug"
    assert "fail_on_odd" in outcomes[3].trace


def test_a_killed_worker_loses_only_its_item() -> None:
    outcomes = {outcome.index: outcome for outcome in map_items(die_on_two, range(6), workers=2)}
    assert sorted(outcomes) == list(range(6))
    assert outcomes[2].error == "the worker process died (exit code -9)"
    assert [outcomes[n].result for n in (0, 1, 3, 4, 5)] == [0, 1, 3, 4, 5]


def test_a_resource_is_opened_once_and_closed_in_every_worker(tmp_path: Path) -> None:
    outcomes = list(map_with(slow_pid, range(12), resource=Counted(tmp_path), workers=2))
    pids = {outcome.result for outcome in outcomes}
    assert len(pids) == 2
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{what}-{pid}" for pid in pids for what in ("opened", "closed")
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_resource_that_cannot_be_opened_stops_the_batch_with_its_reason(workers: int) -> None:
    with pytest.raises(SandmleError, match="use --sandbox restricted"):
        list(map_with(first, range(4), resource=refuse, workers=workers))


def test_abandoning_the_outcomes_ends_the_workers(tmp_path: Path) -> None:
    outcomes = map_with(slow_pid, range(100), resource=Counted(tmp_path), workers=2)
    pid = next(outcomes).result
    outcomes.close()  # type: ignore[attr-defined]
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_workers_below_one_are_refused() -> None:
    with pytest.raises(ConfigError, match="workers is 0"):
        map_items(double, [1, 2], workers=0)


def test_workers_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        import os, pathlib, time
        from sandmle.parallel import map_items

        def mark(folder):
            pathlib.Path(folder, f"pid-{os.getpid()}").touch()
            time.sleep(0.2)
            return 1

        if __name__ == "__main__":
            list(map_items(mark, [os.path.dirname(os.path.abspath(__file__))] * 500, workers=2))
        """)
    )
    parent = subprocess.Popen([sys.executable, str(script)])
    deadline = time.monotonic() + 30
    while len(list(tmp_path.glob("pid-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    pids = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
    assert len(pids) == 2
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
