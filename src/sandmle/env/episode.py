"""``Episode``: one task, one workspace, one agent; replies in, observations out, and at the end a grade and a reward.

Asynchronous at the core, since one process drives many episodes; :class:`sandmle.env.sync.SyncEpisode` is the plain
face. The episode never raises for anything that the agent, the sandbox or the grader does: it ends with a status.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandmle.env.config import EpisodeConfig
from sandmle.env.feedback import Feedback, ScoreAnswer, SubmissionGrader, SubmissionView
from sandmle.env.prompting import observation_text, opening_messages, run_text
from sandmle.env.results import EpisodeResult, StepResult, Trial, exec_fields
from sandmle.env.rewards import episode_reward, reward_terms
from sandmle.env.workspace import Workspace
from sandmle.errors import ConfigError, SandmleError
from sandmle.grammars import Action, Grammar, ParsedReply, get_grammar
from sandmle.grammars.scan import clean_text
from sandmle.records import (
    ActionKind,
    Completion,
    ExecResult,
    Failure,
    GradeReport,
    Limits,
    Message,
    ReplyStatus,
    StepRecord,
    TrajectoryStatus,
)
from sandmle.sandbox.base import ExecRequest, Sandbox
from sandmle.tasks import Bundle

SUBMISSION_FILE = "submission.csv"
_MIN_RUN_S = 0.5


@dataclass(frozen=True)
class _Outcome:
    """What an action led to: the words for the agent, and the fields of the step that it fills."""

    text: str
    changes: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Progress:
    """All that changes while an episode runs."""

    workspace: Workspace | None = None
    steps: list[StepRecord] = field(default_factory=list)
    submission: SubmissionView = field(default_factory=SubmissionView)
    n_feedback: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    started_s: float = 0.0
    queued_s: float = 0.0
    status: TrajectoryStatus | None = None
    failure: Failure | None = None
    result: EpisodeResult | None = None


class Episode:
    """One run of an agent on a task. Call ``reset``, ``step`` until it is over, ``grade``, ``aclose``."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        sandbox: Sandbox,
        grader: SubmissionGrader,
        config: EpisodeConfig | None = None,
        rng_seed: int = 0,
        slots: asyncio.Semaphore | None = None,
        journal: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares an episode; nothing happens before ``reset``.

        Args:
            bundle: The task.
            sandbox: Where code runs; the caller starts and closes it.
            grader: The task's grader.
            config: The rules.
            rng_seed: Seeds the executions.
            slots: Held during an execution, so that a driver can bound the threads that wait for the sandbox.
            journal: File in which a scaffold may keep what was done, to go on from it after a kill; None for nowhere.
            clock: Seconds from any start, for the limits.

        Raises:
            ConfigError: The grammar is unknown.
        """
        self.bundle = bundle
        self.config = config or EpisodeConfig()
        self.grammar: Grammar = get_grammar(self.config.grammar)
        self.rng_seed = rng_seed
        self.journal = journal
        self._sandbox = sandbox
        self._feedback = Feedback(grader, self.config)
        self._slots = slots
        self._clock = clock
        self._now = _Progress()

    @property
    def steps(self) -> tuple[StepRecord, ...]:
        """All steps so far."""
        return tuple(self._now.steps)

    @property
    def status(self) -> TrajectoryStatus | None:
        """How the episode ended; None while it goes on."""
        return self._now.status

    def time_left_s(self) -> float:
        """Returns the seconds left for replies and executions.

        Waiting for a sandbox is not counted, nor is what a call lost to a server (``Usage.lost_s``).
        """
        used_s = self._clock() - self._now.started_s - self._now.queued_s
        return max(0.0, self.config.episode_s - used_s)

    def turn_tokens(self) -> int | None:
        """Returns how many tokens the next reply may have; None for no limit."""
        total = self.config.max_trajectory_tokens
        left = None if total is None else max(1, total - self._now.tokens)
        limits = [limit for limit in (self.config.max_turn_tokens, left) if limit is not None]
        return min(limits) if limits else None

    async def reset(self) -> tuple[Message, ...]:
        """Starts the episode anew in an empty workspace and returns its first messages.

        Raises:
            BundleError: The task cannot be read.
            SandboxError: There is no place for a workspace.
        """
        await self.aclose()
        messages = opening_messages(
            self.config, self.grammar, self.bundle.description(), self.bundle.public_paths(), self.bundle.spec.limits
        )
        self._now = _Progress(workspace=Workspace(), started_s=self._clock())
        return messages

    async def step(self, completion: Completion, *, model_s: float = 0.0) -> StepResult:
        """Carries out the one action of a reply.

        Args:
            completion: The reply.
            model_s: Seconds that the model took, for the record.

        Raises:
            ConfigError: The episode is not running.
        """
        now = self._now
        self._check_running()
        self._charge(completion)
        parsed = self.grammar.parse(completion.text, completion.finish_reason)
        record = StepRecord(
            index=len(now.steps),
            reply=parsed.kept,
            reasoning=clean_text(completion.reasoning),
            reply_status=parsed.status,
            in_form=parsed.in_form or self._is_form_with_reasoning(completion),
            action=parsed.action.kind if parsed.action else None,
            code=parsed.action.code if parsed.action and parsed.action.kind is ActionKind.RUN else None,
            model_s=max(0.0, model_s),
            notes=parsed.notes,
        )
        if parsed.action is None:
            outcome = _Outcome(_explain(parsed))
        else:
            outcome = await self._carry_out(parsed.action)
        now.steps.append(record.replace(**outcome.changes))
        self._check_budget()
        self._check_turns()
        status = self.status
        turns_left = None if status is not None else self.config.max_turns - len(now.steps)
        text = observation_text(outcome.text, parsed.notes, turns_left)
        now.steps[-1] = now.steps[-1].replace(observation=text)
        ended = status is TrajectoryStatus.SUBMITTED
        return StepResult(
            observation=self.grammar.observation(text),
            terminated=ended,
            truncated=status is not None and not ended,
            status=status,
            record=now.steps[-1],
        )

    async def try_script(self, code: str) -> Trial:
        """Runs a script in an empty folder of its own, for scaffolds that compare scripts.

        The episode's workspace and the submission that counts stay as they are; see :meth:`choose`.

        Raises:
            ConfigError: The episode is not running.
        """
        self._check_running()
        workspace = await asyncio.to_thread(Workspace)
        try:
            outcome, result = await self._run_in(workspace, code)
        finally:
            await asyncio.shield(asyncio.to_thread(workspace.remove))
        if result is None:
            return Trial(None, None, outcome.text, outcome.text)
        view = SubmissionView().after(result, SUBMISSION_FILE)
        problem = await self._feedback.problem(view)
        words = "submission.csv is there and has the right form." if not problem else problem
        text = run_text(result, words, self.config.observation_chars)
        return Trial(result, view.data, problem, text)

    async def show_score(self, submission: bytes | None) -> ScoreAnswer:
        """Answers a request for the score of a submission, as far as the feedback of this episode allows."""
        view = SubmissionView(submission, is_there=submission is not None)
        answer = await self._feedback.show_score(view, self.config.max_feedback - self._now.n_feedback)
        self._now.n_feedback += answer.was_shown
        return answer

    def choose(self, submission: bytes) -> None:
        """Makes a submission the one that is graded, until another one is chosen."""
        self._now.submission = SubmissionView(submission, is_there=True)

    def log(self, record: StepRecord, completion: Completion | None = None) -> StepRecord:
        """Keeps a step that a scaffold carried out itself and ends the episode when time, tokens or money are over.

        Args:
            record: The step; it gets the next index.
            completion: The reply, whose tokens and cost are charged.
        """
        now = self._now
        if completion is not None:
            self._charge(completion)
        now.steps.append(record.replace(index=len(now.steps)))
        self._check_budget()
        return now.steps[-1]

    def restore(self, steps: Iterable[StepRecord], *, used_s: float, tokens: int, cost_usd: float) -> None:
        """Puts an episode that has just been reset where an earlier process left it."""
        now = self._now
        now.steps.extend(steps)
        now.n_feedback = sum(step.feedback_score is not None for step in now.steps)
        now.tokens, now.cost_usd = tokens, cost_usd
        now.started_s -= used_s

    def spent(self) -> tuple[float, int, float]:
        """Returns seconds, tokens and dollars that the episode has used, as :meth:`restore` takes them."""
        return self.config.episode_s - self.time_left_s(), self._now.tokens, self._now.cost_usd

    def end(self, status: TrajectoryStatus, failure: Failure | None = None) -> None:
        """Ends a running episode for a reason that only its driver knows: the policy failed, the context is full.

        An episode that is over keeps its status.
        """
        if self._now.status is None:
            self._now.status, self._now.failure = status, failure

    async def grade(self) -> EpisodeResult:
        """Grades the last submission.csv on the private rows; the same result however often it is called.

        An episode that is still running is ended as ``submitted``. Never raises.
        """
        now = self._now
        self.end(TrajectoryStatus.SUBMITTED)
        if now.result is None:
            report, failure = await self._feedback.final_grade(now.submission.data)
            now.result = self._result(report, failure)
        return now.result

    async def aclose(self) -> None:
        """Removes the workspace, also when it is cancelled meanwhile. Idempotent."""
        workspace, self._now.workspace = self._now.workspace, None
        if workspace is not None:
            removal = asyncio.ensure_future(asyncio.to_thread(workspace.remove))
            try:
                await asyncio.shield(removal)
            except asyncio.CancelledError:
                await removal
                raise

    def _result(self, report: GradeReport | None, failure: Failure | None) -> EpisodeResult:
        now = self._now
        status, failures = now.status or TrajectoryStatus.SUBMITTED, [now.failure, failure]
        if failure is not None and not status.is_infrastructure:
            status = TrajectoryStatus.TASK_ERROR if failure.boundary == "task" else TrajectoryStatus.GRADER_ERROR
        terms = reward_terms(now.steps, report)
        return EpisodeResult(
            grade=report,
            reward=episode_reward(terms, self.config.reward, status),
            terms=terms,
            status=status,
            failure=next((each for each in failures if each is not None), None),
        )

    def _is_form_with_reasoning(self, completion: Completion) -> bool:
        """Counts thinking that the server returned apart as the thinking that the form asks for."""
        thought = clean_text(completion.reasoning).replace("<", "(").strip()
        if not thought:
            return False
        return self.grammar.parse(f"<think>\n{thought}\n</think>\n{completion.text}", completion.finish_reason).in_form

    async def _carry_out(self, action: Action) -> _Outcome:
        now = self._now
        if action.kind is ActionKind.RUN:
            return await self._run(action.code)
        has_submission: dict[str, Any] = {"has_submission": now.submission.is_there}
        if action.kind is ActionKind.FINISH:
            now.status = TrajectoryStatus.SUBMITTED
            return _Outcome("The submission was handed in.", has_submission)
        answer = await self._feedback.show_score(now.submission, self.config.max_feedback - now.n_feedback)
        now.n_feedback += answer.was_shown
        return _Outcome(answer.text, {**has_submission, "feedback_score": answer.score})

    async def _run(self, code: str) -> _Outcome:
        now = self._now
        outcome, result = await self._run_in(now.workspace, code)
        if result is None:
            return outcome
        now.submission = now.submission.after(result, SUBMISSION_FILE)
        submission = await self._feedback.describe(now.submission)
        text = run_text(result, submission, self.config.observation_chars)
        return _Outcome(text, exec_fields(result, has_submission=now.submission.is_there))

    async def _run_in(self, workspace: Workspace | None, code: str) -> tuple[_Outcome, ExecResult | None]:
        """Runs code in a folder; without a result, the outcome says why, and the episode may have ended."""
        try:
            result = await self._execute(workspace, code)
        except ConfigError as error:
            return self._refused(error, workspace), None
        except SandmleError as error:
            return self._sandbox_failed(str(error)), None
        except Exception as error:  # a bug in a backend must not cost the other episodes
            return self._sandbox_failed(f"{type(error).__name__}: {error}"), None
        if result is None:
            self._now.status = TrajectoryStatus.TIME_BUDGET
            return _Outcome("The time for this episode is over; the script was not run."), None
        return _Outcome(""), result

    async def _execute(self, workspace: Workspace | None, code: str) -> ExecResult | None:
        """Runs code within the time that is left; None when there is none."""
        now, limits = self._now, self.bundle.spec.limits
        waited_from_s = self._clock()
        async with self._slots or asyncio.Semaphore():
            now.queued_s += self._clock() - waited_from_s
            wall_s = min(self.config.step_wall_s, limits.step_wall_s, self.time_left_s())
            if wall_s < _MIN_RUN_S or workspace is None:
                return None
            request = ExecRequest(
                code=code,
                workspace=workspace.path,
                inputs=self.bundle.public_dir,
                limits=Limits(wall_s=wall_s, memory_mb=limits.memory_mb),
                rng_seed=self.rng_seed,
                collect=(SUBMISSION_FILE,),
            )
            return await asyncio.to_thread(self._sandbox.execute, request)

    def _refused(self, error: ConfigError, workspace: Workspace | None) -> _Outcome:
        """Tells the agent that its files keep the sandbox from running more; without files of its own it is our fault.

        An agent must not be able to end an episode without a reward by what it leaves in its workspace.
        """
        now = self._now
        is_its_own = workspace is not None and workspace is now.workspace
        has_left_files = is_its_own and any(step.exec_status is not None for step in now.steps)
        is_in_place = workspace is not None and workspace.path.is_dir() and self.bundle.public_dir.is_dir()
        if not (has_left_files and is_in_place):
            return self._sandbox_failed(str(error))
        text = "The script was not run: the sandbox cannot use the working folder as your earlier scripts left it."
        if now.submission.is_there:
            text += " The submission.csv that was read before still counts."
        return _Outcome(text, {"has_submission": now.submission.is_there})

    def _sandbox_failed(self, message: str) -> _Outcome:
        self._now.status = TrajectoryStatus.SANDBOX_ERROR
        self._now.failure = Failure(boundary="sandbox", message=clean_text(message))
        return _Outcome("The machine that runs scripts has failed; this is not your fault.")

    def _check_running(self) -> None:
        if self._now.workspace is None or self._now.status is not None:
            raise ConfigError("the episode is not running; call reset() first")

    def _charge(self, completion: Completion) -> None:
        now = self._now
        now.tokens += _count_tokens(completion)
        now.cost_usd += completion.usage.cost_usd or 0.0
        now.queued_s += completion.usage.lost_s

    def _check_budget(self) -> None:
        now, config = self._now, self.config
        if now.status is not None:
            return
        if config.max_trajectory_tokens is not None and now.tokens >= config.max_trajectory_tokens:
            now.status = TrajectoryStatus.TOKEN_BUDGET
        elif config.max_cost_usd is not None and now.cost_usd >= config.max_cost_usd:
            now.status = TrajectoryStatus.COST_BUDGET
        elif self.time_left_s() <= 0:
            now.status = TrajectoryStatus.TIME_BUDGET

    def _check_turns(self) -> None:
        now, config = self._now, self.config
        if now.status is not None:
            return
        if _run_length(now.steps, lambda step: step.reply_status is ReplyStatus.EMPTY) >= config.max_empty:
            now.status = TrajectoryStatus.EMPTY_REPLY
        elif _is_stuck(now.steps, config.stuck_after):
            now.status = TrajectoryStatus.STUCK
        elif len(now.steps) >= config.max_turns:
            now.status = TrajectoryStatus.MAX_TURNS


def _explain(parsed: ParsedReply) -> str:
    if parsed.status is ReplyStatus.TRUNCATED:
        return f"Your reply was cut at the token limit before its action was complete. Write less. {parsed.hint}"
    if parsed.status is ReplyStatus.EMPTY:
        return f"Your reply was empty. {parsed.hint}"
    return f"Nothing was run: no action was found in your reply. {parsed.hint}"


def _count_tokens(completion: Completion) -> int:
    return len(completion.token_ids) if completion.token_ids is not None else completion.usage.completion_tokens


def _run_length(steps: list[StepRecord], holds: Callable[[StepRecord], bool]) -> int:
    """Returns for how many of the last steps in a row something holds."""
    count = 0
    while count < len(steps) and holds(steps[-1 - count]):
        count += 1
    return count


def _is_stuck(steps: list[StepRecord], limit: int) -> bool:
    if len(steps) < limit:
        return False
    last = steps[-1]
    if last.action is None:
        return _run_length(steps, lambda step: step.action is None) >= limit
    return _run_length(steps, lambda step: (step.action, step.code) == (last.action, last.code)) >= limit
