"""The folder that an episode's code works in: outside any task, gone at the end, whatever the code left in it."""

import itertools
import os
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path


def make_workspace() -> Path:
    """Makes an empty folder in the system's place for temporary files."""
    return Path(tempfile.mkdtemp(prefix="sandmle-episode-"))


def remove_tree(root: Path) -> None:
    """Removes a folder that hostile code has filled: nested deeper than paths reach, unreadable, full of links.

    Folders inside folders are first moved up, so that no path gets long; links are never followed. A folder that
    cannot be removed stays, and the operating system's cleaning of temporary files gets it.
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
