"""The journal of one episode: what a scaffold has done, a line a stretch, so that it goes on after a kill.

The run directory holds one for each episode that is under way; it goes when the episode's trajectory is written.
"""

import os
from io import BufferedRandom
from pathlib import Path
from typing import Literal, Self

from pydantic import ValidationError

from sandmle.records import Record, SearchNode, StepRecord, Usage


class JournalHead(Record):
    """What a journal belongs to: its first line. A journal of anything else is not gone on with."""

    schema_version: Literal[1] = 1
    task_hash: str
    scaffold: str
    settings: str
    """Digest of the scaffold's options."""
    policy: str
    rng_seed: int


class JournalEntry(Record):
    """One stretch of an episode: a node of a search, or one turn of a scaffold without a tree."""

    steps: tuple[StepRecord, ...]
    node: SearchNode | None = None
    submission: bytes | None = None
    """The submission of the stretch, if it has the right form."""
    usage: Usage = Usage()
    """What the model calls of the stretch took."""
    used_s: float = 0.0
    """What the episode had used at the end of the stretch: seconds, then tokens and dollars."""
    tokens: int = 0
    cost_usd: float = 0.0


class Journal:
    """An open journal; without a file it keeps nothing."""

    def __init__(self, file: BufferedRandom | None, entries: tuple[JournalEntry, ...]) -> None:
        """Use :func:`open_journal`."""
        self._file = file
        self.entries = entries

    def append(self, entry: JournalEntry) -> None:
        """Writes a stretch; when this returns it is on disk.

        Raises:
            OSError: The disk refuses.
        """
        if self._file is not None:
            self._file.write(entry.to_json().encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Lets go of the file. Idempotent."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def open_journal(path: Path | None, head: JournalHead) -> Journal:
    """Opens the journal of an episode and reads what an earlier process left; a torn last line is dropped.

    A journal of another episode, or one that cannot be read, is begun anew.

    Raises:
        OSError: The file cannot be made.
    """
    if path is None:
        return Journal(None, ())
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+b")
    file.seek(0)
    entries, end = _read(file, head)
    file.truncate(end)
    file.seek(0, os.SEEK_END)
    if end == 0:
        file.write(head.to_json().encode() + b"\n")
        file.flush()
    return Journal(file, entries)


def _read(file: BufferedRandom, head: JournalHead) -> tuple[tuple[JournalEntry, ...], int]:
    """Returns the entries of a journal and the offset behind the last whole one."""
    entries: list[JournalEntry] = []
    end = 0
    for number, line in enumerate(file):
        if not line.endswith(b"\n"):
            break
        try:
            if number == 0:
                if JournalHead.model_validate_json(line) != head:
                    return (), 0
            else:
                entry = JournalEntry.model_validate_json(line)
                if not _follows(entry, sum(each.node is not None for each in entries)):
                    break
                entries.append(entry)
        except ValidationError:
            break
        end += len(line)
    return tuple(entries), end


def _follows(entry: JournalEntry, n_nodes: int) -> bool:
    """Tells whether an entry can be the next one after so many nodes; another one was not written by us."""
    node = entry.node
    if node is None:
        return bool(entry.steps)
    has_step = node.step is None or node.step in {step.index for step in entry.steps}
    return node.index == n_nodes and all(0 <= parent < n_nodes for parent in node.parents) and has_step
