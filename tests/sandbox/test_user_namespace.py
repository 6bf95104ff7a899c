"""The forkserver's contract as an ordinary user: the tests of ``test_forkserver`` in a process without any rights."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import sandmle

pytestmark = pytest.mark.sandbox

_USER = 65534
_QUICK = (
    "test_ok or exit_codes or files_come or inputs or collects or s20 or a01 or a04 or a05 or a07 or a14 "
    "or this_package or s14 or a59 or a64 or a67 or a19 or a26_sparse or a40 or s01 or s02 or a55 or a56 or s10 "
    "or processes_and_threads"
)


def _as_user(command: list[str], folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    become = [
        "setpriv",
        f"--reuid={_USER}",
        f"--regid={_USER}",
        "--clear-groups",
        "env",
    ]  # env: setpriv itself still has rights
    site = [path for path in sys.path if path.endswith("-packages")]
    environment = {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder), *site]),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [*become, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """A copy of what is needed that everybody may read, with a temporary folder of the user's own."""
    if os.geteuid() != 0:
        pytest.skip("these tests run as an ordinary user already")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is not installed")
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory(prefix="userns-") as name:
        place = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(sandmle.__file__).parent, place / "src" / "sandmle", ignore=ignored)
        shutil.copytree(root / "tests" / "sandbox", place / "tests" / "sandbox", ignore=ignored)
        (place / "tests" / "__init__.py").touch()
        shutil.copy(root / "pyproject.toml", place)
        for path in (place, *place.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (place / "tmp").mkdir()
        os.chown(place / "tmp", _USER, _USER)
        if _as_user(["unshare", "--user", "true"], place).returncode:
            pytest.skip("unprivileged user namespaces are off on this machine")
        yield place


@pytest.fixture
def interpreter(folder: Path) -> str:
    names = (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}")
    for name in names:
        if Path(name).exists() and not _as_user([name, "-c", "import pytest, pydantic"], folder).returncode:
            return name
    pytest.skip(f"user {_USER} cannot run {' or '.join(names)} with this environment's packages")


def _contract(folder: Path, interpreter: str, backend: str, *options: str) -> str:
    command = [interpreter, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", "--tb=short", "-c", "pyproject.toml"]
    done = _as_user([*command, f"tests/sandbox/test_{backend}.py", *options], folder)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_quick_part_of_the_contract(folder: Path, interpreter: str) -> None:
    assert " passed" in _contract(folder, interpreter, "forkserver", "-k", _QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["forkserver", "bwrap"])
def test_whole_contract(folder: Path, interpreter: str, backend: str) -> None:
    out = _contract(folder, interpreter, backend)
    assert " passed" in out
    assert "does not declare 'memory'" in out
