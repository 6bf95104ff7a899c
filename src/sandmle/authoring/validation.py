"""Puts tasks that are already on disk through the gate, whoever made them."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sandmle.authoring.pipeline import AUTHORS, make_author
from sandmle.errors import BundleError
from sandmle.gate import Regenerate, run_gate
from sandmle.parallel import map_with
from sandmle.records import GateReport, Provenance, Record, SeedRecord
from sandmle.sandbox import Sandbox, open_backend
from sandmle.seeds import load_seed
from sandmle.tasks import Bundle, load_bundle

LLM_AUTHOR = "llm"
"""Name in the provenance of tasks that a model wrote; their bundles keep the script that made the data."""


class Judgement(Record):
    """What the gate said of one folder, or why it could say nothing."""

    path: str
    report: GateReport | None = None
    error: str = ""
    """One sentence; empty when there is a report."""
    note: str = ""
    """What the user should know beside the verdict."""


def validate_tasks(
    folders: Sequence[Path], *, sandbox: str | None = "forkserver", workers: int = 1
) -> Iterator[tuple[int, Judgement]]:
    """Judges tasks as they come; a broken one never stops the others. ``gate.json`` is written into each.

    Without a sandbox the report is not saved, since the checks that run code are left out.

    Args:
        folders: The tasks.
        sandbox: Backend that the gate's solver runs in; None leaves the solver out.
        workers: Processes, each with its own sandbox.

    Yields:
        The place in ``folders`` and the judgement, in the order in which they are finished.

    Raises:
        SandboxUnavailableError: The sandbox cannot run on this machine.
    """
    for outcome in map_with(_judge, list(folders), resource=_Bench(sandbox), workers=workers):
        yield outcome.index, outcome.result or Judgement(path=str(outcome.item), error=outcome.error)


@dataclass(frozen=True)
class _Bench:
    """Opens a worker's sandbox."""

    backend: str | None

    def __call__(self) -> AbstractContextManager[Sandbox | None]:
        return nullcontext() if self.backend is None else open_backend(self.backend, workers=1)


def _judge(sandbox: Sandbox | None, folder: Path) -> Judgement:
    try:
        bundle = load_bundle(folder, verify=False)
    except BundleError as error:
        return Judgement(path=str(folder), error=str(error))
    regenerate, note = _regenerator(bundle, sandbox)
    report = run_gate(bundle, sandbox=sandbox, regenerate=regenerate)
    if sandbox is not None:
        try:
            bundle.save_gate_report(report)
        except OSError as error:
            note = f"gate.json could not be written: {error.strerror}"
    return Judgement(path=str(folder), report=report, note=note)


def _regenerator(bundle: Bundle, sandbox: Sandbox | None) -> tuple[Regenerate | None, str]:
    """Returns a function that makes the task's data again, where this installation can, or why it cannot."""
    made = bundle.spec.provenance
    own_script = made.author == LLM_AUTHOR
    if made.seed_id is None or not (own_script or made.author in AUTHORS):
        return None, "not made by an author of this installation, so it was not made again"
    if own_script and sandbox is None:
        return None, "its data script runs in a sandbox only, so it was not made again"
    other = other_library(made)
    if other:
        return None, f"made with {other}, so it was not made again"
    seed = load_seed(made.seed_id)
    if own_script and sandbox is not None:
        return _data_script(bundle, seed, sandbox), ""
    author = make_author(made.author, bundle.spec.thresholds.preset, made.settings)
    if author.version != made.author_version:
        return None, f"made by version {made.author_version} of its author, so it was not made again"
    return lambda: author.regenerate(seed, made.rng_seed), ""


def _data_script(bundle: Bundle, seed: SeedRecord, sandbox: Sandbox) -> Regenerate:
    """Returns a function that runs the data script of a task that a model wrote."""
    from sandmle.authoring.roles.again import PLAN_FILE, SCRIPT_FILE, data_again  # here: few tasks need it

    rng_seed = bundle.spec.provenance.rng_seed
    return lambda: data_again(seed, rng_seed, bundle.read(PLAN_FILE), bundle.read(SCRIPT_FILE), sandbox)


def other_library(made: Provenance) -> str:
    """Returns a library and the version that a task was made with, where this installation has another, or none.

    Other versions may draw other numbers (case N11).
    """
    others = (name for name in sorted(made.versions) if _installed(name) != made.versions[name])
    name = next(others, None)
    return f"{name} {made.versions[name]}" if name else ""


def _installed(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
