"""Makes tasks again from what their provenance says, and compares every byte."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from sandmle.authoring.pipeline import AUTHORS, make_author
from sandmle.authoring.validation import other_library
from sandmle.errors import BundleError
from sandmle.parallel import map_items
from sandmle.records import Record
from sandmle.seeds import load_seed
from sandmle.tasks import load_bundle


class Reproduction(Record):
    """What came of making one task again."""

    path: str
    outcome: Literal["same", "differs", "left_out"]
    reason: str = ""
    """The first file that differs, or why the task was not made again; empty when it is the same."""


def reproduce_tasks(folders: Sequence[Path], *, workers: int = 1) -> Iterator[tuple[int, Reproduction]]:
    """Makes tasks again, baselines, thresholds and texts included, and compares them with what is on disk.

    Only the gate's report is not made again: it is no part of a task.

    Args:
        folders: The tasks.
        workers: Processes.

    Yields:
        The place in ``folders`` and what came of it, in the order in which they are finished.
    """
    for outcome in map_items(_reproduce, list(folders), workers=workers):
        failed = Reproduction(path=str(outcome.item), outcome="differs", reason=outcome.error)
        yield outcome.index, outcome.result or failed


def _reproduce(folder: Path) -> Reproduction:
    try:
        bundle = load_bundle(folder)
    except BundleError as error:
        return Reproduction(path=str(folder), outcome="differs", reason=str(error))
    made = bundle.spec.provenance
    if made.seed_id is None or made.author not in AUTHORS:
        reason = f"made by {made.author!r}, which draws nothing from a number alone"
        return Reproduction(path=str(folder), outcome="left_out", reason=reason)
    author = make_author(made.author, bundle.spec.thresholds.preset, made.settings)
    other = other_library(made)
    if author.version != made.author_version:
        other = f"version {made.author_version} of its author"
    if other:
        return Reproduction(path=str(folder), outcome="left_out", reason=f"made with {other}")
    again = author.propose(load_seed(made.seed_id), made.rng_seed).sealed_spec()
    paths = sorted(bundle.spec.files.keys() | again.files.keys())
    different = [path for path in paths if bundle.spec.files.get(path) != again.files.get(path)]
    if different:
        return Reproduction(path=str(folder), outcome="differs", reason=f"{different[0]} is not the same")
    if again.task_hash != bundle.spec.task_hash:
        return Reproduction(path=str(folder), outcome="differs", reason="task.yaml is not the same")
    return Reproduction(path=str(folder), outcome="same")
