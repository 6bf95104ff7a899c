"""Many executions of every kind leave nothing behind; many callers are served in turn."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandmle.errors import ConfigError, SandboxUnavailableError
from sandmle.records import ExecStatus, Limits
from sandmle.sandbox import ExecRequest
from sandmle.sandbox.forkserver import ForkserverSandbox
from sandmle.sandbox.soak import SoakReport, _Traces, soak

pytestmark = pytest.mark.sandbox


def _soak(backend: str, n: int) -> SoakReport:
    try:
        return soak(backend, n=n)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


def test_a_short_soak() -> None:
    report = _soak("forkserver", 100)
    assert report.problems == ()
    assert sum(report.statuses.values()) == 100
    assert report.latest_s <= 0.5
    assert {name.split()[0] for name in report.statuses} >= {"good", "raises", "sleeps", "hoards", "orphans", "litters"}


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "n"), [("forkserver", 2000), ("bwrap", 200), ("restricted", 500)])
def test_a_long_soak(backend: str, n: int) -> None:
    report = _soak(backend, n)
    assert report.problems == ()
    assert sum(report.statuses.values()) == n


def test_the_soak_sees_what_is_left() -> None:
    """A look that finds nothing wrong must be able to find something."""
    before = _Traces.now()
    read, write = os.pipe()
    process = subprocess.Popen(["/bin/sleep", "60"])
    try:
        text = " ".join(before._more(_Traces.now(), "here"))
    finally:
        process.kill()
        process.wait()
        os.close(read)
        os.close(write)
    assert f"processes left here: {process.pid}" in text
    assert "2 descriptors left here" in text


def test_the_number_of_executions_is_checked() -> None:
    with pytest.raises(ConfigError, match="give 1 or more"):
        soak("forkserver", n=0)


def test_many_callers_are_served_in_turn(tmp_path: Path) -> None:
    """64 requests on 2 workers: none is lost, none times out by waiting, and who came first is served first."""
    order: list[int] = []
    with ForkserverSandbox(workers=2, libraries="none") as sandbox, ThreadPoolExecutor(64) as pool:

        def one(index: int) -> tuple[ExecStatus, str]:
            workspace = tmp_path / str(index)
            workspace.mkdir()
            code = f"import time; time.sleep(0.03); print({index})"
            result = sandbox.execute(ExecRequest(code, workspace, limits=Limits(wall_s=1.0)))
            order.append(index)
            return result.status, result.stdout

        pending = []
        for index in range(64):
            pending.append(pool.submit(one, index))
            time.sleep(0.002)
        assert [future.result() for future in pending] == [(ExecStatus.OK, f"{i}\n") for i in range(64)]
    assert all(abs(place - index) <= 8 for place, index in enumerate(order)), order
