"""The restricted backend against the contract and attacks of its own, as whoever runs the tests."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandmle.errors import ConfigError, SandboxError, SandboxUnavailableError
from sandmle.records import ExecStatus, Limits
from sandmle.sandbox import Capability, ExecRequest
from sandmle.sandbox.inner import landlock
from sandmle.sandbox.restricted import RestrictedSandbox, reading_rules
from sandmle.sandbox.testing import SandboxContract
from sandmle.sandbox.testing.helpers import assert_held, assert_timeout, output, processes_with, run
from sandmle.sandbox.view import View

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(landlock.abi_version() < landlock.SCOPE_ABI, reason="needs Landlock 6 (Linux 6.12)"),
]


def _readable_python() -> str | None:
    """Returns an interpreter that the code's user may run: this one, or the system's for root's private one."""
    if os.geteuid() != 0 or all(parent.stat().st_mode & 1 for parent in Path(sys.executable).resolve().parents):
        return None
    system = shutil.which("python3", path="/usr/bin")
    version = "import sys; sys.exit(sys.version_info < (3, 11))"
    if system is None or subprocess.run([system, "-c", version], check=False).returncode:
        pytest.skip("no Python 3.11 that every user may run")
    return system


@pytest.fixture(scope="module")
def sandbox() -> Iterator[RestrictedSandbox]:
    with RestrictedSandbox(workers=8, python=_readable_python()) as started:
        yield started


class TestRestricted(SandboxContract):
    pass


def test_it_declares_only_what_it_holds(sandbox: RestrictedSandbox) -> None:
    lacking = {"filesystem", "process", "memory", "process_count", "disk"}
    assert {capability.value for capability in Capability} - {c.value for c in sandbox.capabilities} == lacking


def test_files_of_the_same_user_are_out_of_reach(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    """Landlock does not cover modes, times, owners and attributes: the system-call filter has to."""
    mine = tmp_path / "mine"
    mine.write_text("answers")
    mine.chmod(0o666)
    if sandbox._uid is not None:
        os.chown(mine, sandbox._uid, sandbox._uid)
        tmp_path.chmod(0o777)
        for parent in tmp_path.parents:
            if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & 1:
                parent.chmod(0o755)  # pytest's own folders
    before = mine.stat()
    attacks = f"""
        path = {str(mine)!r}
        print("sees it" if os.path.exists(path) else "cannot even see it")
        held("reads", lambda: open(path).read())
        held("writes", lambda: open(path, "r+").write("x"))
        held("truncates by opening", lambda: os.open(path, os.O_RDONLY | os.O_TRUNC) >= 0)
        held("truncates", lambda: os.truncate(path, 0) is None)
        held("removes", lambda: os.remove(path) is None)
        held("renames", lambda: os.rename(path, path + "2") is None)
        held("takes", lambda: os.rename(path, "taken") is None)
        held("links", lambda: os.link(path, "linked") is None)
        held("links by a symbolic link", lambda: os.symlink(path, "linked") is None)
        held("plants", lambda: open(os.path.dirname(path) + "/planted", "w") and True)
        held("changes the owner", lambda: os.chown(path, -1, os.getgid()) is None)
        held("sets an attribute", lambda: os.setxattr(path, "user.x", b"x") is None)
        held("watches", lambda: libc.inotify_init() >= 0)
        for change in (lambda: os.chmod(path, 0o777), lambda: os.utime(path, (1, 1))):
            held("changes", change)
    """
    code_output = "sees it\nend\n"
    from sandmle.sandbox.testing import helpers

    code = helpers._ATTACK + "\n".join(line[8:] for line in attacks.splitlines()) + "\nprint('end')\n"
    assert output(sandbox, tmp_path / "w", code) == code_output
    after = mine.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_uid, after.st_nlink) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_uid,
        1,
    )
    assert mine.read_text() == "answers"
    assert not list(tmp_path.glob("planted"))


def test_processes_of_the_same_user_are_out_of_reach(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    become = (lambda: os.setresuid(*[sandbox._uid] * 3)) if sandbox._uid is not None else None
    token = f"token{secrets.token_hex(4)}"
    victim = subprocess.Popen(["/bin/sleep", "60"], preexec_fn=become, env={"TOKEN": token}, cwd="/")
    try:
        attacks = f"""
            import resource
            pid = {victim.pid}
            by_pidfd = lambda number: signal.pidfd_send_signal(os.pidfd_open(pid), number)
            for number in (0, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
                held(f"signals {{number}}", lambda: os.kill(pid, number) is None)
                held(f"signals {{number}} by pidfd", lambda: by_pidfd(number) is None)
            for name in ("environ", "mem", "maps", "cmdline", "status", "stat", "comm", "stack"):
                held("reads " + name, lambda: open(f"/proc/{{pid}}/{{name}}", "rb").read(9))
            for name in ("fd", "cwd", "root", "task", "net", "ns"):
                held("lists " + name, lambda: os.listdir(f"/proc/{{pid}}/{{name}}"))
            held("sees its program", lambda: os.readlink(f"/proc/{{pid}}/exe"))
            held("limits it", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))
            held("slows it", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19) is None)
            held("slows all of the user", lambda: os.setpriority(os.PRIO_USER, 0, 19) is None)
            held("moves it", lambda: os.sched_setaffinity(pid, {{0}}) is None)
            held("schedules it", lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)) is None)
            held("its disk priority", lambda: libc.syscall(251, 1, pid, 3 << 13) == 0)
            held("traces it", lambda: libc.ptrace(16, pid, 0, 0) == 0)
            os.nice(1)
        """
        assert_held(sandbox, tmp_path, attacks)
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_neighbours_are_out_of_reach(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    """Two executions run as one user; neither can list, read or signal the other, even by its exact name."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        victim = "import os, time\nopen('secret', 'w').write('s')\nprint(os.getpid(), flush=True)\ntime.sleep(1.5)"
        pending = pool.submit(run, sandbox, tmp_path / "victim", victim)
        time.sleep(0.6)
        assert sandbox._scratch is not None
        folders = [path.parent for path in sandbox._scratch.path.glob("*/workspace")]
        secret = next(folder / "workspace" / "secret" for folder in folders if (folder / "workspace/secret").exists())
        attacks = f"""
            held("lists executions", lambda: os.listdir({str(sandbox._scratch.path)!r}))
            held("lists the other", lambda: os.listdir({str(secret.parent)!r}))
            held("reads", lambda: open({str(secret)!r}).read())
            held("writes", lambda: open({str(secret)!r}, "w") and True)
            held("plants", lambda: open({str(secret.with_name("planted"))!r}, "w") and True)
            for pid in range(max(1, os.getpid() - 300), os.getpid()):
                held(f"kills {{pid}}", lambda: os.kill(pid, 9) is None)
        """
        assert_held(sandbox, tmp_path / "attacker", attacks)
        result = pending.result()
    assert result.status is ExecStatus.OK
    assert {path.name for path in (tmp_path / "victim" / "workspace").iterdir()} == {"secret"}


def test_memory_of_all_processes_is_watched(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    code = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        break
held = [b'x' * 1_000_000 for _ in range(100)]
time.sleep(30)
"""
    result = run(sandbox, tmp_path, code, limits=Limits(wall_s=20, memory_mb=300))
    assert (result.status, result.exit_code) == (ExecStatus.OOM, None)
    assert result.wall_s < 10


def test_cpu_of_all_processes_is_watched(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    code = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    result = run(sandbox, tmp_path, code, limits=Limits(wall_s=30, cpu_s=1))
    assert result.status is ExecStatus.TIMEOUT
    assert "CPU" in result.detail
    assert 0.9 <= result.cpu_s < 3


@pytest.mark.parametrize("place", [".", "tempfile.gettempdir()"])
def test_disk_is_watched(sandbox: RestrictedSandbox, tmp_path: Path, place: str) -> None:
    code = f"""
import os, tempfile, time
os.chdir({place if "(" in place else repr(place)})
for i in range(10):
    open(f"f{{i}}", "wb").write(bytes(1 << 20))
time.sleep(20)
"""
    result = run(sandbox, tmp_path, code, limits=Limits(wall_s=20, file_mb=4))
    assert result.status is ExecStatus.LIMIT
    assert "4 MB" in result.detail
    assert result.wall_s < 5


def test_processes_are_bounded(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    code = """
import os, time
count = 1
try:
    while count < 500:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
except OSError:
    print(count)
    raise
"""
    result = run(sandbox, tmp_path, code, limits=Limits(wall_s=20, processes=16))
    assert result.status in (ExecStatus.ERROR, ExecStatus.LIMIT)
    if result.stdout:
        assert int(result.stdout) <= 16


def test_a_bomb_in_many_sessions_is_ended(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    """Processes that multiply, leave their parents and sessions and ignore every signal all die with the call."""
    token = f"token-{secrets.token_hex(6)}"
    code = f"""
import os, signal, sys
token = {token!r}
if os.fork():
    import time
    time.sleep(0.3)
    os._exit(0)
for number in set(signal.Signals) - {{9, 19}}:
    signal.signal(number, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            os.fork()
    except OSError:
        pass
"""
    start_s = time.monotonic()
    result = run(sandbox, tmp_path, code, limits=Limits(wall_s=3, cpu_s=60, processes=40))
    assert result.status in (ExecStatus.OK, ExecStatus.LIMIT)
    assert time.monotonic() - start_s < 5
    # The call waits until its keeper has ended; the server reaps it a moment later.
    assert _processes_below(sandbox, but_dead_keepers=True) == []
    while _processes_below(sandbox):
        assert time.monotonic() - start_s < 7
        time.sleep(0.01)


def _processes_below(sandbox: RestrictedSandbox, *, but_dead_keepers: bool = False) -> list[int]:
    assert sandbox._server is not None
    found, wanted = [], {sandbox._server.pid}
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if but_dead_keepers and fields[0] == "Z" and int(fields[1]) == sandbox._server.pid:
            continue
        if int(fields[1]) in wanted:
            wanted.add(int(entry.name))
            found.append(int(entry.name))
    return found


def test_a_killed_keeper_leaves_nothing(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with (
        RestrictedSandbox(workers=2, python=_readable_python(), libraries="none") as own,
        ThreadPoolExecutor(1) as pool,
    ):
        code = "import os, time\nif os.fork() == 0: os.setsid(); os.fork()\ntime.sleep(30)"
        pending = pool.submit(run, own, tmp_path, code)
        time.sleep(0.7)
        keeper = _processes_below(own)[0]
        os.kill(keeper, signal.SIGKILL)
        with pytest.raises(SandboxError, match="process 1 died"):
            pending.result()
        deadline_s = time.monotonic() + 3
        while _processes_below(own):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        assert output(own, tmp_path, "print('next')") == "next\n"
        assert own._scratch is not None
        assert list(own._scratch.path.iterdir()) == []


_CALLER = """
import sys
from pathlib import Path
from sandmle.sandbox import ExecRequest
from sandmle.sandbox.restricted import RestrictedSandbox
python, token, workspace = sys.argv[1:]
sandbox = RestrictedSandbox(workers=1, python=python or None, libraries="none").start()
print("started", flush=True)
code = f"import os, time, subprocess, sys\\nif os.fork() == 0:\\n    os.setsid()\\n"
code += f"subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)', '{token}'])"
sandbox.execute(ExecRequest(code, Path(workspace)))
"""


def test_a_killed_caller_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = f"token-{secrets.token_hex(6)}"
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        scratch.chmod(0o755)
        (scratch / "workspace").mkdir()
        caller = subprocess.Popen(
            [sys.executable, "-c", _CALLER, _readable_python() or "", token, str(scratch / "workspace")],
            env={**os.environ, "TMPDIR": name},
            stdout=subprocess.PIPE,
        )
        with caller:
            assert caller.stdout is not None
            assert caller.stdout.readline() == b"started\n"
            deadline_s = time.monotonic() + 20
            while len(processes_with(token)) < 3:  # the caller, and the code's two sleepers
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            assert list(scratch.glob(f"sandmle-{caller.pid}-*"))
            caller.kill()
        while processes_with(token):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        monkeypatch.setattr("tempfile.tempdir", name)
        with RestrictedSandbox(workers=1, python=_readable_python(), libraries="none"):
            assert not list(scratch.glob(f"sandmle-{caller.pid}-*"))


def test_libraries_that_use_processes_work_or_do_without(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    code = """
import multiprocessing as mp, sys
from concurrent.futures import ProcessPoolExecutor
def square(x): return x * x
def put(queue, lock):
    with lock:
        queue.put(5)
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(4))))
    queue, lock, many, again = mp.Queue(), mp.Lock(), mp.BoundedSemaphore(2), mp.RLock()
    process = mp.Process(target=put, args=(queue, lock))
    process.start()
    print(queue.get(timeout=5))
    process.join()
    with lock:
        print(lock.acquire(block=False), lock.acquire(timeout=0.05))
    with again, again:
        print("again", many.acquire(), many.acquire(), many.acquire(block=False), many.get_value())
    many.release(); many.release()
    for release in (many.release, again.release):
        try:
            release()
        except (ValueError, AssertionError) as error:
            print(type(error).__name__)
    event, value = mp.Event(), mp.Value("i", 3)
    event.set()
    print(event.wait(1), value.value)
"""
    expected = "[0, 1, 4, 9]\n5\nFalse False\nagain True True False 0\nValueError\nAssertionError\nTrue 3\n"
    result = run(sandbox, tmp_path, code)
    assert (result.stdout, result.stderr, result.status) == (expected, "", ExecStatus.OK)


def test_folders_that_cannot_be_entered_or_are_too_deep_are_removed(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    code = """
import os, tempfile
for place in (".", tempfile.gettempdir()):
    os.chdir(place)
    os.mkdir("closed", 0o300)
    open("closed/file", "w").close()
    os.mkdir("closed/shut", 0)
    os.close(os.open("unreadable", os.O_CREAT | os.O_WRONLY, 0))
    for _ in range(1200):
        os.mkdir("d"); os.chdir("d")
"""
    run(sandbox, tmp_path, code)
    assert sandbox._scratch is not None
    assert list(sandbox._scratch.path.iterdir()) == []


def test_a_workspace_that_is_too_large_is_the_callers_fault(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(3 << 20))
    with pytest.raises(ConfigError, match="raise file_mb"):
        sandbox.execute(ExecRequest("pass", tmp_path, limits=Limits(file_mb=1)))


def test_what_is_masked_is_in_no_rule(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site"
    for name in ("sandmle", "numpy", "other"):
        (site / name).mkdir(parents=True)
    (site / "sandmle.pth").touch()
    (site / "module.py").touch()
    (tmp_path / "lib64").symlink_to("lib")
    view = View(
        binds=((str(tmp_path), "/x"),),
        symlinks=(),
        files={},
        mask_folders=(str(site / "sandmle"),),
        mask_files=(str(site / "sandmle.pth"),),
        python="",
    )
    readable, listable = reading_rules(view)
    assert sorted(readable) == [str(site / name) for name in ("module.py", "numpy", "other")]
    assert listable == [str(tmp_path), str(tmp_path / "lib"), str(site)]


def test_s25_a_private_python_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root starts code as another user")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    shutil.copy(shutil.which("python3", path="/usr/bin") or sys.executable, private / "python3")
    with pytest.raises(SandboxUnavailableError, match=r"may not read .*private/python3; give it a Python"):
        RestrictedSandbox(python=str(private / "python3")).start()


def test_the_deadline_holds_for_stubborn_trees(sandbox: RestrictedSandbox, tmp_path: Path) -> None:
    code = """
import os, signal, time
for number in set(signal.Signals) - {9, 19}:
    signal.signal(number, signal.SIG_IGN)
for _ in range(4):
    os.fork()
os.setsid() if os.getpid() != os.getsid(0) else None
time.sleep(60)
"""
    result = run(sandbox, tmp_path, code, limits=Limits(wall_s=1))
    assert_timeout(result, 1)


@pytest.mark.parametrize(
    ("code", "limits", "status"),
    [
        (  # files without a name
            """
            files = []
            while True:
                files.append(os.open("file", os.O_RDWR | os.O_CREAT, 0o600))
                os.remove("file")
                os.posix_fallocate(files[-1], 0, 10 << 20)
                time.sleep(0.1)
            """,
            Limits(wall_s=20, file_mb=64),
            "limit",
        ),
        (  # files where nobody may list them
            """
            os.mkdir("hidden", 0o300)
            for index in range(60):
                os.posix_fallocate(os.open(f"hidden/{index}", os.O_RDWR | os.O_CREAT), 0, 10 << 20)
            time.sleep(5)
            """,
            Limits(wall_s=20, file_mb=64),
            "limit",
        ),
        (  # the time of children that nobody waits for
            """
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            while True:
                child = os.fork()
                if child == 0:
                    end = time.process_time() + 0.4
                    while time.process_time() < end: pass
                    os._exit(0)
                while os.path.exists(f"/proc/{child}") or True:
                    try: os.kill(child, 0)
                    except OSError: break
                    time.sleep(0.02)
            """,
            Limits(wall_s=20, cpu_s=1),
            "timeout",
        ),
    ],
    ids=["nameless files", "a folder without a list", "unwaited children"],
)
def test_what_hides_from_the_watch(
    sandbox: RestrictedSandbox, tmp_path: Path, code: str, limits: Limits, status: str
) -> None:
    code = "import os, signal, time\n" + textwrap.dedent(code)
    result = run(sandbox, tmp_path, code, limits=limits)
    assert (result.status.value, result.wall_s < 15) == (status, True), result
