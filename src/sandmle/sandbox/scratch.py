"""The temporary folders of sandboxes: named after their process, locked while it lives, removed when it is dead."""

import contextlib
import fcntl
import os
import secrets
import tempfile
import time
from pathlib import Path

_PREFIX = "sandmle-"


class Scratch:
    """A temporary folder of this process. A killed process cannot remove its own: the next one to start does."""

    def __init__(self) -> None:
        """Makes the folder, for its owner only, and locks it for as long as this process lives."""
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Removes the folder. Idempotent."""
        remove_tree(self.path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def remove_leftovers() -> None:
    """Removes the folders of dead processes of this user.

    The process must be gone, and its lock with it: in another container's process namespace a live one looks dead.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                _remove_if_unlocked(folder)


def _remove_if_unlocked(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid == os.geteuid():
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(folder)
    finally:
        os.close(fd)


def remove_tree(folder: Path) -> None:
    """Removes a folder; what died a moment ago may still hold it, so a failure is tried once more.

    Depth and modes that hostile code has given its folders stop nothing.
    """
    for wait_s in (0.0, 0.05):
        time.sleep(wait_s)
        try:
            _remove_flat(folder)
        except FileNotFoundError:
            return
        except OSError:
            continue
        return


def _remove_flat(top: Path) -> None:
    """Removes without recursion: every folder is moved up to the top before it is emptied."""
    top.chmod(0o700)
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    Path(entry.path).unlink()
                    continue
                Path(entry.path).chmod(0o700)
                place = top / secrets.token_hex(8)
                Path(entry.path).rename(place)
                waiting.append(place)
        if folder != top:
            folder.rmdir()
    top.rmdir()
