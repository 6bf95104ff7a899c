"""``LLMAuthor``: makes tasks with any model. It judges nothing itself: the gate does, as for every author."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from sandmle.authoring.funnel import Proposal
from sandmle.authoring.roles.again import PLAN_FILE, SCRIPT_FILE, data_again
from sandmle.authoring.roles.assembly import AUTHOR, AUTHOR_VERSION
from sandmle.authoring.roles.conversation import Line
from sandmle.authoring.roles.journal import Journal, RecordingHead, copy_recording, file_name
from sandmle.authoring.roles.ledger import BudgetSpentError, Ledger
from sandmle.authoring.roles.machine import TaskMachine
from sandmle.authoring.roles.models import list_prices, open_model
from sandmle.authoring.roles.options import LLMOptions, SpendLimits
from sandmle.authoring.roles.outcomes import (
    OnProgress,
    Outcome,
    Progress,
    load_draft,
    read_outcome,
    read_stop,
    save_draft,
    save_outcome,
    save_stop,
)
from sandmle.authoring.roles.talking import OpenModel, Responder, UnusableModelError
from sandmle.errors import AuthoringError, ConfigError, PolicyError, SandboxError, SandmleError
from sandmle.records import SeedRecord, ThresholdPreset
from sandmle.sandbox.base import Sandbox
from sandmle.seeds import load_seed
from sandmle.tasks.bundle import BundleDraft

WORK_DIR = "authoring"
"""Where a run keeps conversations and the steps of its tasks."""
_JOURNAL = "conversation.jsonl"
_MOST_TAKEN = 30
_DISK_THREADS = 8


class LLMAuthor:
    """Tasks by four roles of a model: strategist, developer, MLOps engineer, writer.

    Every reply is on disk before it is used, so nothing is paid for twice: not after ``kill -9``, not in a replay.

    Attributes:
        name: Name in the provenance.
        version: Changes whenever the same replies would give other bytes.
    """

    name = AUTHOR
    version = AUTHOR_VERSION

    def __init__(
        self,
        folder: Path,
        options: LLMOptions | None = None,
        *,
        limits: SpendLimits | None = None,
        preset: ThresholdPreset = "calibrated",
        replay: Path | None = None,
        record: Path | None = None,
        responder: Responder | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            folder: Where conversations and steps are kept, one folder a task.
            options: The model and its settings.
            limits: What may be asked at once and in all.
            preset: How thresholds come from the ladder.
            replay: Folder of recordings to answer from; nobody is asked then.
            record: Folder that gets a recording of every finished task.
            responder: What answers instead of a model behind an endpoint; for tests and own clients.
        """
        self.preset: ThresholdPreset = preset
        self._folder = folder
        self._options = options or LLMOptions()
        self._limits = limits or SpendLimits()
        self._replay, self._record, self._responder = replay, record, responder
        self._sandbox: Sandbox | None = None
        self._taken: list[str] = []
        self._ledger = Ledger(self._limits, None)
        self._stopped = ""

    def bind(self, sandbox: Sandbox) -> None:
        """Gives the author the sandbox that scripts run in."""
        self._sandbox = sandbox

    def check(self) -> None:
        """Sees that the model can be opened, before anything is written.

        Raises:
            ConfigError: No key, no such provider, no price where one is needed.
        """
        self._open()

    def propose(self, seed: SeedRecord, rng_seed: int) -> BundleDraft:
        """Returns the draft that ``prepare`` made. It asks nobody: what a run may spend is decided there.

        Raises:
            AuthoringError: The roles could not do it; one sentence says why.
            PolicyError: The task was not prepared to its end: budget, model or sandbox; it can be taken up again.
        """
        folder = self._folder_of(seed.id, rng_seed)
        outcome = read_outcome(folder)
        if outcome is None:
            raise PolicyError(read_stop(self._folder) or "the task was not prepared to its end; prepare it again")
        if outcome.status == "refused":
            raise AuthoringError(outcome.reason, lost_to=outcome.lost_to)
        return load_draft(folder, outcome.task_id)

    def regenerate(self, seed: SeedRecord, rng_seed: int) -> Mapping[str, bytes]:
        """Returns the data files of a drafted task again, by running its data script once more.

        Raises:
            AuthoringError: There is no draft, or the script no longer does what it did.
        """
        if self._sandbox is None:
            raise AuthoringError("data scripts run in a sandbox; bind one first")
        files = self.propose(seed, rng_seed).files
        return data_again(seed, rng_seed, files[PLAN_FILE], files[SCRIPT_FILE], self._sandbox)

    def prepare(self, proposals: Sequence[Proposal], on_progress: OnProgress | None = None) -> None:
        """Authors many tasks at once. What it cannot end stays where it is and goes on in the next call.

        Args:
            proposals: The tasks; those with an outcome are left alone.
            on_progress: Told after every step of every task.

        Raises:
            ConfigError: The model, or the folder for recordings, cannot be used at all.
        """
        if self._record is not None:  # found out before anything is paid for
            try:
                self._record.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(
                    f"cannot record into {self._record}: {error.strerror}; name a new folder with --record"
                ) from error
        responder, prices = self._open()
        self._ledger = Ledger(self._limits, prices)
        waiting = []
        for proposal in proposals:
            if read_outcome(self._folder_of(proposal.seed_id, proposal.rng_seed)) is None:
                waiting.append(proposal)
            else:
                self._journal(proposal)
        if not waiting:
            return
        if self._sandbox is None:
            raise ConfigError("scripts of models run in a sandbox; bind one first")
        self._stopped = ""
        try:
            with threadpool_limits(1):
                asyncio.run(self._prepare(waiting, responder, on_progress or (lambda progress: None)))
        finally:
            save_stop(self._folder, self._stopped)

    def spending(self) -> dict[str, Any]:
        """Returns what the model's replies took, as plain JSON types."""
        ledger = self._ledger
        return {
            "model": self._options.model,
            "n_replies": ledger.n_replies,
            "n_repairs": ledger.n_repairs,
            "prompt_tokens": ledger.prompt_tokens,
            "completion_tokens": ledger.completion_tokens,
            "cost_usd": round(ledger.cost_usd, 6) if ledger.is_priced else None,
            "stopped": self._stopped or None,
        }

    def _folder_of(self, seed_id: str, rng_seed: int) -> Path:
        return self._folder / f"{seed_id}--{rng_seed}"

    def _open(self) -> tuple[Responder | None, tuple[float, float] | None]:
        if self._replay is not None:
            return None, None
        if self._responder is not None:
            return self._responder, list_prices(self._options, self._limits)
        model = open_model(self._options, self._limits)
        return model, list_prices(self._options, self._limits)

    async def _prepare(
        self, proposals: Sequence[Proposal], responder: Responder | None, on_progress: OnProgress
    ) -> None:
        ledger = self._ledger
        journals = [self._journal(proposal) for proposal in proposals]
        disk = ThreadPoolExecutor(_DISK_THREADS, "sandmle-journal")
        slots, places = asyncio.Semaphore(self._limits.requests), asyncio.Semaphore(self._limits.tasks)
        progress = Progress(n_total=len(proposals))

        def tell() -> None:
            progress.n_repairs, progress.total_tokens = ledger.n_repairs, ledger.total_tokens
            progress.cost_usd = ledger.cost_usd
            on_progress(progress)

        async def one(proposal: Proposal, journal: Journal) -> None:
            async with places:
                if self._stopped:
                    return
                line = Line(journal, responder, ledger, slots, disk, self._options.max_tokens)
                outcome = await self._author(proposal, line, progress, tell)
                if outcome is not None:
                    progress.n_drafted += outcome.status == "drafted"
                    progress.n_refused += outcome.status == "refused"
                    if self._record is not None and line.journal.lines:
                        copy_recording(line.journal.path, self._record, file_name(proposal.seed_id, proposal.k))
                tell()

        try:
            async with AsyncExitStack() as opened, asyncio.TaskGroup() as group:
                opened.enter_context(disk)
                if isinstance(responder, OpenModel):
                    await opened.enter_async_context(responder)
                for proposal, journal in zip(proposals, journals, strict=True):
                    group.create_task(one(proposal, journal))
        except* SandmleError as errors:
            raise _first(errors) from errors

    def _journal(self, proposal: Proposal) -> Journal:
        """Opens a task's conversation, in a replay the recording's, and books what it took."""
        path = self._folder_of(proposal.seed_id, proposal.rng_seed) / _JOURNAL
        if self._replay is not None:
            recording = self._replay / file_name(proposal.seed_id, proposal.k)
            if recording.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(recording, path)
        head = RecordingHead(seed_id=proposal.seed_id, k=proposal.k, model=self._options.model)
        journal = Journal(path, head)
        for line in journal.lines:
            self._ledger.add(line)
        return journal

    async def _author(self, proposal: Proposal, line: Line, progress: Progress, tell: Any) -> Outcome | None:
        """Returns the outcome, which is on disk; None when the task was interrupted."""
        folder = self._folder_of(proposal.seed_id, proposal.rng_seed)
        steps: list[str] = []

        def on_step(step: str) -> None:
            for name, change in ((steps[-1] if steps else "", -1), (step, 1)):
                if name:
                    progress.at_step[name] = progress.at_step.get(name, 0) + change
            steps.append(step)
            tell()

        assert self._sandbox is not None  # prepare has looked
        machine = TaskMachine(
            seed=load_seed(proposal.seed_id),
            rng_seed=proposal.rng_seed,
            line=line,
            sandbox=self._sandbox,
            preset=self.preset,
            repairs=self._options.max_repairs,
            taken=tuple(self._taken[-_MOST_TAKEN:]),
            folder=folder,
            on_step=on_step,
        )
        try:
            if self._replay is not None and not line.journal.lines:
                raise AuthoringError(
                    f"there is no recording {file_name(proposal.seed_id, proposal.k)} in {self._replay}",
                    lost_to="no_recording",
                )
            draft = await machine.run()
        except AuthoringError as error:
            return save_outcome(folder, Outcome(status="refused", lost_to=error.lost_to, reason=str(error)))
        except UnusableModelError:
            raise
        except (BudgetSpentError, PolicyError, SandboxError) as error:
            self._stopped = self._stopped or str(error)
            return None
        except ConfigError:
            raise  # the disk refuses
        except Exception as error:  # a bug of ours costs one task, as with every author
            return save_outcome(folder, Outcome(status="refused", lost_to="author", reason=_in_one_line(error)))
        finally:
            if steps:
                progress.at_step[steps[-1]] -= 1
        self._taken.append(draft.spec.domain)
        return save_draft(folder, draft)


def _in_one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _first(errors: BaseExceptionGroup[SandmleError]) -> SandmleError:
    """Returns one error of a group: all tasks met the same one."""
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
