"""A task as a folder.

::

    <task_id>/
      task.yaml        TaskSpec, with the SHA-256 of every other file
      description.md   what the agent reads
      public/          train.csv test.csv sample_submission.csv and media folders: all that the agent's code sees
      private/         answers.csv: id, answers, leaderboard (public | private)
      provenance/      dna.yaml, rule.md, ladder.json, ...; gate.json is written by the gate and is not hashed

A bundle appears whole or not at all: it is written beside its place and renamed.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml
from pydantic import ValidationError

from sandmle.errors import BundleError
from sandmle.records import GateReport, TaskSpec

SPEC_FILE = "task.yaml"
TASKS_DIR = "tasks"
"""Where a generated task set holds its bundles."""
DESCRIPTION_FILE = "description.md"
ANSWERS_FILE = "private/answers.csv"
TRAIN_FILE = "public/train.csv"
TEST_FILE = "public/test.csv"
SAMPLE_FILE = "public/sample_submission.csv"
GATE_FILE = "provenance/gate.json"
REQUIRED_FILES = (DESCRIPTION_FILE, TRAIN_FILE, TEST_FILE, SAMPLE_FILE, ANSWERS_FILE)
_UNHASHED = frozenset({SPEC_FILE, GATE_FILE})
# Every file gets the same time, so that no file tells when, or in which order, it was made (case N01).
FILE_TIME_S = 1_577_836_800


@dataclass(frozen=True)
class BundleDraft:
    """A task that is not on disk yet.

    Attributes:
        spec: The spec; its ``files`` are filled in when the draft is written.
        files: Contents by path relative to the bundle, with forward slashes.
    """

    spec: TaskSpec
    files: Mapping[str, bytes] = field(default_factory=dict)

    def sealed_spec(self) -> TaskSpec:
        """Returns the spec with the hash of every file."""
        hashes = {path: _sha256(data) for path, data in sorted(self.files.items()) if path not in _UNHASHED}
        return self.spec.replace(files=hashes)


@dataclass(frozen=True)
class Bundle:
    """A task on disk."""

    root: Path
    spec: TaskSpec

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.spec.task_id

    @property
    def public_dir(self) -> Path:
        """The folder that agents' code may read."""
        return self.root / "public"

    @property
    def answers_path(self) -> Path:
        """The hidden answers."""
        return self.root / ANSWERS_FILE

    def read(self, path: str) -> bytes:
        """Returns the contents of a file of the bundle.

        Args:
            path: Path relative to the bundle, with forward slashes.

        Raises:
            BundleError: The file cannot be read, or was changed since the task was loaded.
        """
        data = self._read_bytes(path)
        expected = self.spec.files.get(path)
        if expected is not None and _sha256(data) != expected:
            raise BundleError(f"task {self.task_id}: {_difference(path, data, expected)}")
        return data

    def _read_bytes(self, path: str) -> bytes:
        try:
            return (self.root / path).read_bytes()
        except OSError as error:
            raise BundleError(f"task {self.task_id}: cannot read {path}: {error.strerror}") from error

    def public_paths(self) -> list[str]:
        """Returns the paths of the files that agents' code may read, relative to ``public_dir``."""
        return [path.removeprefix("public/") for path in self.spec.files if path.startswith("public/")]

    def description(self) -> str:
        """Returns the text that the agent reads."""
        return self.read(DESCRIPTION_FILE).decode()

    def paths(self) -> list[str]:
        """Returns the paths of all files of the bundle, sorted, relative and with forward slashes."""
        return _walk(self.root)

    def gate_report(self) -> GateReport | None:
        """Returns what the gate last said of exactly this task, or None."""
        try:
            report = GateReport.model_validate_json((self.root / GATE_FILE).read_bytes())
        except (OSError, ValidationError):
            return None
        return report if report.task_hash == self.spec.task_hash else None

    def save_gate_report(self, report: GateReport) -> None:
        """Writes the gate's report into the bundle; it replaces an earlier one in one step."""
        path = self.root / GATE_FILE
        path.parent.mkdir(exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.tmp")
        scratch.write_text(report.model_dump_json(indent=2) + "\n")
        os.utime(scratch, (FILE_TIME_S, FILE_TIME_S))
        scratch.replace(path)


def write_bundle(draft: BundleDraft, parent: Path) -> Bundle:
    """Writes a draft to ``parent/<task_id>``, whole or not at all; an earlier bundle of that id is replaced.

    Args:
        draft: The task.
        parent: The task set's folder; made if missing.

    Raises:
        BundleError: A path of the draft leaves the bundle, a required file is missing, or the disk refuses.
    """
    missing = [path for path in REQUIRED_FILES if path not in draft.files]
    if missing:
        raise BundleError(f"task {draft.spec.task_id}: the draft lacks {', '.join(missing)}")
    for path in draft.files:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or path == SPEC_FILE:
            raise BundleError(f"task {draft.spec.task_id}: {path!r} is not a path inside a bundle")
    spec = draft.sealed_spec()
    target = parent / spec.task_id
    try:
        parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{spec.task_id}.", dir=parent))
        try:
            _write_files(scratch, {**draft.files, SPEC_FILE: dump_spec(spec)})
            scratch.chmod(0o755)
            if target.exists():
                shutil.rmtree(target)
            scratch.replace(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise BundleError(f"cannot write task {spec.task_id} to {parent}: {error.strerror}") from error
    return Bundle(root=target, spec=spec)


def load_bundle(root: Path, *, verify: bool = True) -> Bundle:
    """Loads a bundle.

    Args:
        root: The task's folder.
        verify: Compare every file with the hash in the spec.

    Raises:
        BundleError: There is no bundle there, it is of another format or version, or a file was changed.
    """
    spec = _load_spec(root)
    bundle = Bundle(root=root, spec=spec)
    if verify:
        problems = _file_problems(bundle)
        if problems:
            raise BundleError(f"task {spec.task_id} in {root}: {problems[0]}; make it again or restore the file")
    return bundle


def check_bundle(root: Path) -> list[str]:
    """Returns all that is wrong with a folder as a bundle, one sentence each; an empty list means nothing is.

    This looks at layout and hashes only; whether the task is a good one is the gate's to say.
    """
    try:
        spec = _load_spec(root)
    except BundleError as error:
        return [str(error)]
    return _file_problems(Bundle(root=root, spec=spec))


def find_bundles(path: Path) -> list[Path]:
    """Returns the bundles in a folder, sorted by name.

    Args:
        path: A folder of tasks, what ``sandmle generate`` made, or a single task.

    Raises:
        BundleError: The folder does not exist or holds no bundle.
    """
    if not path.is_dir():
        raise BundleError(f"no folder {path}; give a task or a folder of tasks")
    if (path / SPEC_FILE).is_file():
        return [path]
    if (path / TASKS_DIR).is_dir():
        path = path / TASKS_DIR
    found = sorted(entry.parent for entry in path.glob(f"*/{SPEC_FILE}") if not entry.parent.name.startswith("."))
    if not found:
        raise BundleError(f"no tasks in {path}; a task is a folder with {SPEC_FILE}, made by `sandmle generate`")
    return found


def dump_spec(spec: TaskSpec) -> bytes:
    """Returns the bytes of ``task.yaml``."""
    # libyaml's emitter: a task with thousands of pictures has a line for each.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(spec.to_dict(), Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)
    return text.encode()


def _load_spec(root: Path) -> TaskSpec:
    path = root / SPEC_FILE
    try:
        raw = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except FileNotFoundError as error:
        raise BundleError(f"{root} is not a task: it has no {SPEC_FILE}") from error
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        # YAML's own readers of dates and numbers raise whatever Python does.
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise BundleError(f"{path} is not YAML: {reason}") from error
    version = raw.get("schema_version") if isinstance(raw, dict) else None
    if version != 1:
        raise BundleError(f"{path} has schema_version {version!r}; this release reads version 1")
    try:
        return TaskSpec.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BundleError(f"{path}: {where}: {first['msg']}") from error


def _file_problems(bundle: Bundle) -> list[str]:
    wanted = bundle.spec.files
    problems = [f"{path} is not named in {SPEC_FILE}" for path in REQUIRED_FILES if path not in wanted]
    present = set(bundle.paths())
    for path, expected in sorted(wanted.items()):
        if path not in present:
            problems.append(f"{path} is missing")
            continue
        data = bundle._read_bytes(path)
        if _sha256(data) != expected:
            problems.append(_difference(path, data, expected))
    extra = sorted(present - set(wanted) - _UNHASHED)
    problems.extend(f"{path} is not named in {SPEC_FILE}" for path in extra)
    return problems


def _difference(path: str, data: bytes, expected: str) -> str:
    return f"{path} was changed: its SHA-256 is {_sha256(data)[:12]}..., {SPEC_FILE} says {expected[:12]}..."


def _walk(root: Path) -> list[str]:
    found: list[str] = []
    for folder, _, names in os.walk(root):
        inside = Path(folder).relative_to(root).as_posix()
        found.extend(name if inside == "." else f"{inside}/{name}" for name in names)
    return sorted(found)


def _write_files(root: Path, files: Mapping[str, bytes]) -> None:
    for folder in sorted({(root / path).parent for path in files}):
        folder.mkdir(parents=True, exist_ok=True)
    for path, data in sorted(files.items()):
        target = root / path
        target.write_bytes(data)
        os.utime(target, (FILE_TIME_S, FILE_TIME_S))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
