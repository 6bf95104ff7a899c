"""The ``mle_agent`` scaffold: JSON actions in one conversation (MLE-Dojo, arXiv 2505.07782)."""

import time
from collections.abc import Callable

from pydantic import Field

from sandmle.env import Episode
from sandmle.env.prompting import list_files
from sandmle.grammars.json_reply import JsonAction, is_in_form, parse_json_action
from sandmle.grammars.operators import SCORE_LINE, read_score_line
from sandmle.grammars.scan import clean_text
from sandmle.policies.base import Policy, SamplingParams
from sandmle.records import (
    ActionKind,
    Completion,
    Direction,
    ExecStatus,
    FinishReason,
    Message,
    Record,
    ReplyStatus,
    StepRecord,
    Trajectory,
    TrajectoryStatus,
)
from sandmle.scaffolds.asking import Asker, Reply, failure_of
from sandmle.scaffolds.base import Transcript, make_trajectory, start
from sandmle.scaffolds.information import INFO_TYPES, tell
from sandmle.scaffolds.journal import Journal, JournalEntry, JournalHead, open_journal
from sandmle.scaffolds.prompting import render

_KINDS = {"execute_code": ActionKind.RUN, "validate_code": ActionKind.RUN, "finish": ActionKind.FINISH}


class MleAgentOptions(Record):
    """The settings of ``mle_agent``; the number of actions is the episode's ``max_turns``."""

    max_repairs: int = Field(default=3, ge=0)
    """Requests to repair the form of one reply."""
    history_pairs: int | None = Field(default=None, gt=0)
    """Action and answer pairs that the model is shown again, the last ones; null for all of them."""


class MleAgentScaffold:
    """Actions as JSON objects; ``docs/guides/scaffolds-mle-agent.md`` names what differs."""

    name = "mle_agent"
    Options = MleAgentOptions

    def __init__(self, options: MleAgentOptions | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options or MleAgentOptions()
        self._clock = clock

    async def run(self, episode: Episode, policy: Policy, sampling: SamplingParams, *, attempt: int = 0) -> Trajectory:
        """Runs an episode to its end and grades it. Never raises; see :class:`sandmle.scaffolds.base.Scaffold`."""
        started_s = self._clock()
        asker = Asker(episode, policy, sampling, self._clock)
        transcript = Transcript()
        await start(episode)
        try:
            if episode.status is None:
                head = JournalHead(
                    task_hash=episode.bundle.spec.task_hash,
                    scaffold=self.name,
                    settings=self.options.digest(),
                    policy=policy.name,
                    rng_seed=sampling.rng_seed,
                )
                with open_journal(episode.journal, head) as journal:
                    agent = _Agent(self.options, episode, asker, transcript, journal)
                    while episode.status is None:
                        await agent.advance()
        except Exception as error:  # a bug of ours, a full disk: the work done until here is kept
            episode.end(TrajectoryStatus.ROLLOUT_ERROR, failure_of("rollout", error))
        result = await episode.grade()
        return make_trajectory(
            episode,
            result,
            policy=policy.name,
            scaffold=self.name,
            attempt=attempt,
            messages=transcript.snapshot(),
            tally=asker.tally,
            wall_s=self._clock() - started_s,
            grammar=self.name,
        )


class _Agent:
    """One conversation under way."""

    def __init__(
        self, options: MleAgentOptions, episode: Episode, asker: Asker, transcript: Transcript, journal: Journal
    ) -> None:
        self._options, self._episode, self._asker, self._journal = options, episode, asker, journal
        self._transcript = transcript
        self._n_actions = 0
        self._best: float | None = None
        self._history: list[str] = []
        self._transcript.add("user", self._opening())
        self._restore()

    async def advance(self) -> None:
        """Carries out one action, or ends the episode."""
        n_steps, n_calls = len(self._episode.steps), len(self._asker.tally.calls)
        found = await self._next_action()
        if found is None:
            return
        submission = await self._carry_out(*found)
        used_s, tokens, cost_usd = self._episode.spent()
        self._journal.append(
            JournalEntry(
                steps=self._episode.steps[n_steps:],
                submission=submission,
                usage=self._asker.tally.usage(n_calls),
                used_s=used_s,
                tokens=tokens,
                cost_usd=cost_usd,
            )
        )

    async def _next_action(self) -> tuple[JsonAction, Reply] | None:
        """Asks until a reply holds an action; the repairs stay outside the conversation."""
        messages, repairs = self._shown(), tuple[Message, ...]()
        status = ReplyStatus.FORMAT_ERROR
        for _ in range(self._options.max_repairs + 1):
            reply = await self._asker.ask((*messages, *repairs))
            if reply is None:
                return None
            action = parse_json_action(reply.completion.text)
            if isinstance(action, JsonAction):
                return action, reply
            status = _bad_status(reply.completion)
            repair = render("mle_agent_repair.j2", problem=action)
            self._episode.log(_record(reply, status, observation=repair), reply.completion)
            if self._episode.status is not None:
                return None
            said = clean_text(reply.completion.text) if status is not ReplyStatus.EMPTY else "(nothing)"
            repairs = (Message(role="assistant", content=said), Message(role="user", content=repair))
        is_empty = status is ReplyStatus.EMPTY
        self._episode.end(TrajectoryStatus.EMPTY_REPLY if is_empty else TrajectoryStatus.STUCK)
        return None

    async def _carry_out(self, action: JsonAction, reply: Reply) -> bytes | None:
        """Returns the submission that counts from here on, if this action brought one."""
        episode, submission, failed = self._episode, None, False
        record = _record(reply, ReplyStatus.ACTION).replace(
            action=_KINDS.get(action.name), in_form=is_in_form(reply.completion.text, action)
        )
        if "code" in action.params:
            trial = await episode.try_script(action.params["code"])
            text, failed = trial.text, trial.result is None or trial.result.status is not ExecStatus.OK
            stdout = "" if trial.result is None else trial.result.stdout
            record = record.replace(
                code=action.params["code"], validation_score=read_score_line(stdout), **trial.fields()
            )
            if action.name == "execute_code" and trial.is_valid:
                submission = self._take(trial.submission, record.validation_score)
                if episode.config.feedback != "none":
                    answer = await episode.show_score(trial.submission)
                    text = f"{text}\n{answer.text}"
                    record = record.replace(feedback_score=answer.score)
        else:
            text = await self._tell(action)
        self._n_actions += 1
        shown = render("mle_agent_answer.j2", text=text, failed=failed, **self._budget())
        self._keep(episode.log(record.replace(observation=shown), reply.completion))
        if action.name == "finish":
            episode.end(TrajectoryStatus.SUBMITTED)
        self._check_end()
        return submission

    async def _tell(self, action: JsonAction) -> str:
        if action.name == "request_info":
            return await tell(self._episode, action.params["info_type"])
        if action.name == "get_history":
            return "\n".join(self._history) or "Nothing was done so far."
        return "The conversation begins anew." if action.name == "reset" else "The competition is over."

    def _take(self, submission: bytes | None, score: float | None) -> bytes | None:
        """Makes a submission the one that counts, if it is the best by validation score.

        While there is none with such a score, the last one counts.
        """
        if score is not None and self._episode.bundle.spec.direction is Direction.MINIMIZE:
            score = -score
        if submission is None or (self._best is not None and (score is None or score <= self._best)):
            return None
        self._best = score
        self._episode.choose(submission)
        return submission

    def _restore(self) -> None:
        """Puts the conversation where an earlier process left it; nothing is run again."""
        entries = self._journal.entries
        if not entries:
            return
        last = entries[-1]
        steps = [step for entry in entries for step in entry.steps]
        self._episode.restore(steps, used_s=last.used_s, tokens=last.tokens, cost_usd=last.cost_usd)
        for entry in entries:
            self._asker.tally.calls.append(entry.usage)
            self._asker.tally.model_s += sum(step.model_s for step in entry.steps)
            self._n_actions += 1
            self._keep(entry.steps[-1])
            self._take(entry.submission, entry.steps[-1].validation_score)
        if last.steps[-1].action is ActionKind.FINISH:
            self._episode.end(TrajectoryStatus.SUBMITTED)
        self._check_end()

    def _keep(self, step: StepRecord) -> None:
        """Adds an action and its answer to the conversation, or begins it anew."""
        action = parse_json_action(step.reply)
        name = action.name if isinstance(action, JsonAction) else "?"
        outcome = f": {step.exec_status}" if step.exec_status else ""
        score = "" if step.validation_score is None else f", validation score {step.validation_score:.6g}"
        self._history.append(f"{self._n_actions}. {name}{outcome}{score}")
        if name == "reset":
            del self._transcript.messages[1:]
        else:
            self._transcript.add("assistant", step.reply)
            self._transcript.add("user", step.observation)

    def _check_end(self) -> None:
        episode = self._episode
        limit = episode.config.stuck_after
        said = [step.reply for step in episode.steps[-limit:]]
        if self._n_actions >= episode.config.max_turns:
            episode.end(TrajectoryStatus.MAX_TURNS)
        elif len(said) == limit and len(set(said)) == 1:
            episode.end(TrajectoryStatus.STUCK)

    def _opening(self) -> str:
        spec, config = self._episode.bundle.spec, self._episode.config
        files = self._episode.bundle.public_paths()
        return render(
            "mle_agent.j2",
            info_types=", ".join(INFO_TYPES),
            step_wall_s=f"{min(config.step_wall_s, spec.limits.step_wall_s):g}",
            memory_mb=spec.limits.memory_mb,
            score_line=SCORE_LINE,
            way="higher" if spec.direction is Direction.MAXIMIZE else "lower",
            description=clean_text(self._episode.bundle.description()).strip(),
            files=list_files(files),
            **self._budget(),
        )

    def _budget(self) -> dict[str, int]:
        left = self._episode.config.max_turns - self._n_actions
        return {"actions_left": left, "seconds_left": round(self._episode.time_left_s())}

    def _shown(self) -> tuple[Message, ...]:
        messages, pairs = self._transcript.snapshot(), self._options.history_pairs
        if pairs is None or len(messages) <= 1 + 2 * pairs:
            return messages
        return (messages[0], *messages[-2 * pairs :])


def _record(reply: Reply, status: ReplyStatus, *, observation: str = "") -> StepRecord:
    return StepRecord(
        index=0,
        reply=clean_text(reply.completion.text),
        reasoning=clean_text(reply.completion.reasoning),
        reply_status=status,
        in_form=False,
        observation=observation,
        model_s=reply.model_s,
    )


def _bad_status(completion: Completion) -> ReplyStatus:
    if completion.finish_reason is FinishReason.LENGTH:
        return ReplyStatus.TRUNCATED
    return ReplyStatus.FORMAT_ERROR if completion.text.strip() else ReplyStatus.EMPTY
