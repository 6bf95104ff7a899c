"""The ``synthetic`` suite: a task set of this project, with the seeds that were trained on left out."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from sandmle.env.feedback import SubmissionGrader
from sandmle.errors import BundleError, ConfigError
from sandmle.evaluation.suites.base import SuiteOptions, SuiteTasks
from sandmle.grading import Grader
from sandmle.records import TaskSpec
from sandmle.tasks import Bundle, find_bundles, load_bundle

# Paper, section 5: 20 turns in training, 30 at test.
TEST_TURNS = 30
SPLIT_FILE = "split.json"


class SyntheticSuite:
    """All tasks of a set but for those whose seed was trained on: by ``--not-in``, else by a split.json in the set."""

    name: ClassVar[str] = "synthetic"
    takes: ClassVar[frozenset[str]] = frozenset({"competitions", "not_in"})
    episode: ClassVar[Mapping[str, Any]] = MappingProxyType({"feedback": "public", "max_turns": TEST_TURNS})

    def __init__(self, options: SuiteOptions) -> None:
        self._options = options

    def load(self) -> SuiteTasks:
        """Reads the set; a broken task is named and counts, and the others are run.

        Raises:
            BundleError: There is no task set.
            ConfigError: No task is left, or a wanted id is not there.
        """
        bundles, missing = _read(self._options.data)
        wanted = self._options.competitions
        strange = sorted(set(wanted) - {*bundles, *missing})
        if strange:
            raise ConfigError(f"no task {strange[0]} in {self._options.data}; see the folders below it for the ids")
        if wanted:
            bundles = {task_id: bundles[task_id] for task_id in wanted if task_id in bundles}
            missing = {task_id: missing[task_id] for task_id in wanted if task_id in missing}
        split = self._options.data / SPLIT_FILE
        sets = self._options.not_in or ((split,) if split.is_file() and not wanted else ())
        trained = {identity for path in sets for identity in _identities(path)}
        kept = {name: bundle for name, bundle in bundles.items() if not trained & _identity(bundle.spec)}
        notes = []
        if trained:
            notes.append(f"{len(bundles) - len(kept)} of {len(bundles)} tasks left out: seen in training")
        else:
            notes.append("no training set was named (--not-in): whether these seeds were trained on is not known")
        if not kept and not missing:
            raise ConfigError(f"every task in {self._options.data} shares a seed with the training set; give another")
        return SuiteTasks(kept, missing, tuple(notes))

    def open_grader(self, bundle: Bundle) -> SubmissionGrader:
        """Returns the task's own grader."""
        return Grader(bundle)

    def write_reports(self, run: Path) -> Sequence[Path]:
        """Writes nothing: the run directory is all there is."""
        del run
        return ()


def _read(path: Path) -> tuple[dict[str, Bundle], dict[str, str]]:
    bundles: dict[str, Bundle] = {}
    missing: dict[str, str] = {}
    for root in find_bundles(path):
        try:
            bundle = load_bundle(root)
            bundles[bundle.task_id] = bundle
        except BundleError as error:
            missing[root.name] = str(error)
    return bundles, missing


def _identity(spec: TaskSpec) -> frozenset[str]:
    """What may not be shared with a training set: the seed, or without one the task itself."""
    seed = spec.provenance.seed_id
    return frozenset({f"hash:{spec.task_hash}", *([f"seed:{seed}"] if seed else [])})


def _identities(path: Path) -> frozenset[str]:
    """What a training set holds: a task set, or the training side of a split made by ``sandmle split``."""
    split = path / SPLIT_FILE if path.is_dir() else path
    if split.is_file():
        try:
            entries = json.loads(split.read_text(encoding="utf-8"))["train"]
            pairs = [(str(entry["task_hash"]), str(entry["seed_id"])) for entry in entries]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{split} is no split with a training side; make one with `sandmle split`") from error
        return frozenset(each for task_hash, seed in pairs for each in (f"hash:{task_hash}", f"seed:{seed}"))
    return frozenset(each for root in find_bundles(path) for each in _identity(load_bundle(root, verify=False).spec))
