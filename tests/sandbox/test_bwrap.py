"""Bubblewrap against the whole contract."""

import functools
import shutil
from collections.abc import Iterator

import pytest

from sandmle.errors import SandboxUnavailableError
from sandmle.sandbox.bwrap import BwrapSandbox
from sandmle.sandbox.testing import SandboxContract

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

# A cold start for each of a hundred executions, or imports of seconds; the forkserver runs the same tests by default.
_SLOW = (
    "test_s04_timeouts_leave_nothing",
    "test_s13_libraries_load_under_default_limits",
    "test_waiting_for_a_turn_does_not_count",
    "test_a49_many_spinners_do_not_starve_a_neighbour",
    "test_joblib_works",
    "test_a41_inodes",
    "test_cpu_of_all_processes_counts",
    "test_a28_a29_a31_a32_bytes_are_handed_over_unread",
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[BwrapSandbox]:
    with BwrapSandbox(workers=8) as started:
        yield started


def _slow(name: str) -> object:
    """Returns a test of the contract, marked slow; the contract's own function stays as it is."""
    test = getattr(SandboxContract, name)

    @functools.wraps(test)
    def marked(*args: object, **kwargs: object) -> None:
        test(*args, **kwargs)

    return pytest.mark.slow(marked)


class TestBwrap(SandboxContract):
    locals().update({name: _slow(name) for name in _SLOW})


def test_s25_without_bubblewrap_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxUnavailableError, match="apt install bubblewrap"):
        BwrapSandbox().start()
