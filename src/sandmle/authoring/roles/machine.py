"""One task from seed to draft: a chain of steps, each done by a role, run by us, and saved.

    spec -> script -> evaluator -> run (ladder, thresholds) -> description -> gate

A step's failure goes back to the role it belongs to, a bounded number of times. What a role said is in the journal, so
a task that is taken up again runs through the same steps without asking anybody twice.
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from sandmle.authoring.randomness import digest_of, rng_for
from sandmle.authoring.roles import reading
from sandmle.authoring.roles.assembly import Work, assemble
from sandmle.authoring.roles.conversation import Conversation, Line
from sandmle.authoring.roles.draws import Draw
from sandmle.authoring.roles.evaluators import choose
from sandmle.authoring.roles.facts import fitting_metrics, public_facts, shape_of
from sandmle.authoring.roles.ladders import climb, thresholds_of
from sandmle.authoring.roles.outputs import (
    DATA_SCRIPT,
    Review,
    Scripts,
    TaskIdea,
    baseline_file,
)
from sandmle.authoring.roles.publish import N_PUBLIC, arrange, data_files
from sandmle.authoring.roles.reading import Complaint
from sandmle.authoring.roles.scoring import Scoring, best_constant
from sandmle.authoring.roles.workbench import DrawRequest, run_data_script
from sandmle.errors import BundleError, ConfigError
from sandmle.gate import run_gate
from sandmle.gate.checks import STANDARD_CHECKS
from sandmle.records import CheckResult, SeedRecord, ThresholdPreset, Verdict
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.bundle import BundleDraft, write_bundle

VERSION = "1"
N_CALIBRATION = 3000
STEPS = ("spec", "script", "evaluator", "run", "description", "gate", "done")
_WRITERS_CHECKS = frozenset({"description_consistent", "rule_revealed"})
_EARLY_CHECKS = tuple(check for check in STANDARD_CHECKS if not check.needs - {"calibrated"})
Done = TypeVar("Done")


def draw_requests(seed_id: str, rng_seed: int, idea: TaskIdea) -> list[DrawRequest]:
    """Returns the calls of the data script: the task's own rows, and a calibration draw that nobody is graded on."""
    n_test = N_PUBLIC + idea.n_private
    return [
        DrawRequest(name, _small_seed(seed_id, rng_seed, name), idea.n_train, n)
        for name, n in (("task", n_test), ("calibration", N_CALIBRATION))
    ]


def _small_seed(*parts: str | int) -> int:
    return int.from_bytes(digest_of("roles", VERSION, *parts)[:4], "big")


@dataclass
class TaskMachine:
    """Makes one task.

    Attributes:
        seed: The seed.
        rng_seed: Where the rows' random numbers come from; no role is told.
        line: The line to the model.
        sandbox: Where scripts run.
        preset: How thresholds are set.
        repairs: Replies of one role that may be sent back.
        taken: Domains that the strategist is asked to keep away from.
        folder: Where the steps' work is saved for people to read.
        on_step: Told the name of each step that begins.
    """

    seed: SeedRecord
    rng_seed: int
    line: Line
    sandbox: Sandbox
    preset: ThresholdPreset
    repairs: int
    taken: tuple[str, ...]
    folder: Path
    on_step: Callable[[str], None] = field(default=lambda step: None)

    async def run(self) -> BundleDraft:
        """Returns the draft.

        Raises:
            AuthoringError: A role could not do its work within its repairs.
            BudgetSpentError, PolicyError, SandboxError: Not the task's fault; what was paid for is in the journal.
        """
        idea = await self._spec()
        developer, scripts, draws = await self._script(idea)
        scoring = await self._evaluator(idea, draws["task"])
        writer: Conversation | None = None
        while True:
            work, scripts, draws = await self._ladder(idea, developer, scripts, draws, scoring)
            draft: BundleDraft | None = None
            complaint: CheckResult | None = None
            while draft is None:
                writer, description = await self._description(work, writer)
                draft = assemble(self.seed, self.rng_seed, work, description)
                complaint = await self._gate(draft)
                if complaint is not None and complaint.check in _WRITERS_CHECKS:
                    writer.send_back(_as_complaint(complaint))
                    draft = None
            if complaint is None:
                self.on_step("done")
                return draft
            developer.send_back(_as_complaint(complaint))
            scripts, draws = await self._mended(idea, developer, scripts)
            writer = None

    async def _spec(self) -> TaskIdea:
        self.on_step("spec")
        facts = {**shape_of(self.seed), "taken": self.taken}
        conversation = Conversation.open(self.line, "strategist", self.repairs, **facts)

        async def judge(text: str) -> TaskIdea:
            idea = reading.read_json(text, TaskIdea)
            wanted = self.seed.dna.prediction_kind
            if idea.target.kind is not wanted:
                raise Complaint("invalid_reply", f"the target's kind is {idea.target.kind.value}, not {wanted.value}")
            return idea

        idea = await conversation.until(judge)
        self._save("spec.json", idea.model_dump_json(indent=2) + "\n")
        return idea

    async def _script(self, idea: TaskIdea) -> tuple[Conversation, Scripts, dict[str, Draw]]:
        self.on_step("script")
        conversation = Conversation.open(
            self.line, "developer", self.repairs, idea=idea, baseline_file=baseline_file, n_public=N_PUBLIC
        )
        scripts, draws = await self._mended(idea, conversation, Scripts(files={}))
        return conversation, scripts, draws

    async def _mended(
        self, idea: TaskIdea, developer: Conversation, before: Scripts
    ) -> tuple[Scripts, dict[str, Draw]]:
        """Hears the developer until all scripts are there and the data is what the idea says."""
        held = dict(before.files)

        async def judge(text: str) -> tuple[Scripts, dict[str, Draw]]:
            held.update(reading.read_scripts(text).files)
            wanted = [DATA_SCRIPT, *(baseline_file(baseline.name) for baseline in idea.baselines)]
            missing = [name for name in wanted if name not in held]
            if missing:
                raise Complaint("invalid_reply", f"the file {missing[0]} is missing")
            scripts = Scripts(files={name: held[name] for name in wanted})
            for name, source in scripts.files.items():
                self._save(name, source)
            requests = draw_requests(self.seed.id, self.rng_seed, idea)
            draws = await _aside(run_data_script, self.sandbox, scripts.files[DATA_SCRIPT], idea, requests)
            return scripts, draws

        return await developer.until(judge)

    async def _evaluator(self, idea: TaskIdea, draw: Draw) -> Scoring:
        self.on_step("evaluator")
        conversation = Conversation.open(
            self.line, "mlops", self.repairs, idea=idea, dna=self.seed.dna, metrics=fitting_metrics(idea)
        )

        async def judge(text: str) -> Scoring:
            choice = reading.read_scoring(text)
            return await _aside(choose, choice, idea, self.seed.dna.direction, draw, self.sandbox)

        scoring = await conversation.until(judge)
        self._save("scoring.json", scoring.rule(idea).model_dump_json(indent=2) + "\n")
        return scoring

    async def _ladder(
        self,
        idea: TaskIdea,
        developer: Conversation,
        scripts: Scripts,
        draws: dict[str, Draw],
        scoring: Scoring,
    ) -> tuple[Work, Scripts, dict[str, Draw]]:
        """Runs the baselines until their scores give thresholds; what is wrong goes to the developer."""
        while True:
            self.on_step("run")
            try:
                work = await _aside(self._work, idea, scripts, draws, scoring)
            except Complaint as complaint:
                developer.send_back(complaint)
                scripts, draws = await self._mended(idea, developer, scripts)
                continue
            self._save("ladder.json", work.ladder.model_dump_json(indent=2) + "\n")
            return work, scripts, draws

    def _work(self, idea: TaskIdea, scripts: Scripts, draws: dict[str, Draw], scoring: Scoring) -> Work:
        draw = draws["task"]
        try:
            sample = best_constant(idea, scoring, draw.train)
            ladder = climb(idea, scripts, draws, scoring, sample, self.sandbox)
        except (BundleError, ConfigError) as error:
            raise Complaint("data_script", f"the answers cannot be read: {error}") from error
        thresholds = thresholds_of(ladder, self.preset)
        rng = rng_for("roles", VERSION, "order", self.seed.id, self.rng_seed)
        order = arrange(idea.n_train, N_PUBLIC + idea.n_private, N_PUBLIC, self.seed.dna.n_id_parts, rng)
        files = data_files(idea, draw, order, sample)
        return Work(idea, scripts, scoring, ladder, thresholds, files, public_facts(idea, draw, scoring, files))

    async def _description(self, work: Work, writer: Conversation | None) -> tuple[Conversation, str]:
        self.on_step("description")
        if writer is None:
            writer = Conversation.open(self.line, "writer", self.repairs, facts=work.facts)

        async def judge(text: str) -> str:
            description = reading.read_markdown(text)
            review = await self._review(work, description)
            if not review.approve:
                raise Complaint(
                    "review", f"the reviewer says: {review.problems[0]}", "\n- ".join(["Problems:", *review.problems])
                )
            return description

        description = await writer.until(judge)
        self._save("description.md", description)
        return writer, description

    async def _review(self, work: Work, description: str) -> Review:
        conversation = Conversation.open(self.line, "reviewer", self.repairs, facts=work.facts, description=description)

        async def judge(text: str) -> Review:
            return reading.read_json(text, Review)

        return await conversation.until(judge)

    async def _gate(self, draft: BundleDraft) -> CheckResult | None:
        """Returns the first check that a draft does not pass; the gate itself asks all of them again later."""
        self.on_step("gate")
        return await _aside(first_loss, draft, self.preset)

    def _save(self, name: str, text: str) -> None:
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except OSError as error:
            raise ConfigError(f"cannot write to {path}: {error.strerror}") from error


def first_loss(draft: BundleDraft, preset: ThresholdPreset) -> CheckResult | None:
    """Returns the first check that a draft does not pass, of those that run no agent's code."""
    with tempfile.TemporaryDirectory(prefix="sandmle-draft-") as folder:
        report = run_gate(write_bundle(draft, Path(folder)), checks=_EARLY_CHECKS, preset=preset)
    return next((loss for loss in report.losses() if loss.verdict is Verdict.INVALID), None)


def _as_complaint(loss: CheckResult) -> Complaint:
    return Complaint(loss.check, loss.message, f"The gate's check {loss.check!r} refuses the task: {loss.message}")


async def _aside(function: Callable[..., Done], *arguments: object) -> Done:
    """Runs what takes long in a thread, so that other tasks go on."""
    return await asyncio.to_thread(function, *arguments)


__all__ = ["STEPS", "VERSION", "TaskMachine", "draw_requests", "first_loss"]
