"""The folder of a long run: safe to kill at any moment, never overwritten, resumed only under its configuration.

::

    FOLDER/
      run.json      the full configuration
      LINES.jsonl   one record a line, appended whole and synced to disk; a torn last line is dropped on entering
      summary.json  written when the run ends
"""

import json
import os
from collections.abc import Mapping
from functools import partial
from io import BufferedRandom
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sandmle.errors import ConfigError
from sandmle.parallel.run_lock import enter_folder, write_whole

SUMMARY_FILE = "summary.json"


class RunFolder:
    """An open run folder, held by one process.

    Attributes:
        path: The folder.
        lines: The records that were there when the folder was entered, in the order of the file.
    """

    def __init__(self, path: Path, file: BufferedRandom, lines: list[dict[str, Any]]) -> None:
        """Use :func:`open_run_folder`."""
        self.path = path
        self.lines = lines
        self._file = file

    def append(self, line: str) -> None:
        """Writes one record, given as one line of JSON; when this returns it is on disk.

        Raises:
            ConfigError: The disk refuses.
        """
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise ConfigError(f"cannot write to {self.path}: {error.strerror}") from error

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Writes ``summary.json`` in one step; an earlier one is replaced.

        Raises:
            ConfigError: The disk refuses.
        """
        try:
            write_whole(self.path / SUMMARY_FILE, summary)
        except OSError as error:
            raise ConfigError(f"cannot write to {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Lets go of the folder. Idempotent."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_run_folder(path: Path, lines_file: str, config: Mapping[str, Any], *, resume: bool = False) -> RunFolder:
    """Makes a run folder, or enters an existing one.

    Args:
        path: The folder; made if missing.
        lines_file: Name of the file of records.
        config: All that the results depend on, as plain JSON types.
        resume: Go on with a run that is there; without this only a new or empty folder is taken.

    Raises:
        ConfigError: There is a run already, it has another configuration, another process is in it, the folder cannot
            be written to, or its records are broken in the middle.
    """
    wanted = json.loads(json.dumps(config))
    try:
        file = enter_folder(path, lines_file, config, partial(_check_same, path, wanted) if resume else None)
    except OSError as error:
        raise ConfigError(f"cannot write to {path}: {error.strerror}; give another folder") from error
    try:
        return RunFolder(path, file, _recover(file, path / lines_file))
    except BaseException:
        file.close()
        raise


def _check_same(path: Path, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for key in sorted({*found, *wanted}):
        if found.get(key) != wanted.get(key):
            values = f"{_short(found.get(key))}, not {_short(wanted.get(key))}"
            raise ConfigError(f"{path} was started with another {key} ({values}); resume with the same")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _recover(file: BufferedRandom, path: Path) -> list[dict[str, Any]]:
    """Drops a torn last line and returns the records before it."""
    lines: list[dict[str, Any]] = []
    file.seek(0)
    end = 0
    for number, line in enumerate(file, start=1):
        if not line.endswith(b"\n"):
            break
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number} is not JSON; remove the line") from error
        if not isinstance(record, dict):
            raise ConfigError(f"{path}, line {number} is no record; remove the line")
        lines.append(record)
        end += len(line)
    file.truncate(end)
    file.seek(0, os.SEEK_END)
    return lines
