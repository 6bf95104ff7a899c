"""Nothing outlives a call, and no call outlives its deadline by more than half a second."""

import os
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandmle.records import ExecStatus, Limits
from sandmle.sandbox.base import Capability, Sandbox
from sandmle.sandbox.testing.helpers import assert_timeout, needs, output, processes_with, run

_STUBBORN = {
    "a50_sleep": "import time; time.sleep(60)",
    "a50_ignores_signals": "import signal, time\n"
    "for s in set(signal.Signals) - {9, 19}: signal.signal(s, signal.SIG_IGN)\nwhile True: time.sleep(60)",
    "a50_catches_everything": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "a52_holds_the_lock": "sum(range(10**13))",
    "a55_stops_itself": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "a55_stops_its_group": "import os, signal; os.killpg(0, signal.SIGSTOP)",
    "a55_stops_all": "import os, signal\nos.kill(-1, signal.SIGSTOP) if os.fork() == 0 else None\n"
    "import time; time.sleep(60)",
    "s23_waits_for_a_client": "import socket\n"
    "try:\n    s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(); s.accept()\n"
    "except OSError:\n    s = socket.socketpair(); s[0].recv(1)",
    "never_ends_its_threads": "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
    "never_ends_its_exit_functions": "import atexit, time; atexit.register(time.sleep, 60)",
}


class LifetimeTests:
    """Deadlines, orphans and signals."""

    @pytest.mark.parametrize("code", list(_STUBBORN))
    def test_deadline(self, sandbox: Sandbox, tmp_path: Path, code: str) -> None:
        """The deadline holds whatever the code does."""
        needs(sandbox, Capability.LIFETIME)
        start_s = time.monotonic()
        result = run(sandbox, tmp_path, _STUBBORN[code], limits=Limits(wall_s=0.7, cpu_s=60))
        assert_timeout(result, 0.7)
        assert time.monotonic() - start_s < 10

    def test_a_sibling_of_the_code_holds_up_nothing(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A process that has itself adopted by the code's own parent (CLONE_PARENT) is not waited for in vain."""
        needs(sandbox, Capability.LIFETIME)
        code = """
            import ctypes, os, signal
            number, flags = (220 if os.uname().machine == "aarch64" else 56), 0x8000 | signal.SIGCHLD
            if ctypes.CDLL(None).syscall(number, flags, 0, 0, 0, 0) == 0:
                os._exit(0)
            print("end")
        """
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=2))
        assert (result.status, result.stdout) == (ExecStatus.OK, "end\n"), result

    def test_s07_a_kill_before_any_output(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A timeout without output is an ordinary result, and the next execution works."""
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=0.3))
        assert_timeout(result, 0.3)
        assert (result.stdout, result.stderr) == ("", "")
        assert output(sandbox, tmp_path, "print('next')") == "next\n"

    def test_output_before_the_deadline_is_kept(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Lines that were printed before the kill come back, and so do files."""
        code = "import time\nopen('f', 'w').write('x')\nprint('before')\ntime.sleep(60)"
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=1), collect=("f",))
        assert_timeout(result, 1)
        assert (result.stdout, result.file("f")) == ("before\n", b"x")

    def test_s01_background_processes_die_with_the_deadline(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """No descendant is alive after the return, and nothing is written later."""
        needs(sandbox, Capability.LIFETIME)
        token = f"token-{secrets.token_hex(8)}"
        late = "import time; time.sleep(1.5); open('late', 'w').write('late')"
        code = f"""
            import subprocess, sys, time
            for _ in range(3):
                subprocess.Popen([sys.executable, "-c", {late!r}, {token!r}], start_new_session=True)
            time.sleep(60)
        """
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=1))
        assert_timeout(result, 1)
        assert processes_with(token) == []
        time.sleep(1)
        assert not (tmp_path / "workspace" / "late").exists()

    def test_s02_a53_orphans_do_not_hold_the_call(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A daemon that keeps stdout open does not delay the return after the code has ended; it dies at once."""
        needs(sandbox, Capability.LIFETIME)
        token = f"token-{secrets.token_hex(8)}"
        code = f"""
            import os, subprocess, sys
            print("printed", flush=True)
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", {token!r}])
                    import time
                    time.sleep(60)
                os._exit(0)
            import time
            time.sleep(0.2)
        """
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=20))
        assert (result.status, result.stdout) == (ExecStatus.OK, "printed\n")
        assert result.wall_s < 5
        assert processes_with(token) == []

    @pytest.mark.parametrize(
        "target", ["1", "os.getppid()", "-1", "-os.getpgid(0)"], ids=["one", "parent", "all", "group"]
    )
    def test_a56_signals_reach_nobody_else(self, sandbox: Sandbox, tmp_path: Path, target: str) -> None:
        """Signals to process 1, to the parent, to all: none of them confuses the supervisor."""
        needs(sandbox, Capability.PROCESS_CONTENTS)
        code = f"""
            import os, signal
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGCHLD, signal.SIGUSR1):
                if os.fork() == 0:
                    try:
                        os.kill({target}, number)
                    finally:
                        os._exit(0)
            print("sent")
            os.wait()
            os._exit(5)
        """
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=2))
        assert result.status in (ExecStatus.ERROR, ExecStatus.TIMEOUT), result
        assert output(sandbox, tmp_path, "print('next')") == "next\n"

    @pytest.mark.parametrize("wall_s", [0.001, 0.05, 0.1])
    def test_s05_ending_at_the_deadline(self, sandbox: Sandbox, tmp_path: Path, wall_s: float) -> None:
        """Code that ends exactly at its deadline has ended or timed out; never is the sandbox at fault."""
        for shift_s in (-0.002, 0.0, 0.002):
            code = f"import time; time.sleep({max(0.0, wall_s + shift_s)})"
            result = run(sandbox, tmp_path, code, limits=Limits(wall_s=wall_s))
            assert result.status in (ExecStatus.OK, ExecStatus.TIMEOUT), result

    def test_a58_just_under_the_limit(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Code that uses nearly all of its time is in time."""
        result = run(sandbox, tmp_path, "import time; time.sleep(1.2)", limits=Limits(wall_s=2))
        assert result.status is ExecStatus.OK
        assert 1.2 <= result.wall_s < 2

    def test_s04_timeouts_leave_nothing(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A hundred timeouts leave no zombie and no descriptor."""
        limits = Limits(wall_s=0.02)

        def one(index: int) -> ExecStatus:
            return run(
                sandbox, tmp_path / str(index % sandbox.workers), "import time; time.sleep(9)", limits=limits
            ).status

        one(0)
        fds = len(list(Path("/proc/self/fd").iterdir()))
        with ThreadPoolExecutor(1) as pool:
            assert set(pool.map(one, range(100))) == {ExecStatus.TIMEOUT}
        assert len(list(Path("/proc/self/fd").iterdir())) == fds
        assert _zombies() == []


def _zombies() -> list[str]:
    """Returns this process's dead children and, through them, nobody else's."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] == "Z" and int(fields[1]) == os.getpid():
                found.append(entry.name)
    return found
