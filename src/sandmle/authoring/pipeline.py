"""``generate``: proposals from seeds, through author and gate, into a task set.

::

    OUT/
      run.json           the full configuration
      funnel.jsonl       one line a proposal
      summary.json       the funnel in numbers
      tasks/<task_id>/   the accepted bundles

Every proposal has its own random number seed, taken from the run's, the seed task's id and a number. So a task is the
same alone or among others, with one worker or many, in one go or resumed.
"""

import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

import sandmle
from sandmle.authoring.base import Author, PreparingAuthor
from sandmle.authoring.funnel import Proposal, ProposalRecord, Stage, latest, summarize
from sandmle.authoring.metered import MeteredSandbox
from sandmle.authoring.randomness import digest_of
from sandmle.errors import AuthoringError, BundleError, ConfigError, PolicyError, SandboxError, SandmleError
from sandmle.gate import run_gate
from sandmle.parallel import CONFIG_FILE, map_with, open_run_folder
from sandmle.records import GateReport, Record, ThresholdPreset, Verdict
from sandmle.registry import resolve
from sandmle.sandbox import check_backend, open_backend
from sandmle.seeds import load_seed, seed_ids
from sandmle.tasks import Bundle, load_bundle, write_bundle
from sandmle.tasks.bundle import TASKS_DIR

AuthorFactory = Callable[[], Author]
FUNNEL_FILE = "funnel.jsonl"
AUTHORS = {"procedural": "sandmle.authoring.procedural.author:ProceduralAuthor"}
_AUTHOR_GROUP = "sandmle.authors"
_STAGING_DIR = ".staging"
_EVALUATOR_CHECKS = frozenset({"bundle_integrity", "evaluator_agrees"})


class GenerateRequest(Record):
    """All that a task set depends on; it stands in ``run.json`` and may not change on resume."""

    schema_version: Literal[1] = 1
    seeds: tuple[str, ...] = Field(min_length=1)
    """Seed tasks, taken in turn."""
    count: int = Field(gt=0)
    """Proposals; the gate decides how many of them become tasks."""
    rng_seed: int = 0
    author: str = "procedural"
    author_options: dict[str, Any] = Field(default_factory=dict)
    """What else its tasks depend on, for example a model's name."""
    preset: ThresholdPreset = "calibrated"
    difficulty: str = ""
    """A name or a number from 0 to 1; empty for the author's own."""
    sandbox: str = "forkserver"
    """Backend that the gate's solver runs in."""

    @property
    def settings(self) -> dict[str, str]:
        """What the author is set to beside the preset."""
        return {"difficulty": self.difficulty} if self.difficulty else {}


@dataclass(frozen=True)
class GenerateProgress:
    """How far a run is."""

    n_done: int
    n_total: int
    records: Sequence[ProposalRecord]


def chosen_seeds(names: Sequence[str]) -> tuple[str, ...]:
    """Returns seed ids; ``all`` stands for all 60.

    Raises:
        SeedError: A name is unknown, or belongs to MLE-bench-Lite.
        ConfigError: A name is given twice, or none is given.
    """
    if list(names) == ["all"]:
        return seed_ids()
    ids = tuple(load_seed(name).id for name in names)
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ConfigError(f"seed {twice[0]!r} is given twice; a larger count draws more from every seed")
    if not ids:
        raise ConfigError("no seeds given; give ids separated by commas, or all")
    return ids


def proposals_of(request: GenerateRequest) -> list[Proposal]:
    """Returns the proposals of a run: the seeds in turn, each time with a new random number seed."""
    proposals = []
    for index in range(request.count):
        k, at = divmod(index, len(request.seeds))
        seed_id = request.seeds[at]
        rng_seed = int.from_bytes(digest_of("proposal", request.rng_seed, seed_id, k)[:6], "big")
        proposals.append(Proposal(index=index, seed_id=seed_id, k=k, rng_seed=rng_seed))
    return proposals


def make_author(name: str, preset: ThresholdPreset, settings: Mapping[str, str] | None = None) -> Author:
    """Returns an author by name, entry point or dotted path; what the name points to takes ``preset``.

    Args:
        name: The author.
        preset: How thresholds come from the ladder.
        settings: What else it is set to, for example its difficulty; see ``Provenance.settings``.

    Raises:
        ConfigError: There is no such author, or what the name points to makes none.
    """
    author = _made("author", name, resolve("author", name, AUTHORS, _AUTHOR_GROUP), preset=preset, **(settings or {}))
    if not isinstance(author, Author):
        raise ConfigError(f"author {name!r} gives no author but an object of type {type(author).__name__}")
    return author


def _made(kind: str, name: str, factory: Any, **options: Any) -> object:
    try:
        return factory(**options)
    except SandmleError:
        raise
    except Exception as error:  # anything that can be imported may stand behind a name
        raise ConfigError(f"{kind} {name!r} cannot be made: {type(error).__name__}: {error}") from error


def generate(
    request: GenerateRequest,
    out: Path,
    *,
    workers: int = 1,
    ray: str | None = None,
    resume: bool = False,
    on_progress: Callable[[GenerateProgress], None] | None = None,
    author: AuthorFactory | None = None,
    on_authoring: Callable[[Any], None] | None = None,
) -> list[ProposalRecord]:
    """Makes a task set; proposals that fail are recorded with their reason and never stop the others.

    Args:
        request: What to make.
        out: The folder; new or empty, unless resumed.
        workers: Processes, each with its own sandbox.
        ray: Address of a Ray cluster to run the workers on; its nodes must see ``out`` under the same path.
        resume: Go on with a run that was stopped or killed; what is done is not done again.
        on_progress: Called after every proposal.
        author: Makes the author in every worker; None for the one that the request names. Picklable.
        on_authoring: Told how far an author is that makes many drafts before the first is judged.

    Returns:
        The last record of every proposal.

    Raises:
        SeedError: A seed may not be used; nothing has been written.
        ConfigError: The folder cannot be used, or the author or sandbox is unknown.
        SandboxUnavailableError: The sandbox cannot run on this machine.
        BundleError: The disk refuses; finished tasks are safe.
    """
    for seed_id in request.seeds:
        load_seed(seed_id)
    author = author or partial(make_author, request.author, request.preset, request.settings)
    first = author()
    check_backend(request.sandbox)
    config = {**request.to_dict(), "sandmle_version": sandmle.__version__}
    with open_run_folder(out, FUNNEL_FILE, config, resume=resume) as folder:
        records = [_read_record(line, folder.path) for line in folder.lines]
        done = {record.proposal.index for record in latest(records) if not record.is_fault}
        waiting = [proposal for proposal in proposals_of(request) if proposal.index not in done]
        spending = _prepare(first, request, workers, on_authoring)
        shutil.rmtree(out / _STAGING_DIR, ignore_errors=True)
        # A folder of this run's own: a worker of a killed run may still be at its last item.
        staging = out / _STAGING_DIR / f"{os.getpid()}-{time.time_ns()}"
        workshop = _Workshop(request, out.resolve(), staging.resolve(), author)
        outcomes = map_with(_make, waiting, resource=workshop, workers=workers, ray=ray)
        for outcome in outcomes:
            record = outcome.result
            if isinstance(record, _DiskFault):
                raise BundleError(f"{record.message}; free some space and go on with --resume")
            if record is None:
                record = _lost(outcome.item, Stage.PROPOSED, "machinery", outcome.error, is_fault=True)
            folder.append(record.to_json())
            records.append(record)
            if on_progress is not None:
                on_progress(GenerateProgress(len(latest(records)), request.count, records))
        shutil.rmtree(out / _STAGING_DIR, ignore_errors=True)
        folder.write_summary(summarize(records) | spending)
    return latest(records)


def _prepare(
    author: Author,
    request: GenerateRequest,
    workers: int,
    on_authoring: Callable[[Any], None] | None,
) -> dict[str, Any]:
    """Lets an author that makes many drafts at once do so; returns what it spent, for the summary."""
    if not isinstance(author, PreparingAuthor):
        return {}
    with open_backend(request.sandbox, workers=workers) as sandbox:
        author.bind(sandbox)
        author.prepare(proposals_of(request), on_authoring)
    return {"authoring": author.spending()}


@dataclass(frozen=True)
class _DiskFault:
    """The disk refused: a reason to stop the run, not to lose the proposal."""

    message: str


@dataclass(frozen=True)
class _Bench:
    """What a worker holds: the author, a sandbox, and the place for its bundles."""

    author: Author
    sandbox: MeteredSandbox
    request: GenerateRequest
    out: Path
    staging: Path


@dataclass(frozen=True)
class _Workshop:
    """Opens a worker's bench."""

    request: GenerateRequest
    out: Path
    staging: Path
    author: AuthorFactory

    @contextmanager
    def __call__(self) -> Iterator[_Bench]:
        """Opens author and sandbox, and closes the sandbox.

        Raises:
            ConfigError: This machine does not see the folder of the run.
        """
        if not (self.out / CONFIG_FILE).is_file():
            raise ConfigError(f"{platform.node()} does not see {self.out}; give a folder that all machines share")
        author = self.author()
        with open_backend(self.request.sandbox, workers=1) as sandbox:
            if isinstance(author, PreparingAuthor):
                author.bind(sandbox)
            yield _Bench(author, MeteredSandbox(sandbox), self.request, self.out, self.staging)


def _make(bench: _Bench, proposal: Proposal) -> ProposalRecord | _DiskFault:
    start_wall_s, start_cpu_s = time.monotonic(), time.process_time()
    before_wall_s, before_cpu_s = bench.sandbox.wall_s, bench.sandbox.cpu_s
    record = _author_and_judge(bench, proposal)
    if isinstance(record, _DiskFault):
        return record
    solver_cpu_s = bench.sandbox.cpu_s - before_cpu_s
    return record.replace(
        wall_s=round(time.monotonic() - start_wall_s, 3),
        cpu_s=round(time.process_time() - start_cpu_s + solver_cpu_s, 3),
        solver_wall_s=round(bench.sandbox.wall_s - before_wall_s, 3),
        solver_cpu_s=round(solver_cpu_s, 3),
    )


def _author_and_judge(bench: _Bench, proposal: Proposal) -> ProposalRecord | _DiskFault:
    seed = load_seed(proposal.seed_id)
    staging = bench.staging / str(proposal.index)
    try:
        draft = bench.author.propose(seed, proposal.rng_seed)
        bundle = write_bundle(draft, staging)
    except AuthoringError as error:
        return _lost(proposal, Stage.PROPOSED, error.lost_to, str(error))
    except (PolicyError, SandboxError) as error:
        return _lost(proposal, Stage.PROPOSED, "machinery", str(error), is_fault=True)
    except BundleError as error:
        if isinstance(error.__cause__, OSError):
            return _DiskFault(str(error))
        return _lost(proposal, Stage.PROPOSED, "author", str(error))
    except Exception as error:  # an author's bug costs one proposal
        return _lost(proposal, Stage.PROPOSED, "author", f"{type(error).__name__}: {error}")
    report = run_gate(
        bundle,
        sandbox=bench.sandbox,
        regenerate=lambda: bench.author.regenerate(seed, proposal.rng_seed),
        preset=bench.request.preset,
    )
    record = _judged(proposal, bundle, report)
    try:
        if record.accepted:
            bundle.save_gate_report(report)
            record = _publish(record, bundle, bench.out / TASKS_DIR)
        shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        return _DiskFault(f"cannot write task {bundle.task_id} to {bench.out}: {error.strerror}")
    return record


def _judged(proposal: Proposal, bundle: Bundle, report: GateReport) -> ProposalRecord:
    losses = report.losses()
    passed_early = not any(loss.check in _EVALUATOR_CHECKS for loss in losses)
    stage = Stage.EVALUATOR_RAN if passed_early else Stage.DATA_RAN
    first = next((loss for loss in losses if loss.verdict is report.verdict), None)
    return ProposalRecord(
        proposal=proposal,
        stage=Stage.GATE_PASSED if report.verdict is Verdict.VALID else stage,
        task_id=bundle.task_id,
        task_hash=bundle.spec.task_hash,
        metric=bundle.spec.metric,
        modality=bundle.spec.modalities[0].value,
        lost_to=first.check if first else "",
        reason=first.message if first else "",
        is_fault=report.verdict in (Verdict.ERROR, Verdict.TIMEOUT),
    )


def _publish(record: ProposalRecord, bundle: Bundle, tasks: Path) -> ProposalRecord:
    """Moves a bundle into the task set in one step."""
    tasks.mkdir(exist_ok=True)
    target = tasks / bundle.task_id
    try:
        bundle.root.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        # The run was killed between the move and its line in the funnel, or two proposals have one id.
        if load_bundle(target, verify=False).spec.task_hash != bundle.spec.task_hash:
            reason = f"another task of this set has the id {bundle.task_id}"
            return record.replace(stage=Stage.EVALUATOR_RAN, lost_to="task_id", reason=reason)
    return record


def _lost(proposal: Proposal, stage: Stage, lost_to: str, reason: str, *, is_fault: bool = False) -> ProposalRecord:
    return ProposalRecord(proposal=proposal, stage=stage, lost_to=lost_to, reason=reason, is_fault=is_fault)


def _read_record(line: dict[str, object], path: Path) -> ProposalRecord:
    try:
        return ProposalRecord.model_validate(line)
    except ValidationError as error:
        raise ConfigError(f"{path / FUNNEL_FILE} holds a line that this release does not read; remove it") from error
