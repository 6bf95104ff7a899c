"""What hostile or careless code may use up: never more than its limits, and the status names the limit."""

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandmle.records import ExecStatus, Limits
from sandmle.sandbox.base import Capability, Sandbox
from sandmle.sandbox.testing.helpers import assert_held, assert_timeout, needs, output, run

_HOGS = {
    "a37_heap": "held = []\nwhile True: held.append(b'x' * 10_000_000)",
    "a38_shared_mmap": "import mmap\nm = mmap.mmap(-1, 2 << 30)\nfor i in range(0, 2 << 30, 4096): m[i] = 1",
    "a38_memfd": "import os\nfd = os.memfd_create('x')\nfds = [fd]\n"
    "while True:\n    fds.append(os.memfd_create('x'))\n    os.write(fds[-1], bytes(30 << 20))",
    "a37_many_processes": "import os\nfor _ in range(6):\n    if os.fork() == 0:\n        break\n"
    "held = [b'x' * 1_000_000 for _ in range(100)]\nimport time; time.sleep(60)",
    "child_while_the_parent_waits": "import os, time\nif os.fork() == 0:\n    held = []\n"
    "    while True: held.append(b'x' * 10_000_000)\ntime.sleep(60)",
}
_FILL = """
import os
for i in range(100):
    os.write(os.open(f"{place}/f{{i}}", os.O_CREAT | os.O_WRONLY), bytes(1 << 20))
    if os.statvfs({place!r}).f_bavail == 0:
        raise OSError("full")
print("never full")
"""


class ResourceTests:
    """Memory, processor, processes, disk, output and the kernel's own tables."""

    @pytest.mark.parametrize("hog", list(_HOGS))
    def test_s11_memory(self, sandbox: Sandbox, tmp_path: Path, hog: str) -> None:
        """The kernel ends code that takes too much memory, quickly, and the status says so; neighbours go on."""
        needs(sandbox, Capability.MEMORY)
        limits = Limits(wall_s=30, memory_mb=300)
        with ThreadPoolExecutor(1) as pool:
            neighbour = pool.submit(
                output, sandbox, tmp_path / "neighbour", "import time; time.sleep(1); print('well')"
            )
            result = run(sandbox, tmp_path / "hog", _HOGS[hog], limits=limits)
            assert neighbour.result() == "well\n"
        assert result.status is ExecStatus.OOM, result
        assert result.exit_code is None
        assert "300 MB" in result.detail
        assert result.wall_s < 15
        assert result.peak_memory_mb is None or 150 < result.peak_memory_mb <= 301

    def test_memory_of_files_counts(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Files in the temporary folder are memory too."""
        needs(sandbox, Capability.MEMORY)
        code = "for i in range(200): open(f'/tmp/{i}', 'wb').write(bytes(1 << 20))"
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=30, memory_mb=100, file_mb=500))
        assert result.status is ExecStatus.OOM, result

    def test_memory_limit_below_what_python_needs(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A limit in which nothing can run is a result, not a broken sandbox."""
        needs(sandbox, Capability.MEMORY)
        result = run(sandbox, tmp_path, "pass", limits=Limits(wall_s=10, memory_mb=1))
        assert result.status is ExecStatus.OOM, result

    def test_cpu_of_all_processes_counts(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Processor time is counted over all processes of an execution."""
        needs(sandbox, Capability.MEMORY)
        code = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=30, cpu_s=1))
        assert result.status is ExecStatus.TIMEOUT, result
        assert "CPU" in result.detail
        assert 1 <= result.cpu_s < 3

    def test_cpu_of_one_process(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A loop ends at its processor limit."""
        result = run(sandbox, tmp_path, "while True: pass", limits=Limits(wall_s=30, cpu_s=1))
        assert result.status is ExecStatus.TIMEOUT, result
        assert "CPU" in result.detail

    def test_a35_processes(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Code that fails at the limit of processes has the status `limit`, and never had more."""
        needs(sandbox, Capability.PROCESS_COUNT)
        code = """
            import os, time
            count = 1
            try:
                while count < 500:
                    if os.fork() == 0:
                        time.sleep(60)
                    count += 1
            except OSError:
                print(count)
                raise
        """
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=30, processes=16))
        assert result.status is ExecStatus.LIMIT, result
        assert "16 processes" in result.detail
        assert result.stdout == "16\n"

    def test_a35_fork_bomb(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A fork bomb that catches its errors lives until the deadline, in its own bounds, or is ended for them."""
        needs(sandbox, Capability.LIFETIME)
        code = """
            import os
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        """
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=1, cpu_s=100, processes=16))
        if result.status is not ExecStatus.LIMIT or Capability.PROCESS_COUNT in sandbox.capabilities:
            assert_timeout(result, 1)
        assert output(sandbox, tmp_path, "print('next')") == "next\n"

    def test_a35_threads(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Threads count as processes do."""
        needs(sandbox, Capability.PROCESS_COUNT)
        code = """
            import threading, time
            for _ in range(500):
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        """
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=20, processes=16))
        assert result.status is ExecStatus.LIMIT, result

    @pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])
    def test_a40_disk(self, sandbox: Sandbox, tmp_path: Path, place: str) -> None:
        """Every place that code may write to is bounded, and the status says that it was full."""
        needs(sandbox, Capability.DISK)
        result = run(sandbox, tmp_path, _FILL.format(place=place), limits=Limits(wall_s=20, file_mb=4))
        assert result.status is ExecStatus.LIMIT, result
        assert "4 MB" in result.detail

    def test_a41_inodes(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A flood of empty files does not reach the host."""
        code = """
            try:
                for i in range(6_000):
                    open(str(i), "w").close()
            except OSError:
                pass
        """
        assert run(sandbox, tmp_path, code).status in (ExecStatus.OK, ExecStatus.LIMIT)
        assert len(list((tmp_path / "workspace").iterdir())) <= 5000
        assert output(sandbox, tmp_path, "print('next')") == "next\n"

    def test_s10_output_flood(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Endless output ends the code; head, tail and a count of the rest are kept, in little memory."""
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        code = """
            import os
            os.write(1, b"the first line\\n")
            while True:
                os.write(1, b"flood\\n" * 10_000)
        """
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=30, output_bytes=40_000_000))
        assert result.status is ExecStatus.OUTPUT_LIMIT, result.status
        assert result.exit_code is None
        assert result.stdout_bytes > 40_000_000
        assert result.stdout.startswith("the first line\n")
        assert "bytes not shown" in result.stdout
        assert result.stdout.rstrip().endswith("flo" if result.stdout.endswith("flo") else "")
        assert len(result.stdout) < 250_000
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50_000

    def test_output_limit_counts_when_the_code_is_quick(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Too much output is too much even if the code has ended by the time it is seen."""
        result = run(sandbox, tmp_path, "print('x' * 2000)", limits=Limits(wall_s=20, output_bytes=1000))
        assert result.status is ExecStatus.OUTPUT_LIMIT

    def test_a43_a44_tables_of_the_kernel(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Timers, queues, System V objects, locked memory and descriptors are bounded or denied."""
        needs(sandbox, Capability.SYSCALLS)
        attacks = """
            def timers():
                timer, count = ctypes.c_void_p(), 0
                while count < 5000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
                    count += 1
                return count > 1000 and count
            held("many timers", timers)
            held("message queues", lambda: libc.syscall(240, b"queue", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0)
            held("shmget", lambda: libc.shmget(0, 4096, 0o1600) >= 0)
            held("semget", lambda: libc.semget(0, 1, 0o1600) >= 0)
            held("msgget", lambda: libc.msgget(0, 0o1600) >= 0)
            block = ctypes.create_string_buffer(1 << 20)
            held("locks memory", lambda: libc.mlock(block, 1 << 20) == 0)
            held("locks all memory", lambda: libc.mlockall(3) == 0)
            def descriptors():
                fds = []
                try:
                    while len(fds) < 5000:
                        fds.append(os.dup(0))
                except OSError:
                    pass
                for fd in fds:
                    os.close(fd)
                return len(fds) > 2000
            held("many descriptors", descriptors)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a47_core_dump(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A crash leaves no core file, and its signal is told."""
        result = run(sandbox, tmp_path, "import ctypes; ctypes.string_at(0)")
        assert (result.status, result.exit_code) == (ExecStatus.ERROR, -11)
        assert list((tmp_path / "workspace").iterdir()) == []

    def test_a49_many_spinners_do_not_starve_a_neighbour(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """An execution with many busy processes leaves another its share of the processor."""
        needs(sandbox, Capability.MEMORY)
        spin = "import os\nfor _ in range(5): os.fork()\nwhile True: pass"
        work = "import time\nstart = time.process_time()\nwhile time.process_time() < start + 0.5: pass\nprint('well')"
        with ThreadPoolExecutor(1) as pool:
            limits = Limits(wall_s=4, cpu_s=100)
            hog = pool.submit(run, sandbox, tmp_path / "hog", spin, limits=limits)
            time.sleep(0.3)
            assert output(sandbox, tmp_path / "neighbour", work, limits=Limits(wall_s=8)) == "well\n"
            assert_timeout(hog.result(), 4)
