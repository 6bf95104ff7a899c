"""The contract as an ordinary user: the backends' own test modules, in a process without any rights.

``restricted`` is tested in one that may not make user namespaces either: a system-call filter denies them, as that of
the usual container does.
"""

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

# Denies unshare() and clone() with CLONE_NEWUSER, and clone3(), whose flags no filter can see.
_WITHOUT_NAMESPACES = """
import os, struct, sys
sys.path.insert(0, "src")
from sandmle.sandbox.inner import kernel, seccomp
LOAD, EQUAL, ANY_BIT, RETURN, DENY, ALLOW = 0x20, 0x15, 0x45, 0x06, 0x00050000 | 1, 0x7FFF0000
unshare, clone, clone3 = (97, 220, 435) if os.uname().machine == "aarch64" else (272, 56, 435)
program = [(LOAD, 0, 0, 0), (EQUAL, 4, 0, clone3), (EQUAL, 1, 0, unshare), (EQUAL, 0, 3, clone), (LOAD, 0, 0, 16),
           (ANY_BIT, 2, 1, 0x10000000), (RETURN, 0, 0, 0x00050000 | 38), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, DENY)]
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
os.execv(sys.argv[1], sys.argv[1:])
"""


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
        yield place


@pytest.fixture
def namespaces(folder: Path) -> None:
    if _as_user(["unshare", "--user", "true"], folder).returncode:
        pytest.skip("unprivileged user namespaces are off on this machine")


@pytest.fixture
def interpreter(folder: Path) -> str:
    names = (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}")
    for name in names:
        if Path(name).exists() and not _as_user([name, "-c", "import pytest, pydantic"], folder).returncode:
            return name
    pytest.skip(f"user {_USER} cannot run {' or '.join(names)} with this environment's packages")


def _contract(folder: Path, interpreter: str, backend: str, *options: str, namespaces: bool = True) -> str:
    deny = [] if namespaces else [interpreter, "-c", _WITHOUT_NAMESPACES]
    command = [
        *deny,
        interpreter,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-q",
        "-rs",
        "--tb=short",
        "-c",
        "pyproject.toml",
    ]
    done = _as_user([*command, f"tests/sandbox/test_{backend}.py", *options], folder)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.usefixtures("namespaces")
def test_quick_part_of_the_contract(folder: Path, interpreter: str) -> None:
    assert " passed" in _contract(folder, interpreter, "forkserver", "-k", _QUICK)


def test_restricted_without_user_namespaces(folder: Path, interpreter: str) -> None:
    """All of what makes restricted different, and the quick part of the contract, where nothing else would start."""
    own = _QUICK + " or same_user or neighbours or watched or bomb or killed_keeper or declares or too_deep"
    assert " passed" in _contract(folder, interpreter, "restricted", "-k", own, namespaces=False)
    refused = "from sandmle.sandbox import open_backend; open_backend('forkserver')"
    done = _as_user([interpreter, "-c", _WITHOUT_NAMESPACES, interpreter, "-c", refused], folder)
    assert "SandboxUnavailableError" in done.stderr
    assert "restricted" in done.stderr


@pytest.mark.slow
def test_whole_contract_of_restricted(folder: Path, interpreter: str) -> None:
    assert " passed" in _contract(folder, interpreter, "restricted", namespaces=False)


@pytest.mark.slow
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("backend", ["forkserver", "bwrap"])
def test_whole_contract(folder: Path, interpreter: str, backend: str) -> None:
    out = _contract(folder, interpreter, backend)
    assert " passed" in out
    assert "does not declare 'memory'" in out
