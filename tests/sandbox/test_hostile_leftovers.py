"""What code leaves behind, and where a checkout lies, never makes the next execution fail."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandmle.records import ExecStatus
from sandmle.sandbox import ExecRequest
from sandmle.sandbox.forkserver import ForkserverSandbox

pytestmark = pytest.mark.sandbox

_DEEP = """
import os
for _ in range(15):
    os.mkdir("d" * 255)
    os.chdir("d" * 255)
for length in range(1, 256):
    try:
        os.mkdir("e" * length)
    except OSError:
        break
"""
_MANY = "import os\nfor number in range(4000):\n    open(f'f{number}', 'w').close()\n"
_ODD = """
import os
open(b"\\xff\\xfe", "w").write("x")
open("a\\nb", "w").write("y")
os.chmod("a\\nb", 0)
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ForkserverSandbox]:
    with ForkserverSandbox(workers=1, libraries="none") as opened:
        yield opened


@pytest.mark.parametrize("code", [_DEEP, _MANY, _ODD], ids=["deep", "many", "odd"])
def test_the_next_execution_works(sandbox: ForkserverSandbox, tmp_path: Path, code: str) -> None:
    sandbox.execute(ExecRequest(code, tmp_path))
    again = sandbox.execute(ExecRequest("print('alive')", tmp_path))
    assert (again.status, again.stdout) == (ExecStatus.OK, "alive\n")


def test_libraries_below_tmp_stay_visible_and_read_only(tmp_path: Path) -> None:
    if not tmp_path.is_relative_to("/tmp"):
        pytest.skip(f"temporary folders lie in {tmp_path}, not below /tmp")
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (tmp_path / "work").mkdir()
    code = (
        "import os, sys\n"
        "print(sys.prefix, os.path.exists(sys.prefix + '/pyvenv.cfg'), len(os.listdir('/tmp')))\n"
        "open('/tmp/own', 'w').write('x')\n"
        "open(sys.prefix + '/planted', 'w')\n"
    )
    with ForkserverSandbox(workers=1, python=str(home / "bin" / "python"), libraries="none") as sandbox:
        result = sandbox.execute(ExecRequest(code, tmp_path / "work"))
    assert result.stdout == f"{home} True 1\n"
    assert "Read-only file system" in result.stderr
