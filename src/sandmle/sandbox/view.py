"""What code in a sandbox sees of this machine's files: the system's and the interpreter's libraries, nothing else."""

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from sandmle.errors import ConfigError, SandboxUnavailableError

_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/alternatives")
_FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/false\nnobody:x:65534:65534:nobody:/tmp:/bin/false\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_PROBE = """
import json, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({"prefixes": [sys.base_prefix, sys.prefix, sys.base_exec_prefix],
                  "site": [paths["purelib"], paths["platlib"]], "version": sys.version_info[:2]}))
"""
_PROBE_S = 60
_OLDEST_PYTHON = (3, 11)
_SITE_FOLDERS = ("lib/python3*/*-packages", "local/lib/python3*/*-packages", "lib64/python3*/*-packages")


@dataclass(frozen=True)
class View:
    """The read-only part of the file system inside the sandbox.

    Attributes:
        binds: Host path and inside path of what is visible.
        symlinks: Target and path of links to be made.
        files: Small files with made-up contents, by path.
        mask_folders: Visible folders that are covered by an empty one.
        mask_files: Visible files that are covered by an empty one.
        python: The interpreter that the view was made for.
    """

    binds: tuple[tuple[str, str], ...]
    symlinks: tuple[tuple[str, str], ...]
    files: dict[str, str]
    mask_folders: tuple[str, ...]
    mask_files: tuple[str, ...]
    python: str

    def to_dict(self) -> dict[str, object]:
        """Returns the view as plain JSON types."""
        return asdict(self)

    def refuse_if_covered(self, places: tuple[str, ...]) -> None:
        """Refuses an interpreter in a folder that the sandbox covers with a fresh one.

        Raises:
            SandboxUnavailableError: A part of the interpreter would not be seen.
        """
        for source, target in self.binds:
            if any(Path(target).is_relative_to(place) for place in places):
                raise SandboxUnavailableError(
                    f"the sandbox's interpreter {self.python} needs {source}, but code has a fresh "
                    f"{' and '.join(places)}; install it elsewhere"
                )

    def refuse_if_visible(self, path: Path, what: str) -> None:
        """Refuses a folder that agents' code could read through the libraries' folders.

        Raises:
            ConfigError: The path lies below a visible folder.
        """
        resolved = path.resolve()
        for source, _ in self.binds:
            if resolved.is_relative_to(source):
                raise ConfigError(
                    f"{what} {path} lies inside {source}, which sandboxed code can read; move it elsewhere"
                )


def library_view(python: str | None = None) -> View:
    """Returns the view for an interpreter: its prefix and environment, the system's libraries, a few made-up files.

    This package itself is masked: code that could import the procedural author could make a task again and read its
    answers.

    Args:
        python: Path of the interpreter; this one by default.

    Raises:
        SandboxUnavailableError: The interpreter does not run, or is too old.
    """
    python = python or sys.executable
    try:
        done = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_S, check=True)
        facts = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise SandboxUnavailableError(f"the sandbox's interpreter {python} does not run: {error}") from error
    if tuple(facts["version"]) < _OLDEST_PYTHON:
        version, oldest = (".".join(map(str, numbers)) for numbers in (facts["version"], _OLDEST_PYTHON))
        raise SandboxUnavailableError(f"the sandbox's interpreter {python} is Python {version}; give {oldest} or newer")
    binds, symlinks = _system_binds()
    prefixes = [Path(prefix) for prefix in dict.fromkeys(facts["prefixes"])]
    for prefix in [*prefixes, *(path.resolve() for path in prefixes)]:
        if prefix == Path("/") or any(prefix.is_relative_to(target) for _, target in binds):
            continue
        binds.append((str(prefix), str(prefix)))
    binds.sort(key=lambda pair: pair[1].count("/"))
    sites = {Path(folder) for folder in facts["site"]} | {
        folder for source, _ in binds for pattern in _SITE_FOLDERS for folder in Path(source).glob(pattern)
    }
    masks = sorted({path for folder in sites for path in folder.glob("*sandmle*")} | _package_folders(binds))
    return View(
        binds=tuple(dict.fromkeys(binds)),
        symlinks=tuple(symlinks),
        files=_FILES,
        mask_folders=tuple(str(path) for path in masks if path.is_dir()),
        mask_files=tuple(str(path) for path in masks if path.is_file()),
        python=python,
    )


def _system_binds() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    binds, symlinks = [("/usr", "/usr")], []
    for name in _SYSTEM_FOLDERS:
        path = Path(name)
        if path.is_symlink():
            symlinks.append((str(path.readlink()), name))
        elif path.is_dir():
            binds.append((name, name))
    for name in _SYSTEM_FILES:
        path = Path(name)
        if path.exists():
            binds.append((str(path.resolve()), name))
    return binds, symlinks


def _package_folders(binds: list[tuple[str, str]]) -> set[Path]:
    """Returns this package's source folder if it is visible through a bind (a checkout inside a prefix)."""
    package = Path(__file__).resolve().parent.parent
    return {package} if any(package.is_relative_to(source) for source, _ in binds) else set()
