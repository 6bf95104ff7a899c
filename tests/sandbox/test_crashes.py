"""What happens when a part of the sandbox itself is killed, and what a killed caller leaves behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandmle.errors import SandboxError, SandboxUnavailableError
from sandmle.records import ExecResult, ExecStatus, Limits
from sandmle.sandbox import Capability, ExecRequest, supervise
from sandmle.sandbox.forkserver import ForkserverSandbox
from sandmle.sandbox.testing.helpers import needs, run

pytestmark = pytest.mark.sandbox


@pytest.fixture
def sandbox() -> Iterator[ForkserverSandbox]:
    with ForkserverSandbox(workers=2, libraries="none") as started:
        yield started


def _run(sandbox: ForkserverSandbox, folder: Path, code: str, wall_s: float = 20) -> ExecResult:
    folder.mkdir(exist_ok=True)
    return sandbox.execute(ExecRequest(code, folder, limits=Limits(wall_s=wall_s)))


def _server(sandbox: ForkserverSandbox) -> int:
    _wait_for(lambda: sandbox._server is not None)  # it may be starting anew
    assert sandbox._server is not None
    return sandbox._server.pid


def _descendants(pid: int) -> list[int]:
    found, wanted = [], {pid}
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) in wanted:
            wanted.add(int(entry.name))
            found.append(int(entry.name))
    return found


def test_a_dead_server_is_replaced(sandbox: ForkserverSandbox, tmp_path: Path) -> None:
    os.kill(_server(sandbox), signal.SIGKILL)
    time.sleep(0.1)
    assert _run(sandbox, tmp_path, "print(1)").stdout == "1\n"


def test_a_server_killed_at_any_moment_gives_no_wrong_result(sandbox: ForkserverSandbox, tmp_path: Path) -> None:
    for delay_s in (0.0, 0.005, 0.02):
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(_run, sandbox, tmp_path, "import time; time.sleep(0.05); print('whole')")
            time.sleep(delay_s)
            os.kill(_server(sandbox), signal.SIGKILL)
            try:
                assert pending.result().stdout == "whole\n"
            except SandboxError:
                pass
    assert _run(sandbox, tmp_path, "print(1)").stdout == "1\n"


def test_a_server_that_hangs_is_replaced(
    sandbox: ForkserverSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "SETUP_S", 1.0)
    os.kill(_server(sandbox), signal.SIGSTOP)
    with pytest.raises(SandboxError, match="could not start the code"):
        _run(sandbox, tmp_path, "print(1)")
    monkeypatch.undo()
    assert _run(sandbox, tmp_path, "print(1)").stdout == "1\n"


def _is_process_1(pid: int) -> bool:
    """Tells whether a process is the first of a process namespace of its own."""
    status = Path(f"/proc/{pid}/status").read_text()
    numbers = next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))
    return len(numbers) > 1 and numbers[-1] == "1"


def test_a_server_killed_under_running_code_is_our_failure(sandbox: ForkserverSandbox, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(_run, sandbox, tmp_path, "import time; time.sleep(10)")
        time.sleep(0.5)
        os.kill(_server(sandbox), signal.SIGKILL)
        with pytest.raises(SandboxError, match=r"(died|failed) while the code was running"):
            pending.result()
    assert _run(sandbox, tmp_path, "print(1)").stdout == "1\n"


def test_process_1_killed_from_outside_is_our_failure(sandbox: ForkserverSandbox, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(_run, sandbox, tmp_path, "import time; time.sleep(10)")
        time.sleep(0.5)
        os.kill(next(filter(_is_process_1, _descendants(_server(sandbox)))), signal.SIGKILL)
        with pytest.raises(SandboxError, match="process 1"):
            pending.result()
    assert _run(sandbox, tmp_path, "print(1)").stdout == "1\n"


def test_the_warm_server_killed_under_running_code_is_our_failure(sandbox: ForkserverSandbox, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(_run, sandbox, tmp_path, "import time; time.sleep(10)")
        time.sleep(0.5)
        warm = next(pid for pid in _descendants(_server(sandbox)) if not _is_process_1(pid))
        os.kill(warm, signal.SIGKILL)
        with pytest.raises(SandboxError):
            pending.result()
    assert _run(sandbox, tmp_path, "print(1)").stdout == "1\n"


def test_closing_ends_what_is_running(tmp_path: Path) -> None:
    sandbox = ForkserverSandbox(workers=1, libraries="none").start()
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(_run, sandbox, tmp_path / "a", "import time; time.sleep(30)", 60)
        time.sleep(0.5)
        waiting = pool.submit(_run, sandbox, tmp_path / "b", "print(1)")
        time.sleep(0.1)
        start_s = time.monotonic()
        sandbox.close()
        sandbox.close()
        for pending in (running, waiting):
            with pytest.raises(SandboxError):
                pending.result()
        assert time.monotonic() - start_s < 5


def test_not_started_and_closed_sandboxes_say_so(tmp_path: Path) -> None:
    sandbox = ForkserverSandbox(libraries="none")
    with pytest.raises(SandboxError, match="not started"):
        _run(sandbox, tmp_path, "pass")
    with sandbox:
        assert _run(sandbox, tmp_path, "pass").status is ExecStatus.OK
    with pytest.raises(SandboxError, match="not started"):
        _run(sandbox, tmp_path, "pass")
    with sandbox:
        assert _run(sandbox, tmp_path, "pass").status is ExecStatus.OK


def test_two_sandboxes_in_one_process_do_not_mix(sandbox: ForkserverSandbox, tmp_path: Path) -> None:
    with ForkserverSandbox(workers=1, libraries="none") as other:
        assert _run(other, tmp_path, "pass").status is ExecStatus.OK
        assert other._first_uid != sandbox._first_uid
    assert _run(sandbox, tmp_path, "print(1)").stdout == "1\n"


def test_a_fork_of_the_caller_may_not_use_it(sandbox: ForkserverSandbox, tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _run(sandbox, tmp_path, "pass")
        except SandboxError:
            sandbox.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert _run(sandbox, tmp_path, "print(1)").stdout == "1\n"


_CALLER = """
import sys, tempfile
from pathlib import Path
from sandmle.records import Limits
from sandmle.sandbox import ExecRequest
from sandmle.sandbox.{backend} import {name}
sandbox = {name}(workers=1).start()
print("started", flush=True)
code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)', '{token}'])"
sandbox.execute(ExecRequest(code, Path(sys.argv[1]), limits=Limits(wall_s=50)))
"""


@pytest.mark.parametrize(("backend", "name"), [("forkserver", "ForkserverSandbox"), ("bwrap", "BwrapSandbox")])
def test_a_killed_caller_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, name: str
) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    (tmp_path / "workspace").mkdir()
    (scratch / "sandmle-notes-1").mkdir()
    (scratch / f"sandmle-{os.getpid()}-mine").mkdir()
    token = f"token-{os.getpid()}-{backend}"
    caller = subprocess.Popen(
        [sys.executable, "-c", _CALLER.format(backend=backend, name=name, token=token), str(tmp_path / "workspace")],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert caller.stdout is not None
    first = caller.stdout.readline()
    if first != b"started\n":
        _, errors = caller.communicate()
        pytest.skip(f"{backend} does not start here: {errors.decode()[-200:]}")
    _wait_for(lambda: _with_token(token))
    assert list(scratch.glob(f"sandmle-{caller.pid}-*"))
    children = _descendants(caller.pid)
    caller.kill()
    caller.communicate()
    _wait_for(lambda: not _with_token(token) and not any(Path(f"/proc/{pid}").exists() for pid in children))
    assert token not in Path("/proc/self/mountinfo").read_text()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with ForkserverSandbox(workers=1, libraries="none"):
        assert not list(scratch.glob(f"sandmle-{caller.pid}-*"))
        assert (scratch / "sandmle-notes-1").exists()
        assert (scratch / f"sandmle-{os.getpid()}-mine").exists()
        assert not list(Path("/sys/fs/cgroup").glob(f"**/sandmle-{caller.pid}-*"))


def _with_token(token: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if token.encode() in command.split(b"\0"):
            found.append(entry.parent.name)
    return found


def _wait_for(condition: object, seconds: float = 20) -> None:
    deadline_s = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_close_removes_groups_folders_and_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(Path("/sys/fs/cgroup").glob(f"**/sandmle-{os.getpid()}-*"))
    threads = threading.active_count()
    children = _descendants(os.getpid())
    with ForkserverSandbox(workers=2, libraries="none") as sandbox:
        _run(sandbox, tmp_path / "w", "pass")
    assert [path.name for path in tmp_path.iterdir()] == ["w"]
    assert set(Path("/sys/fs/cgroup").glob(f"**/sandmle-{os.getpid()}-*")) == before
    assert _descendants(os.getpid()) == children
    assert threading.active_count() == threads


def test_s25_a_missing_interpreter_fails_closed() -> None:
    with pytest.raises(SandboxUnavailableError, match="/nonexistent/python"):
        ForkserverSandbox(python="/nonexistent/python").start()


def test_s25_without_namespaces_nothing_runs(tmp_path: Path) -> None:
    """The sandbox's own system-call filter, put on a whole process, takes away what the sandbox needs."""
    code = """
import sys
from pathlib import Path
from sandmle.errors import SandboxUnavailableError
from sandmle.sandbox import open_backend
from sandmle.sandbox.inner import kernel, seccomp
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(seccomp.build())
for name in ("forkserver", "bwrap"):
    try:
        open_backend(name)
    except SandboxUnavailableError as error:
        print(name, "refused:", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["forkserver refused", "bwrap refused"], done
    assert "user namespaces" in lines[0]


def test_a_small_memory_limit_right_after_a_large_execution(tmp_path: Path) -> None:
    """The group of the slot may still hold what the one before had; that is no fault of anybody."""
    hoard = "x = []\nwhile True: x.append(bytes(5_000_000))"
    with ForkserverSandbox(workers=1, libraries="none") as sandbox:
        needs(sandbox, Capability.MEMORY)
        for index in range(8):
            large = run(sandbox, tmp_path / f"large{index}", hoard, limits=Limits(wall_s=20, memory_mb=60))
            small = run(sandbox, tmp_path / f"small{index}", "pass", limits=Limits(wall_s=20, memory_mb=1))
            assert (large.status, small.status) == (ExecStatus.OOM, ExecStatus.OOM), (large, small)
