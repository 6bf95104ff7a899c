"""Export and import: one task at a time, whole or not at all, every byte held against its SHA-256."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path, PurePosixPath

from pydantic import Field, ValidationError

from sandmle.errors import BundleError, ConfigError, SandmleError
from sandmle.formats.base import MANIFEST_FILE, Layout, Transfer
from sandmle.formats.release import Release, is_ours
from sandmle.formats.repair import repair
from sandmle.records import Record
from sandmle.sandbox import open_backend
from sandmle.tasks import Bundle, BundleDraft, find_bundles, load_bundle, write_bundle
from sandmle.tasks.bundle import GATE_FILE, SPEC_FILE


class Manifest(Record):
    """The files of one exported task."""

    schema_version: int = 1
    format: str
    task_id: str
    task_hash: str
    options: dict[str, str] = Field(default_factory=dict)
    """What the layout was made with."""
    files: dict[str, str]
    """SHA-256 of every file but this one, by its place."""
    seal: str = ""
    """Digest of the record without its seal, so that a change of this file is seen as one."""

    def sealed(self) -> "Manifest":
        """Returns the manifest with its seal."""
        return self.replace(seal=self.replace(seal="").digest())


def export_tasks(tasks: Path, layout: Layout, out: Path) -> Iterator[Transfer]:
    """Writes tasks in a layout; one that cannot be written never stops the others.

    Args:
        tasks: A task, or a folder of tasks.
        layout: The layout.
        out: The folder; made if missing. Tasks that are there already are refused.

    Raises:
        BundleError: There are no tasks.
        ConfigError: ``out`` cannot be written to.
    """
    done: list[str] = []
    for folder in find_bundles(tasks):
        try:
            bundle = load_bundle(folder)
            done.append(bundle.task_id)
            path = _export(bundle, layout, out)
            yield Transfer(task=bundle.task_id, path=str(path))
        except SandmleError as error:
            yield Transfer(task=folder.name, error=str(error))
    _write(out, layout.shared(done))


def import_tasks(root: Path, layout: Layout, out: Path, *, sandbox: str = "forkserver") -> Iterator[Transfer]:
    """Reads tasks that :func:`export_tasks` wrote, and repairs those of the published SandMLE release.

    One that was damaged, or cannot be repaired, never stops the others.

    Args:
        root: The folder that was exported to, or the release's data.
        layout: The layout.
        out: The task set's folder. Tasks that are there already are refused.
        sandbox: Backend in which the release's evaluators run; opened when one is met.

    Raises:
        BundleError: There is nothing of this layout in ``root``.
        SandboxUnavailableError: The sandbox cannot run on this machine.
    """
    if not root.is_dir():
        raise BundleError(f"no folder {root}; give the folder that holds the exported tasks")
    found = layout.find(root)
    if not found:
        raise BundleError(
            f"no tasks in the layout {layout.name} in {root}; give the folder that `sandmle export` wrote"
        )
    foreign = [task_id for task_id in found if isinstance(layout, Release) and not is_ours(root, task_id)]
    with open_backend(sandbox, workers=1) if foreign else nullcontext() as opened:
        for task_id in found:
            try:
                if opened is not None and task_id in foreign:
                    repaired = repair(root, task_id, opened)
                    draft, notes = repaired.draft, repaired.notes
                else:
                    draft, notes = read_package(root, layout, task_id), ()
                yield Transfer(task=task_id, path=str(write_new(draft, out).root), notes=notes)
            except SandmleError as error:
                yield Transfer(task=task_id, error=str(error))


def read_package(root: Path, layout: Layout, task_id: str) -> BundleDraft:
    """Returns an exported task.

    Raises:
        BundleError: It was not exported by sandmle, or a file was changed since.
    """
    place = layout.place(task_id, MANIFEST_FILE)
    try:
        manifest = Manifest.model_validate_json((root / place).read_bytes())
    except OSError as error:
        raise BundleError(
            f"{task_id} was not exported by sandmle (there is no {place}), so it cannot be read"
        ) from error
    except ValidationError as error:
        raise BundleError(f"{task_id}: {place} was changed; export the task again") from error
    if manifest != manifest.sealed():
        raise BundleError(f"{task_id}: {place} was changed; export the task again")
    layout = type(layout)(**manifest.options)
    contents = {path: _verified(root, path, expected) for path, expected in sorted(manifest.files.items())}
    spec = load_bundle((root / layout.place(task_id, SPEC_FILE)).parent, verify=False).spec
    files = {path: layout.decode(path, contents[layout.place(task_id, path)]) for path in spec.files}
    gate = contents.get(layout.place(task_id, GATE_FILE))
    draft = BundleDraft(spec, files if gate is None else {**files, GATE_FILE: gate})
    sealed = draft.sealed_spec()
    if sealed.task_hash != manifest.task_hash:
        odd = next((path for path in spec.files if sealed.files.get(path) != spec.files[path]), SPEC_FILE)
        raise BundleError(
            f"{task_id}: {odd} is not what was exported: the task's hash is {sealed.task_hash[:12]}..., "
            f"{place} says {manifest.task_hash[:12]}..."
        )
    return draft


def write_new(draft: BundleDraft, out: Path) -> Bundle:
    """Writes a task that is not there yet.

    Raises:
        BundleError: A task of this id is there already, or the disk refuses.
    """
    if (out / draft.spec.task_id).exists():
        raise BundleError(f"{out / draft.spec.task_id} is there already; remove it or give another folder")
    return write_bundle(draft, out)


def _export(bundle: Bundle, layout: Layout, out: Path) -> Path:
    task_id = bundle.task_id
    folders = layout.folders(task_id)
    for folder in folders:
        if (out / folder).exists():
            raise BundleError(f"{out / folder} is there already; remove it or give another folder")
    own = [SPEC_FILE, *bundle.spec.files]
    if (bundle.root / GATE_FILE).is_file():
        own.append(GATE_FILE)
    package: dict[str, bytes] = {layout.place(task_id, path): layout.encode(path, bundle.read(path)) for path in own}
    for place, data in layout.extras(bundle).items():
        if place in package:
            raise BundleError(f"task {task_id}: the layout {layout.name} needs the name of the task's own file {place}")
        package[place] = data
    hashes = {place: hashlib.sha256(data).hexdigest() for place, data in sorted(package.items())}
    manifest = Manifest(
        format=layout.name,
        task_id=task_id,
        task_hash=bundle.spec.task_hash,
        options=dict(layout.options),
        files=hashes,
    ).sealed()
    package[layout.place(task_id, MANIFEST_FILE)] = (json.dumps(manifest.to_dict(), indent=2) + "\n").encode()
    _move_in(package, folders, out)
    return out / folders[0]


def _move_in(package: Mapping[str, bytes], folders: Sequence[str], out: Path) -> None:
    """Writes beside the place and renames, so that a task's folders appear whole."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".export-", dir=out) as scratch:
            _write(Path(scratch), package)
            for folder in folders:
                (out / folder).parent.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / folder).rename(out / folder)
    except OSError as error:
        for folder in folders:
            shutil.rmtree(out / folder, ignore_errors=True)
        raise ConfigError(f"cannot write to {out}: {error.strerror}; give another folder") from error


def _write(root: Path, files: Mapping[str, bytes]) -> None:
    try:
        for place, data in sorted(files.items()):
            target = root / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            if data.startswith(b"#!"):
                target.chmod(0o755)
    except OSError as error:
        raise ConfigError(f"cannot write to {root}: {error.strerror}; give another folder") from error


def _verified(root: Path, place: str, expected: str) -> bytes:
    pure = PurePosixPath(place)
    if pure.is_absolute() or ".." in pure.parts:
        raise BundleError(f"{MANIFEST_FILE} names {place!r}, which lies outside the package")
    try:
        data = (root / place).read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {place}: {error.strerror}; export the task again") from error
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise BundleError(
            f"{place} was changed: its SHA-256 is {found[:12]}..., {MANIFEST_FILE} says {expected[:12]}...; "
            "export the task again"
        )
    return data
