"""Entering the folder of a run: one process at a time, from before its configuration is looked at until it ends."""

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from io import BufferedRandom
from pathlib import Path
from typing import Any

from sandmle.errors import ConfigError

CONFIG_FILE = "run.json"


def enter_folder(
    path: Path, lines_file: str, config: Mapping[str, Any], check: Callable[[dict[str, Any]], None] | None
) -> BufferedRandom:
    """Locks a folder by its file of records, then writes the configuration of a new run or checks that of an old one.

    A start that is refused leaves nothing behind.

    Args:
        path: The folder; made if missing.
        lines_file: Name of the file of records; whoever holds its lock holds the folder.
        config: What ``run.json`` of a new run gets.
        check: Looks at the ``run.json`` of a run that is there and raises ConfigError unless the run may go on; None
            if only a new or empty folder is taken.

    Returns:
        The file of records, open for appending and locked until it is closed.

    Raises:
        ConfigError: Another process is in the folder, it holds other things, it may not be entered, or its
            configuration cannot be read.
        OSError: The folder cannot be made or written to.
    """
    path.mkdir(parents=True, exist_ok=True)
    _holds_run(path, lines_file)  # before the file of records is made in a folder of someone's letters
    file, is_made = _open_locked(path / lines_file)
    try:
        if not _holds_run(path, lines_file):
            for left in filter(_is_scratch, path.iterdir()):
                left.unlink()
            write_whole(path / CONFIG_FILE, config)
        elif check is None:
            raise ConfigError(f"{path} already holds a run; go on with --resume or give another folder")
        else:
            _check(path / CONFIG_FILE, check)
            _sync(path)
    except BaseException:
        if is_made and not os.fstat(file.fileno()).st_size:  # still locked, so nobody else has begun to use it
            (path / lines_file).unlink(missing_ok=True)
        file.close()
        raise
    return file


def write_whole(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file in one step, synced to disk; an earlier one is replaced.

    Raises:
        OSError: The disk refuses; nothing is left behind.
    """
    write_text_whole(path, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def write_text_whole(path: Path, text: str) -> None:
    """Writes a text file in one step, synced to disk; an earlier one is replaced.

    Raises:
        OSError: The disk refuses; nothing is left behind.
    """
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with scratch.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _holds_run(path: Path, lines_file: str) -> bool:
    """Tells whether a run is there; a folder with other things in it is refused."""
    strangers = sorted(entry.name for entry in path.iterdir() if not _is_start(entry, lines_file))
    # Looked for after the listing: another process may be making its run right now.
    if (path / CONFIG_FILE).exists():
        return True
    if strangers:
        raise ConfigError(f"{path} holds {strangers[0]} and no {CONFIG_FILE}; give a new or empty folder")
    return False


def _is_start(entry: Path, lines_file: str) -> bool:
    """Tells whether a start that was killed, or is under way, may have made a file."""
    try:
        return _is_scratch(entry) or (entry.name == lines_file and entry.lstat().st_size == 0)
    except FileNotFoundError:
        return True


def _is_scratch(entry: Path) -> bool:
    return entry.name.startswith(f"{CONFIG_FILE}.") and entry.name.endswith(".tmp")


def _open_locked(path: Path) -> tuple[BufferedRandom, bool]:
    """Returns the file, locked, and whether it was made here."""
    while True:
        is_made = not path.exists()
        file = path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                return file, is_made
        except BlockingIOError as error:
            file.close()
            raise ConfigError(
                f"another process is writing to {path.parent}; wait for it or give another folder"
            ) from error
        except BaseException:
            file.close()
            raise
        file.close()  # a refused start removed it between opening and locking


def _is_at(file: BufferedRandom, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _check(path: Path, check: Callable[[dict[str, Any]], None]) -> None:
    try:
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict):
            raise ConfigError(f"{path} holds no configuration; give another folder")
        check(found)
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}; give another folder") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply for a configuration; give another folder") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
