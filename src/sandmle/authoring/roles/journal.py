"""The conversation of one task on disk: every reply is written down before it is used, and never asked for twice.

A journal and a recording are the same file. ``--record`` copies journals, ``--replay`` reads them::

    {"schema_version":1,"seed_id":"...","k":0,"model":"..."}
    {"role":"strategist","text":"...","finish_reason":"stop","usage":{...},"cost_usd":0.01,"prompt":"..."}
    ...
"""

import json
import os
import shutil
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from sandmle.authoring.roles.outputs import RoleName
from sandmle.errors import AuthoringError, ConfigError
from sandmle.records import Record

SUFFIX = ".jsonl"


class RecordingHead(Record):
    """The first line: which proposal the conversation was about."""

    schema_version: Literal[1] = 1
    seed_id: str
    k: int = 0
    """Number among the proposals of this seed, from 0."""
    model: str = ""
    note: str = ""


class ReplyLine(Record):
    """One reply of a model."""

    role: RoleName
    text: str
    finish_reason: Literal["stop", "length", "content_filter", "other"] = "stop"
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    cost_usd: float | None = None
    """None where no price is known."""
    prompt: str = ""
    """What was asked last; the messages before it are those of the lines before."""
    wait_s: float = 0.0
    """Seconds from the request to the reply, waits for retries included."""


def file_name(seed_id: str, k: int) -> str:
    """Returns the name of a proposal's recording."""
    return f"{seed_id}--{k}{SUFFIX}"


class Journal:
    """Reads what was said before, then appends. A torn last line, from a kill, is dropped.

    Attributes:
        lines: All replies so far.
    """

    def __init__(self, path: Path, head: RecordingHead) -> None:
        """Opens the file; it is made at the first reply.

        Raises:
            ConfigError: The file is no recording, or of another proposal.
        """
        self.path = path
        self.lines: list[ReplyLine] = []
        self._head = head
        self._position = 0
        self._size = 0
        if path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        head, self.lines, self._size = read_recording(path)
        if head is not None and (head.seed_id, head.k) != (self._head.seed_id, self._head.k):
            raise ConfigError(f"{path} is a recording of {head.seed_id} number {head.k}; remove it")

    def next(self, role: RoleName) -> ReplyLine | None:
        """Returns the next reply that was written down, or None when there is no further one.

        Raises:
            AuthoringError: The next reply is another role's, so the recording does not fit this release.
        """
        if self._position >= len(self.lines):
            return None
        line = self.lines[self._position]
        if line.role != role:
            raise AuthoringError(
                f"{self.path.name}, line {self._position + 2} is a reply of the {line.role}, but the {role} is asked; "
                "the recording was made by another release: record it anew",
                lost_to="recording",
            )
        self._position += 1
        return line

    def append(self, line: ReplyLine) -> None:
        """Writes a reply down; when this returns it is on disk.

        Raises:
            ConfigError: The disk refuses.
        """
        data = line.to_json().encode() + b"\n"
        if self._size == 0:
            data = self._head.to_json().encode() + b"\n" + data
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("r+b" if self.path.exists() else "wb") as file:
                file.truncate(self._size)
                file.seek(self._size)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ConfigError(f"cannot write to {self.path}: {error.strerror}") from error
        self._size += len(data)
        self.lines.append(line)
        self._position = len(self.lines)


def read_recording(path: Path) -> tuple[RecordingHead | None, list[ReplyLine], int]:
    """Returns the head, the replies and the bytes that are whole; a torn last line is left out.

    Raises:
        ConfigError: It cannot be read, or is no recording.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    whole = data[: data.rfind(b"\n") + 1]
    head: RecordingHead | None = None
    lines: list[ReplyLine] = []
    for number, raw in enumerate(whole.splitlines(), start=1):
        try:
            value = json.loads(raw)
            if number == 1:
                head = RecordingHead.model_validate(value)
            else:
                lines.append(ReplyLine.model_validate(value))
        except (ValueError, ValidationError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number} is no line of a recording; remove the file") from error
    return head, lines, len(whole)


def copy_recording(source: Path, folder: Path, name: str) -> None:
    """Copies a finished journal into a folder of recordings under a name, in one step.

    Raises:
        ConfigError: The disk refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f".{name}.{os.getpid()}.tmp"
        shutil.copyfile(source, scratch)
        scratch.replace(folder / name)
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}") from error


def recordings_in(folder: Path) -> dict[str, RecordingHead]:
    """Returns the recordings of a folder by file name, sorted.

    Raises:
        ConfigError: There is no such folder, or none in it.
    """
    if not folder.is_dir():
        raise ConfigError(f"no folder {folder}; give one that --record wrote, or leave out --replay")
    found = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        head, _, _ = read_recording(path)
        if head is not None:
            found[path.name] = head
    if not found:
        raise ConfigError(f"no recordings in {folder}; a recording is a file SEED--K{SUFFIX}, written by --record")
    return found
