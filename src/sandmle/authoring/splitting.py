"""Train and validation without a common seed: a task may not teach the shape of what it is tested by.

Seeds are dealt, not tasks. They are ordered by modality and kind of task, and every so-many-th goes to validation, so
that both sides have their share of each; the starting point and the order among like seeds come from ``rng_seed``.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from sandmle.authoring.randomness import digest_of, rng_for
from sandmle.errors import BundleError, ConfigError
from sandmle.parallel import write_whole
from sandmle.records import Record, TaskSpec
from sandmle.seeds import load_record
from sandmle.tasks import find_bundles, load_bundle
from sandmle.tasks.bundle import TRAIN_FILE

SPLIT_FILE = "split.json"
Side = Literal["train", "validation"]
SIDES: tuple[Side, ...] = ("train", "validation")


class SplitEntry(Record):
    """One task of a split."""

    task_id: str
    task_hash: str
    seed_id: str
    """The seed that the task comes from; the task's own id where it has none."""
    modality: str
    task_kind: str
    metric: str
    in_mle_dojo: bool
    """Its seed is a competition of MLE-Dojo: set it aside before evaluating there."""


class Split(Record):
    """A published division of a task set."""

    schema_version: Literal[1] = 1
    rng_seed: int
    validation_share: float = Field(gt=0, lt=1)
    train: tuple[SplitEntry, ...]
    validation: tuple[SplitEntry, ...]
    left_out: tuple[str, ...] = ()
    """Tasks that may be on neither side, with the reason."""

    def side(self, name: Side) -> tuple[SplitEntry, ...]:
        """Returns the tasks of one side."""
        return self.train if name == "train" else self.validation


def make_split(specs: Iterable[TaskSpec], *, validation_share: float = 0.2, rng_seed: int = 0) -> Split:
    """Divides tasks so that no seed is on both sides.

    Tasks whose seed is in MLE-bench-Lite, and tasks with the training rows of another, are left out and named.

    Args:
        specs: The tasks.
        validation_share: Share of the seeds that go to validation.
        rng_seed: Decides among like seeds.

    Raises:
        ConfigError: The share leaves one side empty.
    """
    entries, left_out = _usable(sorted(specs, key=lambda spec: spec.task_id))
    strata = {entry.seed_id: (entry.modality, entry.task_kind) for entry in reversed(entries)}
    ordered = sorted(strata, key=lambda seed: (strata[seed], digest_of("split", rng_seed, seed)))
    start = rng_for("split", rng_seed, "start").random()
    held = {
        seed
        for at, seed in enumerate(ordered)
        if int(start + validation_share * (at + 1)) > int(start + validation_share * at)
    }
    sides = [tuple(entry for entry in entries if (entry.seed_id in held) is is_held) for is_held in (False, True)]
    if not all(sides):
        raise ConfigError(
            f"{len(ordered)} seeds are too few for a validation share of {validation_share:g}; give another share"
        )
    return Split(
        rng_seed=rng_seed, validation_share=validation_share, train=sides[0], validation=sides[1], left_out=left_out
    )


def write_split(
    tasks: Path,
    out: Path,
    *,
    validation_share: float = 0.2,
    rng_seed: int = 0,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Split:
    """Divides a folder of tasks and writes ``split.json``, with links to the tasks of each side beside it.

    Every file is held against its hash first, as the hashes are published; a task that is broken is left out and named.

    Args:
        tasks: A folder of tasks.
        out: A new or empty folder; ``out/train`` and ``out/validation`` can be given wherever a folder of tasks can.
        validation_share: As in :func:`make_split`.
        rng_seed: As in :func:`make_split`.
        on_progress: Is told how many tasks were looked at.

    Raises:
        BundleError: There are no tasks, or none that is whole.
        ConfigError: ``out`` is not empty, or cannot be written to; the share leaves one side empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not empty; give a new folder")
    folders = find_bundles(tasks)
    bundles, broken = [], []
    for number, folder in enumerate(folders, start=1):
        try:
            bundles.append(load_bundle(folder))
        except BundleError as error:
            broken.append(f"{folder.name}: {error}")
        on_progress(number)
    if not bundles:
        raise BundleError(f"no task in {tasks} is whole; the first: {broken[0]}")
    split = make_split([bundle.spec for bundle in bundles], validation_share=validation_share, rng_seed=rng_seed)
    split = split.replace(left_out=(*broken, *split.left_out))
    roots = {bundle.task_id: bundle.root.resolve() for bundle in bundles}
    if len(roots) < len(bundles):
        raise BundleError(f"two tasks in {tasks} have one id; give each its own")
    try:
        for side in SIDES:
            (out / side).mkdir(parents=True)
            for entry in split.side(side):
                target = Path(os.path.relpath(roots[entry.task_id], (out / side).resolve()))
                (out / side / entry.task_id).symlink_to(target, target_is_directory=True)
        write_whole(out / SPLIT_FILE, split.to_dict())
    except OSError as error:
        raise ConfigError(f"cannot write to {out}: {error.strerror}; give another folder") from error
    return split


def split_table(split: Split) -> list[dict[str, Any]]:
    """Returns how many tasks and seeds of each modality and kind are on each side, as plain JSON types."""
    strata = sorted({(entry.modality, entry.task_kind) for side in SIDES for entry in split.side(side)})
    rows = []
    for modality, kind in strata:
        row: dict[str, Any] = {"modality": modality, "task_kind": kind}
        for side in SIDES:
            own = [entry for entry in split.side(side) if (entry.modality, entry.task_kind) == (modality, kind)]
            row[side] = len(own)
            row[f"{side}_seeds"] = len({entry.seed_id for entry in own})
        rows.append(row)
    return rows


def _usable(specs: Sequence[TaskSpec]) -> tuple[list[SplitEntry], tuple[str, ...]]:
    entries: list[SplitEntry] = []
    left_out: list[str] = []
    rows = Counter[str]()
    for spec in specs:
        seed_id = spec.provenance.seed_id
        record = load_record(seed_id) if seed_id is not None else None
        known = spec.files.get(TRAIN_FILE, spec.task_id)
        rows[known] += 1
        if record is not None and record.is_lite:
            left_out.append(f"{spec.task_id}: its seed {record.id} is in MLE-bench-Lite, which is for evaluation only")
            continue
        if rows[known] > 1:
            left_out.append(f"{spec.task_id}: another task has the same training rows")
            continue
        entries.append(
            SplitEntry(
                task_id=spec.task_id,
                task_hash=spec.task_hash,
                seed_id=seed_id or spec.task_id,
                modality=spec.modalities[0].value,
                task_kind=spec.task_kind.value,
                metric=spec.metric,
                in_mle_dojo=record is not None and record.in_mle_dojo,
            )
        )
    return entries, tuple(left_out)
