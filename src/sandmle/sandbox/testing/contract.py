"""The plain contract: what a request means and what a result says."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.records import ExecStatus, Limits
from sandmle.sandbox.base import ExecRequest, Sandbox
from sandmle.sandbox.testing.helpers import needs_modules, output, run


class ContractTests:
    """What every sandbox does, hostile code aside."""

    def test_declares_itself(self, sandbox: Sandbox) -> None:
        """It has the members of the protocol, and starting twice is fine."""
        assert isinstance(sandbox, Sandbox)
        assert sandbox.name
        assert sandbox.workers >= 2, "the contract is tested with at least two workers"
        assert sandbox.start() is sandbox

    def test_ok(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Output, exit code and times come back."""
        result = run(sandbox, tmp_path, "import sys; print('out'); print('err', file=sys.stderr)")
        assert (result.status, result.exit_code) == (ExecStatus.OK, 0)
        assert (result.stdout, result.stderr) == ("out\n", "err\n")
        assert (result.stdout_bytes, result.stderr_bytes, result.detail) == (4, 4, "")
        assert 0 <= result.wall_s < 20
        assert 0 < result.cpu_s < 20

    @pytest.mark.parametrize(
        ("code", "exit_code"),
        [
            ("import sys; sys.exit(3)", 3),
            ("import os; os._exit(7)", 7),
            ("raise SystemExit('words')", 1),
            ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15),
            ("1/0", 1),
            ("def f(:", 1),
            ("x = '\0'", 1),
        ],
    )
    def test_s19_exit_codes_are_kept(self, sandbox: Sandbox, tmp_path: Path, code: str, exit_code: int) -> None:
        """A failure of the code is a result with the exit code that the interpreter would give."""
        result = run(sandbox, tmp_path, code)
        assert (result.status, result.exit_code) == (ExecStatus.ERROR, exit_code)

    def test_traceback_names_the_script_only(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """The trace is that of `python main.py`: no frame of the sandbox's own."""
        result = run(sandbox, tmp_path, "def f():\n    return 1 / 0\n\nimport os; print(os.getcwd()); f()\n")
        script = f"{result.stdout.strip()}/main.py"
        lines = result.stderr.splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert lines[-1] == "ZeroDivisionError: division by zero"
        assert [line for line in lines if "File" in line] == [
            f'  File "{script}", line 4, in <module>',
            f'  File "{script}", line 2, in f',
        ]

    def test_script_is_main(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """The code runs as a script does."""
        code = "import os, sys\nprint(__name__, os.path.relpath(__file__), __file__[0], sys.argv == [__file__])"
        assert output(sandbox, tmp_path, code) == "__main__ main.py / True\n"

    def test_what_runs_at_the_end(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Threads are waited for, exit functions run, unfinished lines are written."""
        code = """
            import atexit, sys, threading, time
            atexit.register(print, "at exit")
            threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
            sys.stdout.write("main ")
        """
        assert output(sandbox, tmp_path, code) == "main thread\nat exit\n"

    def test_workspace_files_come_and_go(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """The workspace's files are there before and after; deleted ones are gone."""
        workspace = tmp_path / "workspace"
        (workspace / "sub").mkdir(parents=True)
        (workspace / "old.txt").write_text("old")
        (workspace / "sub" / "kept.txt").write_text("kept")
        code = """
            import os
            print(open("old.txt").read(), open("sub/kept.txt").read())
            os.remove("old.txt")
            os.makedirs("new/deep")
            open("new/deep/file.bin", "wb").write(bytes(range(256)))
        """
        assert output(sandbox, tmp_path, code) == "old kept\n"
        files = {str(path.relative_to(workspace)) for path in workspace.rglob("*") if path.is_file()}
        assert files == {"sub/kept.txt", "new/deep/file.bin"}
        assert (workspace / "new/deep/file.bin").read_bytes() == bytes(range(256))

    @pytest.mark.parametrize("mode", [0o755, 0o700])
    def test_inputs_are_readable_and_read_only(self, sandbox: Sandbox, tmp_path: Path, mode: int) -> None:
        """Inputs appear as ./input, whoever may read them on the host; nothing there can be changed."""
        inputs = tmp_path / "inputs"
        (inputs / "images").mkdir(parents=True)
        (inputs / "train.csv").write_text("id,y\n1,2\n")
        (inputs / "images" / "1.png").write_bytes(b"png")
        for path in (inputs, *inputs.rglob("*")):
            path.chmod(mode if path.is_dir() else mode & 0o644)
        code = """
            import os, shutil
            print(open("input/train.csv").read(), open("input/images/1.png").read(), sorted(os.listdir("input")))
            def refused(action):
                try:
                    action()
                except OSError:
                    return True
            assert refused(lambda: open("input/train.csv", "a"))
            assert refused(lambda: open("input/new", "w"))
            assert refused(lambda: os.remove("input/train.csv"))
            assert refused(lambda: os.rename("input", "elsewhere"))
            mode = os.stat("input/train.csv").st_mode
            assert refused(lambda: os.chmod("input/train.csv", 0o777)) or os.stat("input/train.csv").st_mode == mode
        """
        expected = "id,y\n1,2\n png ['images', 'train.csv']\n"
        assert output(sandbox, tmp_path, code, inputs=inputs) == expected
        assert (inputs / "train.csv").read_text() == "id,y\n1,2\n"
        assert not (tmp_path / "workspace" / "input").exists()

    def test_collects_files(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Named files come back as bytes; a missing one says so."""
        code = "import os; os.mkdir('d'); open('a', 'wb').write(b'\\xff\\x00'); open('d/b', 'w').write('b')"
        result = run(sandbox, tmp_path, code, collect=("a", "d/b", "c"))
        assert (result.file("a"), result.file("d/b"), result.file("c")) == (b"\xff\x00", b"b", None)
        assert [file.reason for file in result.files] == ["", "", "missing"]

    def test_bad_requests_are_the_callers_fault(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A workspace that is missing, a file or a link; inputs that are missing; names outside the workspace."""
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        (tmp_path / "link").symlink_to("folder")
        for name in ("missing", "file", "link"):
            with pytest.raises(ConfigError, match=name):
                sandbox.execute(ExecRequest("pass", tmp_path / name))
        with pytest.raises(ConfigError, match="missing"):
            sandbox.execute(ExecRequest("pass", tmp_path / "folder", tmp_path / "missing"))
        for name in ("../file", "/etc/passwd", "", "a//b", "a\0"):
            with pytest.raises(ConfigError, match="collect"):
                sandbox.execute(ExecRequest("pass", tmp_path / "folder", collect=(name,)))

    def test_a_workspace_that_does_not_fit_is_the_callers_fault(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """More files than may be in the workspace are refused before anything runs."""
        (tmp_path / "workspace").mkdir()
        (tmp_path / "workspace" / "big").write_bytes(bytes(3 << 20))
        with pytest.raises(ConfigError, match="workspace"):
            run(sandbox, tmp_path, "pass", limits=Limits(file_mb=1))

    def test_same_seed_same_output(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Python's and numpy's global generators follow the request's seed; hashing is the same every time."""
        code = """
            import random
            try:
                import numpy
                print(numpy.random.rand(3), numpy.random.permutation(5))
            except ImportError:
                pass
            print(random.random(), hash("text"), list({"b", "a", "c"}))
        """
        first, second = (output(sandbox, tmp_path, code, rng_seed=7) for _ in range(2))
        assert first == second
        assert output(sandbox, tmp_path, code, rng_seed=8) != first

    def test_s20_nothing_of_one_execution_is_in_the_next(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Names, modules' state, environment, temporary files: all fresh; another workspace is empty."""
        first = """
            import builtins, json, os, tempfile
            foobar = builtins.foobar = json.foobar = 1
            os.environ["FOOBAR"] = "1"
            for place in (tempfile.gettempdir() + "/foobar", "foobar"):
                open(place, "w").close()
            try:
                open("/dev/shm/foobar", "w").close()
            except PermissionError:  # memory files are shared with the host, and denied
                pass
        """
        output(sandbox, tmp_path / "one", first)
        second = """
            import builtins, json, os, sys, tempfile
            try:
                shared = os.listdir("/dev/shm")
            except PermissionError:
                shared = []
            try:
                foobar
            except NameError:
                print("NameError")
            print(hasattr(builtins, "foobar"), hasattr(json, "foobar"), "FOOBAR" in os.environ)
            # The interpreter itself may lie below the temporary folder.
            place = tempfile.gettempdir()
            print([name for name in os.listdir(place) if not sys.prefix.startswith(f"{place}/{name}")])
            print(shared, os.listdir("."))
        """
        expected = "NameError\nFalse False False\n[]\n[] ['main.py']\n"
        assert output(sandbox, tmp_path / "two", second) == expected

    def test_s22_executions_run_side_by_side(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """As many sleeps as workers take as long as one, and this process goes on meanwhile."""
        start_s = time.monotonic()
        with ThreadPoolExecutor(sandbox.workers) as pool:
            code = "import time; time.sleep(1); print(1)"
            pending = [pool.submit(output, sandbox, tmp_path / str(i), code) for i in range(sandbox.workers)]
            time.sleep(0.01)
            assert time.monotonic() - start_s < 0.9, "the calling process is held up"
            assert [future.result() for future in pending] == ["1\n"] * sandbox.workers
        assert time.monotonic() - start_s < 1 + 0.5 * sandbox.workers

    def test_waiting_for_a_turn_does_not_count(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Twice as many executions as workers all keep within a limit that holds for one of them."""
        count = 2 * sandbox.workers
        limits = Limits(wall_s=1.5, memory_mb=512)
        with ThreadPoolExecutor(count) as pool:
            code = "import time; time.sleep(0.8); print('done')"
            results = list(pool.map(lambda i: run(sandbox, tmp_path / str(i), code, limits=limits), range(count)))
        assert [result.stdout for result in results] == ["done\n"] * count

    def test_s13_libraries_load_under_default_limits(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """The common libraries import and work, and know how many threads they may use."""
        needs_modules(sandbox, tmp_path, "numpy", "pandas", "sklearn")
        code = """
            import os, numpy, pandas
            from sklearn.linear_model import LogisticRegression
            rng = numpy.random.default_rng(0)
            features = pandas.DataFrame(rng.normal(size=(50, 3)))
            print(LogisticRegression().fit(features, features[0] > 0).score(features, features[0] > 0) > 0.8)
            print(sorted({os.environ[f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS", "MKL")}))
        """
        assert output(sandbox, tmp_path, code, limits=Limits()) == "True\n['1']\n"

    def test_processes_and_threads_of_libraries_work(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Pools of processes and threads, and the interpreter itself, can be used as outside."""
        code = """
            import subprocess, sys
            from multiprocessing import Pool
            from multiprocessing.pool import ThreadPool
            def double(x):
                return 2 * x
            if __name__ == "__main__":
                with Pool(2) as pool:
                    print(pool.map(double, range(3)))
                with ThreadPool(2) as pool:
                    print(pool.map(double, range(3)))
                print(subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True).stdout)
        """
        assert output(sandbox, tmp_path, code) == "[0, 2, 4]\n[0, 2, 4]\nchild\n\n"

    @pytest.mark.parametrize("kind", ["threading", "loky"])
    def test_joblib_works(self, sandbox: Sandbox, tmp_path: Path, kind: str) -> None:
        """Joblib's own pools work, fresh interpreters included."""
        needs_modules(sandbox, tmp_path, "joblib")
        code = f"""
            from joblib import Parallel, delayed
            def double(x):
                return 2 * x
            print(Parallel(n_jobs=2, backend={kind!r})(delayed(double)(i) for i in range(4)))
        """
        assert output(sandbox, tmp_path, code) == "[0, 2, 4, 6]\n"

    def test_s08_a46_any_bytes_may_be_written(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Bad bytes are replaced, terminal escapes taken out, the text passes JSON; a last line needs no end."""
        code = """
            import os
            for fd in (1, 2):
                os.write(fd, b"\\xff\\xfe\\x00\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07 ok")
        """
        result = run(sandbox, tmp_path, code)
        assert (result.status, result.exit_code) == (ExecStatus.OK, 0)
        for text in (result.stdout, result.stderr):
            assert "\x1b" not in text
            assert "\x00" not in text
            assert text.endswith("red ok")
            assert json.loads(json.dumps(text)) == text

    def test_s23_there_is_no_input_to_wait_for(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """input() fails at once."""
        result = run(sandbox, tmp_path, "input()")
        assert result.status is ExecStatus.ERROR
        assert "EOFError" in result.stderr
        assert result.wall_s < 5

    def test_descriptors_of_the_caller_do_not_grow(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """An execution leaves no descriptor open."""
        run(sandbox, tmp_path, "pass")
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            run(sandbox, tmp_path, "pass")
        assert len(list(Path("/proc/self/fd").iterdir())) == before
