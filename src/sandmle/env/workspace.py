"""The folder that an episode's code works in: outside any task, gone at the end, whatever the code left in it."""

import itertools
import os
import uuid
from collections.abc import Callable
from pathlib import Path

from sandmle.sandbox.scratch import Scratch


class Workspace:
    """An empty folder in the system's place for temporary files.

    It bears this process's number and is locked, as the sandbox's own folders are: if this process is killed, the next
    sandbox to start removes it.
    """

    def __init__(self) -> None:
        """Makes the folder."""
        self._scratch = Scratch()
        self.path: Path = self._scratch.path

    def remove(self) -> None:
        """Removes the folder with all that lies in it. Idempotent."""
        remove_tree(self.path)
        self._scratch.remove()


def remove_tree(root: Path) -> None:
    """Removes a folder that hostile code has filled: nested deeper than paths reach, unreadable, full of links.

    Folders inside folders are first moved up, so that no path gets long; links are never followed. A folder that
    cannot be removed stays, for the next start of a sandbox or the operating system's cleaning of temporary files.
    """
    names = (root / f".moved-{uuid.uuid4().hex}-{number}" for number in itertools.count())
    while subfolders := _clear(root):
        for folder in subfolders:
            for inner in _clear(folder):
                _attempt(inner.rename, next(names))
            _attempt(folder.rmdir)
        if all(folder.exists() for folder in subfolders):
            return
    _attempt(root.rmdir)


def _clear(folder: Path) -> list[Path]:
    """Deletes everything in a folder but its folders, and returns those."""
    _attempt(folder.chmod, 0o700)
    folders: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                else:
                    _attempt(os.unlink, entry.path)
    except OSError:
        return folders
    return folders


def _attempt(function: Callable[..., object], *arguments: object) -> None:
    try:
        function(*arguments)
    except OSError:
        return
