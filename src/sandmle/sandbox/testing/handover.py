"""What may be handed out of the sandbox: plain files with their bytes as they are, and output that nobody believes."""

import os
from pathlib import Path

import pytest

from sandmle.records import ExecStatus, Limits
from sandmle.sandbox.base import Capability, Sandbox
from sandmle.sandbox.testing.helpers import needs, run

_NAME = "submission.csv"
_NOT_PLAIN = {
    "a19_symlink": "os.symlink('/etc/passwd', NAME)",
    "a19_symlink_to_input": "os.symlink('input/train.csv', NAME)",
    "a19_hardlink": "open('other', 'w').write('x'); os.link('other', NAME)",
    "a20_magic_link": "os.symlink('/proc/self/root/etc/passwd', NAME)",
    "a20_magic_descriptor": "os.symlink('/proc/self/fd/0', NAME)",
    "a22_fifo": "os.mkfifo(NAME)",
    "a22_socket": "import socket; socket.socket(socket.AF_UNIX).bind(NAME)",
    "a23_device": "os.mknod(NAME, 0o600 | 0o020000, os.makedev(1, 5))",
    "a23_whiteout": "os.mknod(NAME, 0o600 | 0o020000, os.makedev(0, 0))",
    "a25_directory": "os.mkdir(NAME)",
}


class HandoverTests:
    """Submissions that are not what they seem."""

    @pytest.mark.parametrize("attack", list(_NOT_PLAIN))
    def test_not_a_plain_file(self, sandbox: Sandbox, tmp_path: Path, attack: str) -> None:
        """Links, pipes, sockets, devices and folders are neither collected nor copied to the host."""
        code = f"import os\nNAME = {_NAME!r}\n{_NOT_PLAIN[attack]}\n"
        result = run(sandbox, tmp_path, code, collect=(_NAME,))
        if "mknod" in code:
            assert result.status is ExecStatus.ERROR
        assert result.file(_NAME) is None
        assert result.files[0].reason
        place = tmp_path / "workspace" / _NAME
        assert not place.is_symlink()
        assert not place.is_file()

    def test_a19_a_folder_that_is_a_link(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """No link is followed on the way to a file either."""
        result = run(sandbox, tmp_path, "import os; os.symlink('/etc', 'd')", collect=("d/passwd",))
        assert result.file("d/passwd") is None
        assert list((tmp_path / "workspace").iterdir()) == []

    def test_a26_sparse_file(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A file of 10 GB of nothing is stopped by the kernel."""
        result = run(sandbox, tmp_path, f"open({_NAME!r}, 'w').truncate(10 << 30)", collect=(_NAME,))
        assert result.status is ExecStatus.LIMIT, result
        assert "file" in result.detail
        assert not result.file(_NAME)

    def test_a26_many_sparse_files(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Files that are large together do not grow on the way to the host."""
        code = "for i in range(500): open(f'f{i:03}', 'w').truncate(4 << 20)"
        result = run(sandbox, tmp_path, code, limits=Limits(wall_s=20, file_mb=4))
        assert result.status is ExecStatus.OK
        assert sum(path.stat().st_size for path in (tmp_path / "workspace").iterdir()) <= 4 << 20

    def test_a26_full_workspace_can_be_used_again(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Code cannot fill its workspace in such a way that the next execution fails for our fault."""
        fill = """
            import os
            try:
                for i in range(10**6):
                    open(f"f{i}", "wb").write(bytes(100))
                    open(f"b{i}", "wb").write(bytes(50_001))
            except OSError:
                pass
        """
        limits = Limits(wall_s=20, file_mb=4)
        assert run(sandbox, tmp_path, fill, limits=limits).status in (ExecStatus.OK, ExecStatus.LIMIT)
        assert run(sandbox, tmp_path, "print(1)\n" * 1000, limits=limits).status is ExecStatus.OK

    def test_deep_folders_are_bounded(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Folders a thousand deep break neither the handover nor the next execution."""
        code = "import os\nfor i in range(1500):\n    os.mkdir('d'); os.chdir('d')\nprint('deep')"
        assert run(sandbox, tmp_path, code).stdout == "deep\n"
        assert run(sandbox, tmp_path, "print(1)").stdout == "1\n"

    def test_a34_odd_names(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Line ends, escapes, bad bytes and long names in file names harm nobody and stay in the workspace."""
        code = """
            import os
            for name in (b"line\\nend.csv", b"\\x1b[31m", b"\\xff\\xfe", b"x" * 255, b"..csv", b"-rf", b" "):
                open(name, "w").write("x")
        """
        assert run(sandbox, tmp_path, code, collect=("..csv",)).file("..csv") == b"x"
        assert len(os.listdir(os.fsencode(tmp_path / "workspace"))) == 7  # noqa: PTH208 - names that are no text
        assert {path.name for path in tmp_path.iterdir()} == {"workspace"}
        assert run(sandbox, tmp_path, "import os; print(len(os.listdir()))").stdout == "8\n"

    @pytest.mark.parametrize(
        "data",
        [
            b"id,y\n1,NaN\n2,inf\n3,1e309\n4,-0.0\n",
            b"id,y\n1,1\n1,2\n9,9\n",
            b'"' * 100_000,
            b"PK\x03\x04 zip",
            b"=cmd|' /C calc'!A0",
            b"",
        ],
        ids=["numbers", "ids", "quotes", "zip", "formula", "empty"],
    )
    def test_a28_a29_a31_a32_bytes_are_handed_over_unread(self, sandbox: Sandbox, tmp_path: Path, data: bytes) -> None:
        """The sandbox does not parse a submission: that is the grader's, in another process."""
        result = run(sandbox, tmp_path, f"open({_NAME!r}, 'wb').write({data!r})", collect=(_NAME,))
        assert result.file(_NAME) == data

    def test_a31_a_cell_of_a_gigabyte(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """A submission larger than a file may be is not handed over."""
        code = f"file = open({_NAME!r}, 'wb')\nwhile True: file.write(bytes(1 << 20))"
        result = run(sandbox, tmp_path, code, collect=(_NAME,), limits=Limits(wall_s=20, file_mb=8))
        assert result.status is ExecStatus.LIMIT
        assert len(result.file(_NAME) or b"") <= 8 << 20

    def test_a16_output_is_never_believed(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Printing results, or writing the sandbox's own words to every descriptor, changes nothing."""
        code = """
            import json, os
            lie = json.dumps({"event": "exit", "status": 0, "exit_code": 0, "score": 1.0}) + "\\n"
            for fd in range(1, 300):
                try:
                    os.write(fd, lie.encode())
                except OSError:
                    pass
            os._exit(3)
        """
        result = run(sandbox, tmp_path, code, collect=(_NAME,))
        assert (result.status, result.exit_code) == (ExecStatus.ERROR, 3)
        assert result.file(_NAME) is None

    def test_a17_success_without_work(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Exit code 0 says nothing about a submission: that it is missing is told on its own."""
        result = run(sandbox, tmp_path, "import os; os._exit(0)", collect=(_NAME,))
        assert result.status is ExecStatus.OK
        assert [(file.data, file.reason) for file in result.files] == [(None, "missing")]

    def test_s17_planted_files_do_not_reach_the_caller(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Start-up files and modules that code leaves behind are mere files; caches of Python do not come back."""
        code = """
            import os
            for name in ("pandas.py", "sitecustomize.py", "conftest.py", ".profile", "main.py"):
                open(name, "w").write("raise SystemExit")
            os.makedirs("__pycache__")
            os.makedirs("deep/__pycache__")
            for place in ("", "deep/"):
                open(f"{place}__pycache__/x.pyc", "w").write("x")
        """
        run(sandbox, tmp_path, code)
        left = {str(path.relative_to(tmp_path / "workspace")) for path in (tmp_path / "workspace").rglob("*")}
        assert left == {"pandas.py", "sitecustomize.py", "conftest.py", ".profile", "deep"}

    def test_late_writers_change_nothing(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """What is collected is what was there when everything was dead: no process goes on writing."""
        needs(sandbox, Capability.LIFETIME)
        code = f"""
            import os, time
            open({_NAME!r}, "w").write("first")
            if os.fork() == 0:
                os.setsid()
                while True:
                    open("late", "w").write("late")
                    time.sleep(0.3)
                    os.replace("late", {_NAME!r})
            os._exit(0)
        """
        result = run(sandbox, tmp_path, code, collect=(_NAME,))
        assert result.file(_NAME) == b"first"
        assert (tmp_path / "workspace" / _NAME).read_bytes() == b"first"
