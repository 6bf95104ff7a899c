"""What commands share: consoles, JSON output, and progress that reads well on a terminal and off it."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

JsonOption = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON on stdout.")]

_PLAIN_LINE_EVERY_S = 5.0


def console() -> Console:
    """Returns the console for results (stdout). Rich honours NO_COLOR, drops styles off a terminal, adds no emoji."""
    return Console(soft_wrap=not sys.stdout.isatty(), highlight=False, emoji=False)


def error_console() -> Console:
    """Returns the console for progress and errors (stderr)."""
    return Console(stderr=True, highlight=False, emoji=False)


def printable(text: str) -> str:
    """Returns text on one line that does nothing to a terminal: what is not printable becomes a Python escape."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def print_json(value: Any) -> None:
    """Prints strict JSON on stdout: records by their own rules, NaN refused."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(plain, allow_nan=False, ensure_ascii=False, default=_plain)
    typer.echo(text.encode(errors="backslashreplace").decode())  # a lone surrogate, of a bad file name: \udcff


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"not JSON: {type(value).__name__}")


class ProgressLine(Protocol):
    """Shows how far a long command is."""

    def update(self, done: int, note: str = "") -> None:
        """Sets the number of finished items, with a short note (counts, means, time left)."""
        ...


class _BarLine:
    def __init__(self, progress: Progress, title: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=total, note="")

    def update(self, done: int, note: str = "") -> None:
        self._progress.update(self._task, completed=done, note=note)


class _PlainLine:
    """One line now and then, with the time left, for logs and pipes."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._start = time.monotonic()
        self._last_s = 0.0

    def update(self, done: int, note: str = "") -> None:
        elapsed_s = time.monotonic() - self._start
        if done < self._total and elapsed_s - self._last_s < _PLAIN_LINE_EVERY_S:
            return
        self._last_s = elapsed_s
        left = f", {elapsed_s / done * (self._total - done):.0f} s left" if 0 < done < self._total else ""
        print(f"{self._title}: {done}/{self._total}{', ' + note if note else ''}{left}", file=sys.stderr, flush=True)


@contextmanager
def progress_line(title: str, total: int, *, quiet: bool = False) -> Iterator[ProgressLine]:
    """Shows progress on stderr: a bar on a terminal, a line every few seconds elsewhere, nothing when ``quiet``."""
    if quiet:
        yield _QuietLine()
        return
    screen = error_console()
    if not screen.is_terminal:
        yield _PlainLine(title, total)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, transient=False) as progress:
        yield _BarLine(progress, title, total)


class _QuietLine:
    def update(self, done: int, note: str = "") -> None:
        del done, note
