"""Takes files out of a workspace after everything in it is dead: regular files only, no link followed, sizes capped."""

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sandmle.records import CollectedFile
from sandmle.sandbox.base import INPUT_DIR

SCRIPT_NAME = "main.py"
_LEFT_BEHIND = frozenset({SCRIPT_NAME, INPUT_DIR})
_CACHE_FOLDER = "__pycache__"
_MAX_ENTRIES = 4000
_MAX_DEPTH = 32
_BLOCK = 4096
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20
_MAX_PATH_BYTES = 1024
"""Of a path below the workspace: far from the kernel's 4096, wherever the workspace lies."""


def collect(folder_fd: int, names: tuple[str, ...], *, max_bytes: int) -> tuple[CollectedFile, ...]:
    """Reads the named files.

    Args:
        folder_fd: Descriptor of the workspace.
        names: Paths relative to the workspace.
        max_bytes: Larger files are refused.
    """
    return tuple(_collect_one(folder_fd, name, max_bytes) for name in names)


def copy_back(folder_fd: int, target: Path, *, max_bytes: int) -> None:
    """Makes a host folder hold exactly the workspace's regular files.

    The script itself, the inputs, links, devices, sockets, pipes, files with a second name and Python's caches stay
    behind, and so does what is too much: files beyond ``max_bytes`` together (holes count as if they were written),
    very many files, very deep folders, very long paths. What was copied back can be copied in again: nothing that code
    leaves behind may make the next execution fail.
    """
    for entry in os.scandir(target):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()
    _copy_folder(folder_fd, target, _Room(max_bytes), depth=0, path_bytes=0)


def _collect_one(folder_fd: int, name: str, max_bytes: int) -> CollectedFile:
    try:
        fd = _open_below(folder_fd, name)
    except FileNotFoundError:
        return CollectedFile(name=name, reason="missing")
    except OSError as error:
        return CollectedFile(name=name, reason=f"not a plain file ({error.strerror})")
    try:
        problem = _problem(os.fstat(fd), max_bytes)
        if problem:
            return CollectedFile(name=name, reason=problem)
        return CollectedFile(name=name, data=_read(fd, max_bytes))
    finally:
        os.close(fd)


def _open_below(folder_fd: int, name: str) -> int:
    *folders, last = name.split("/")
    current = os.dup(folder_fd)
    try:
        for folder in folders:
            if folder in ("", ".", ".."):
                raise FileNotFoundError(name)
            deeper = os.open(folder, _OPEN | os.O_DIRECTORY, dir_fd=current)
            os.close(current)
            current = deeper
        return os.open(last, _OPEN, dir_fd=current)
    finally:
        os.close(current)


def _problem(status: os.stat_result, max_bytes: int) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "a folder"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if status.st_nlink != 1:
        return "a file with a second name"
    if status.st_size > max_bytes:
        return f"larger than {max_bytes} bytes"
    return ""


def _read(fd: int, max_bytes: int) -> bytes:
    data = bytearray()
    while len(data) <= max_bytes and (chunk := os.read(fd, _CHUNK)):
        data += chunk
    return bytes(data[:max_bytes])


@dataclass
class _Room:
    """What may still be copied."""

    bytes_left: int
    entries_left: int = _MAX_ENTRIES


def _copy_folder(folder_fd: int, target: Path, room: _Room, *, depth: int, path_bytes: int) -> None:
    for name in sorted(os.listdir(folder_fd)):
        if name == _CACHE_FOLDER or (depth == 0 and name in _LEFT_BEHIND):
            continue
        length = path_bytes + 1 + len(os.fsencode(name))
        if length > _MAX_PATH_BYTES:
            continue
        if room.entries_left <= 0:
            return
        # What is not a plain file or folder by now (a link, a pipe) cannot be opened in this way, and stays behind.
        with suppress(OSError):
            fd = os.open(name, _OPEN, dir_fd=folder_fd)
            try:
                _copy_entry(fd, target / name, room, depth=depth, path_bytes=length)
            finally:
                os.close(fd)


def _copy_entry(fd: int, place: Path, room: _Room, *, depth: int, path_bytes: int) -> None:
    status = os.fstat(fd)
    if stat.S_ISDIR(status.st_mode):
        if depth < _MAX_DEPTH:
            room.entries_left -= 1
            place.mkdir()
            _copy_folder(fd, place, room, depth=depth + 1, path_bytes=path_bytes)
        return
    on_disk = -(-status.st_size // _BLOCK) * _BLOCK
    if on_disk <= room.bytes_left and not _problem(status, room.bytes_left):
        room.bytes_left -= on_disk
        room.entries_left -= 1
        place.write_bytes(_read(fd, status.st_size))
