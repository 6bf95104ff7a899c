"""An author for tests: what becomes of a proposal depends on its seed task alone. Cheap, and deterministic."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from sandmle.errors import AuthoringError
from sandmle.records import ExecResult, ExecStatus, SeedRecord, ThresholdPreset
from sandmle.sandbox.base import ExecRequest
from sandmle.tasks import BundleDraft
from tests import bundles
from tests.gate.plain import PlainSandbox

SOUND = ("champs-scalar-coupling", "google-quest-challenge")
REFUSED = "AI4Code"
BUGGY = "hubmap-kidney-segmentation"
PARTIAL = "herbarium-2020-fgvc7"
LEAKY = "lmsys-chatbot-arena"
ONE_CLASS = "imet-2020-fgvc7"
SAME_ID = "spaceship-titanic"
DEADLY = "kuzushiji-recognition"


class FakeAuthor:
    name = "fake"
    version = "1"

    def __init__(self, preset: ThresholdPreset = "calibrated") -> None:
        self.preset = preset

    def propose(self, seed: SeedRecord, rng_seed: int) -> BundleDraft:
        if seed.id == REFUSED:
            raise AuthoringError("this seed cannot be drawn")
        if seed.id == BUGGY:
            raise ZeroDivisionError("division by zero")
        if seed.id == DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._draft(seed, rng_seed)

    def _draft(self, seed: SeedRecord, rng_seed: int) -> BundleDraft:
        draft = bundles.draft("binary" if seed.id == ONE_CLASS else "regression", rng_seed % 5)
        task_id = "same" if seed.id == SAME_ID else f"fake-{rng_seed}"
        draft = bundles.with_spec(draft, task_id=task_id)
        draft = bundles.with_spec(
            draft, provenance=draft.spec.provenance.replace(author="fake", rng_seed=rng_seed, seed_id=seed.id)
        )
        if seed.id == PARTIAL:
            return BundleDraft(draft.spec, {"description.md": b""})
        if seed.id == LEAKY:
            frame = bundles.table(draft, "public/train.csv").sort_values("wear")
            return bundles.with_table(draft, "public/train.csv", frame)
        if seed.id == ONE_CLASS:
            frame = bundles.table(draft, "private/answers.csv")
            frame["failed"] = 1
            return bundles.with_table(draft, "private/answers.csv", frame)
        return draft

    def regenerate(self, seed: SeedRecord, rng_seed: int) -> Mapping[str, bytes]:
        files = self._draft(seed, rng_seed).files
        return {path: data for path, data in files.items() if path.startswith(("public/", "private/"))}


class SlowAuthor(FakeAuthor):
    def propose(self, seed: SeedRecord, rng_seed: int) -> BundleDraft:
        time.sleep(0.3)
        return super().propose(seed, rng_seed)


class FullDiskAuthor(FakeAuthor):
    """Writes to a path that the system refuses, as a full disk would."""

    def propose(self, seed: SeedRecord, rng_seed: int) -> BundleDraft:
        draft = super().propose(seed, rng_seed)
        return bundles.with_file(draft, f"public/{'x' * 300}", b"")


class IdleSandbox(PlainSandbox):
    """Runs nothing and says that all went well."""

    def execute(self, request: ExecRequest) -> ExecResult:
        return ExecResult(status=ExecStatus.OK, cpu_s=0.25)


class BrokenSandbox(PlainSandbox):
    def execute(self, request: ExecRequest) -> ExecResult:
        raise OSError("the machine is on fire")


def tree(root: Path) -> dict[str, bytes]:
    """Returns every file below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
