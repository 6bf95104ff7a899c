"""The contract of a layout: where each file of a bundle lies in another project's folders, and what else is needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from sandmle.records import Record
from sandmle.registry import resolve
from sandmle.tasks import Bundle

LAYOUTS = {
    "mle-bench": "sandmle.formats.mle_bench:MleBench",
    "sandmle-release": "sandmle.formats.release:Release",
    "harbor": "sandmle.formats.harbor:Harbor",
}
_GROUP = "sandmle.formats"
MANIFEST_FILE = "package.json"
"""Names every file of one exported task with its SHA-256; it lies with the hidden files."""


class Transfer(Record):
    """What became of one task that was exported or imported."""

    task: str
    """The task's id, or the folder where there is none."""
    path: str = ""
    """Where it lies now; empty when it was refused."""
    error: str = ""
    """One sentence; empty when it was done."""
    notes: tuple[str, ...] = ()
    """What the user should know of a task that was done."""


@runtime_checkable
class Layout(Protocol):
    """One project's folders. It holds no state of a transfer."""

    name: str
    warning: str
    """What a user of exported tasks must know; empty when there is nothing."""
    options: Mapping[str, str]
    """What it was made with: keyword arguments that make the same layout again."""

    def place(self, task_id: str, path: str) -> str:
        """Returns where a file of the bundle lies, relative to the package's root, with forward slashes."""
        ...

    def folders(self, task_id: str) -> tuple[str, ...]:
        """Returns the folders that belong to one task alone, the one that a user would name first."""
        ...

    def encode(self, path: str, data: bytes) -> bytes:
        """Returns the bytes that lie at ``place(task_id, path)``."""
        ...

    def decode(self, path: str, data: bytes) -> bytes:
        """Turns those bytes into the bundle's own again."""
        ...

    def extras(self, bundle: Bundle) -> Mapping[str, bytes]:
        """Returns the files that the other project needs beside the bundle's, by their place.

        Raises:
            BundleError: The layout cannot hold the task; one sentence says why.
        """
        ...

    def shared(self, task_ids: Sequence[str]) -> Mapping[str, bytes]:
        """Returns the files that all exported tasks have in common."""
        ...

    def find(self, root: Path) -> list[str]:
        """Returns the ids of the tasks of this layout under a folder, ours and foreign ones, sorted."""
        ...


def make_layout(name: str) -> Layout:
    """Returns a layout by name, entry point of the group ``sandmle.formats``, or dotted path.

    Raises:
        ConfigError: There is no such layout.
    """
    made: Layout = resolve("format", name, LAYOUTS, _GROUP)()
    return made
