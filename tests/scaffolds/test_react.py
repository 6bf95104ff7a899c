"""The loop round a policy: every ending is a status, and the work done until then is kept."""

import asyncio
import itertools
from typing import Any

import pytest

from sandmle.env import Episode, EpisodeConfig
from sandmle.errors import ConfigError, ContextOverflowError, PolicyError
from sandmle.grading import Grader
from sandmle.policies import PolicyOptions, SamplingParams
from sandmle.policies.canned import CannedPolicy
from sandmle.policies.chat import ChatPolicy
from sandmle.records import Completion, FinishReason, Message, Trajectory, TrajectoryStatus, Usage
from sandmle.scaffolds import Scaffold, open_scaffold
from sandmle.scaffolds.asking import MAX_REPLY_CHARS
from sandmle.scaffolds.base import Transcript
from sandmle.tasks import Bundle
from tests.env.fakes import FakeSandbox
from tests.policies.server import Reply, Server, fails, in_turn, says

OVERFLOW = "This model's maximum context length is 4096 tokens."


def run(code: str) -> str:
    return f"I try.\n```python\n{code}\n```"


GOOD = [run("submit oracle.csv"), "SUBMIT"]


class Raising:
    """Gives replies, then raises."""

    name = "raising"

    def __init__(self, replies: list[str], error: BaseException) -> None:
        self._replies, self._error = replies, error

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        turn = sum(message.role == "assistant" for message in transcript)
        if turn >= len(self._replies):
            raise self._error
        return Completion(text=self._replies[turn], usage=Usage(requests=1, completion_tokens=5))

    async def aclose(self) -> None:
        return


async def trajectory_of(
    bundle: Bundle, grader: Any, policy: Any, sampling: SamplingParams | None = None, **settings: Any
) -> Trajectory:
    config = EpisodeConfig(**{"grammar": "fenced", **settings})
    episode = Episode(bundle, sandbox=FakeSandbox(), grader=grader, config=config, rng_seed=5)
    try:
        made = await open_scaffold("react").run(episode, policy, sampling or SamplingParams(), attempt=2)
    finally:
        await episode.aclose()
        await policy.aclose()
    assert Trajectory.model_validate_json(made.to_json()) == made
    return made


async def test_a_good_episode(bundle: Bundle, grader: Grader) -> None:
    made = await trajectory_of(bundle, grader, Raising(GOOD, AssertionError()))
    assert (made.status, made.reward, made.attempt, made.rng_seed) == (TrajectoryStatus.SUBMITTED, 1.0, 2, 5)
    assert [message.role for message in made.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert made.usage.requests == 2
    assert made.exec_s == 0.25
    assert made.task_hash == bundle.spec.task_hash
    assert made.versions["sandmle"]
    assert (made.policy, made.scaffold, made.grammar, made.feedback) == ("raising", "react", "fenced", "public")


@pytest.mark.parametrize(
    ("error", "status", "has_reward"),
    [
        (ContextOverflowError("full"), TrajectoryStatus.CONTEXT_OVERFLOW, True),
        (PolicyError("dead"), TrajectoryStatus.POLICY_ERROR, False),
        (KeyError("bug"), TrajectoryStatus.POLICY_ERROR, False),
        (TimeoutError("its own"), TrajectoryStatus.POLICY_ERROR, False),
    ],
)
async def test_endings_of_the_policy_keep_the_work(
    bundle: Bundle, grader: Grader, error: Exception, status: TrajectoryStatus, has_reward: bool
) -> None:
    made = await trajectory_of(bundle, grader, Raising([run("submit oracle.csv")], error))
    assert made.status is status
    assert (made.reward is not None) == has_reward
    assert made.grade is not None
    assert made.terms["gold"] == 1.0
    assert len(made.steps) == 1
    assert (made.failure is not None) == status.is_infrastructure


async def test_a_policy_that_never_answers_is_a_fault_without_a_reward(bundle: Bundle, grader: Grader) -> None:
    class Silent(Raising):
        async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
            await asyncio.sleep(60)
            raise AssertionError

    sampling = SamplingParams(timeout_s=0.1, patience_s=0.1)
    made = await trajectory_of(bundle, grader, Silent([], KeyError()), sampling, episode_s=0.1)
    assert (made.status, made.reward) == (TrajectoryStatus.POLICY_ERROR, None)


async def test_a_reply_that_comes_late_ends_at_the_time_budget(bundle: Bundle, grader: Grader) -> None:
    class Slow(Raising):
        async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
            await asyncio.sleep(0.2)
            return await super().generate(transcript, sampling)

    made = await trajectory_of(bundle, grader, Slow(GOOD, KeyError()), episode_s=0.1)
    assert (made.status, len(made.steps), made.grade is not None) == (TrajectoryStatus.TIME_BUDGET, 1, True)
    assert made.reward == 0.1  # for the form of the one reply; its script was not run
    assert made.model_s >= 0.2


@pytest.mark.parametrize("fault", ["hangs", "overloaded", "broken", "gone"])
async def test_a_server_that_fails_until_the_time_is_over_is_never_a_reward(
    bundle: Bundle, grader: Grader, fault: str
) -> None:
    hanging = says("late")
    hanging.delay_s = 6.0
    replies = {"hangs": hanging, "overloaded": fails(429), "broken": fails(503), "gone": Reply(reset=True)}
    with Server(in_turn(says(run("submit oracle.csv")), replies[fault])).running() as server:
        policy = ChatPolicy("m", PolicyOptions(base_url=server.url, max_wait_s=0.1, max_retries=1000))
        # Only the try that hangs is cut by its limit, and nothing by the episode's: all else may be slow here.
        sampling = SamplingParams(timeout_s=3.0, patience_s=0.5)
        made = await trajectory_of(bundle, grader, policy, sampling, episode_s=60.0)
    assert (made.status, made.reward, made.terms["gold"]) == (TrajectoryStatus.POLICY_ERROR, None, 1.0)
    assert made.usage.requests == len(server.seen)
    assert made.usage.retries == len(server.seen) - 2
    assert made.usage.lost_s >= made.usage.retry_wait_s
    assert made.usage.lost_s >= 0.25


async def test_faults_that_pass_do_not_eat_the_time_of_the_episode(bundle: Bundle, grader: Grader) -> None:
    script = in_turn(fails(503, Retry_After="4"), says(run("submit oracle.csv")), says("SUBMIT"))
    with Server(script).running() as server:
        policy = ChatPolicy("m", PolicyOptions(base_url=server.url))
        made = await trajectory_of(bundle, grader, policy, episode_s=3.9)
    assert (made.status, made.reward) == (TrajectoryStatus.SUBMITTED, 1.0)
    assert made.usage.lost_s >= 4.0
    assert made.model_s < 3.9


async def test_r01_overflow_at_turn_3_ends_as_full_and_is_graded(bundle: Bundle, grader: Grader) -> None:
    script = in_turn(says(run("submit oracle.csv")), says(run("print x")), fails(400, OVERFLOW))
    with Server(script).running() as server:
        policy = ChatPolicy("m", PolicyOptions(base_url=server.url))
        made = await trajectory_of(bundle, grader, policy)
    assert (made.status, made.reward, len(made.steps)) == (TrajectoryStatus.CONTEXT_OVERFLOW, 1.0, 2)
    assert made.failure is None


async def test_r10_no_empty_message_is_ever_sent(bundle: Bundle, grader: Grader) -> None:
    script = in_turn(says(run("submit oracle.csv")), says(None), says("", reasoning_content="hm"), says("SUBMIT"))
    with Server(script).running() as server:
        policy = ChatPolicy("m", PolicyOptions(base_url=server.url))
        made = await trajectory_of(bundle, grader, policy)
    assert (made.status, made.terms["gold"]) == (TrajectoryStatus.SUBMITTED, 1.0)
    for seen in server.seen:
        roles = [message["role"] for message in seen.body["messages"]]
        assert all(isinstance(message["content"], str) and message["content"] for message in seen.body["messages"])
        assert all(first != second for first, second in itertools.pairwise(roles))
    assert "was empty" in server.seen[2].body["messages"][-1]["content"]
    assert made.steps[2].reasoning == "hm"


async def test_r10_a_server_that_only_sends_nothing_ends_as_empty_reply(bundle: Bundle, grader: Grader) -> None:
    with Server(in_turn(says(None))).running() as server:
        policy = ChatPolicy("m", PolicyOptions(base_url=server.url))
        made = await trajectory_of(bundle, grader, policy, max_empty=3)
    assert (made.status, len(server.seen)) == (TrajectoryStatus.EMPTY_REPLY, 3)


async def test_r05_a_reply_cut_by_the_limit_is_truncated(bundle: Bundle, grader: Grader) -> None:
    policy = CannedPolicy([Completion(text="```python\nx = ", finish_reason=FinishReason.LENGTH), "SUBMIT"])
    made = await trajectory_of(bundle, grader, policy)
    assert (made.terms["truncated"], made.terms["format"]) == (0.5, 1.0)


async def test_p17_the_same_bad_turn_ends_as_stuck(bundle: Bundle, grader: Grader) -> None:
    made = await trajectory_of(bundle, grader, CannedPolicy(["I cannot do this."]), max_turns=50)
    assert (made.status, len(made.steps)) == (TrajectoryStatus.STUCK, 4)


async def test_token_limits_reach_the_policy(bundle: Bundle, grader: Grader) -> None:
    asked: list[int | None] = []

    class Watching(Raising):
        async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
            asked.append(sampling.max_tokens)
            return await super().generate(transcript, sampling)

    replies = [run("print a"), run("print b"), run("print c"), run("print d")]
    sampling = SamplingParams(max_tokens=100)
    made = await trajectory_of(bundle, grader, Watching(replies, KeyError()), sampling, max_trajectory_tokens=14)
    assert (asked, made.status) == ([14, 9, 4], TrajectoryStatus.TOKEN_BUDGET)


async def test_r13_without_ids_from_the_server_there_are_no_token_arrays(bundle: Bundle, grader: Grader) -> None:
    made = await trajectory_of(bundle, grader, Raising(GOOD, KeyError()))
    assert (made.prompt_ids, made.completion_ids, made.loss_mask, made.logprobs) == (None, None, None, None)
    with pytest.raises(ValueError, match="differ in length"):
        made.replace(completion_ids=(1, 2), loss_mask=(1, 1), logprobs=(0.0,))


async def test_r14_each_prompt_extends_the_one_before_and_nothing_is_doubled(bundle: Bundle, grader: Grader) -> None:
    prompts: list[tuple[Message, ...]] = []

    class Watching(Raising):
        async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
            prompts.append(transcript)
            return await super().generate(transcript, sampling)

    replies = [f"<think>first</think>\n{run('print a')}", "SCORE", *GOOD]
    made = await trajectory_of(bundle, grader, Watching(replies, KeyError()))
    for first, second in itertools.pairwise(prompts):
        assert second[: len(first)] == first
    assert [message.content for message in made.messages if message.role == "assistant"] == replies
    assert "<think>first</think>" in prompts[-1][2].content


async def test_a_task_or_machine_that_cannot_start_is_recorded(
    bundle: Bundle, grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_disk() -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sandmle.env.episode.Workspace", no_disk)
    made = await trajectory_of(bundle, grader, CannedPolicy(GOOD))
    assert (made.status, made.reward) == (TrajectoryStatus.SANDBOX_ERROR, None)
    assert made.failure is not None
    assert "No space left" in made.failure.message
    gone = Bundle(root=bundle.root / "gone", spec=bundle.spec)
    made = await trajectory_of(gone, grader, CannedPolicy(GOOD))
    assert (made.status, made.reward) == (TrajectoryStatus.TASK_ERROR, None)


def test_a_transcript_has_no_empty_and_no_doubled_roles() -> None:
    transcript = Transcript()
    for role, content in [("user", "a"), ("assistant", " "), ("user", "b"), ("assistant", "c")]:
        transcript.add(role, content)
    assert [(each.role, each.content) for each in transcript.snapshot()] == [("user", "a\n\nb"), ("assistant", "c")]


def test_scaffolds_by_name() -> None:
    assert isinstance(open_scaffold("react"), Scaffold)
    with pytest.raises(ConfigError, match="did you mean 'react'"):
        open_scaffold("reakt")


async def test_a_policy_that_returns_no_completion_is_told_so(bundle: Bundle, grader: Grader) -> None:
    class Plain(Raising):
        async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
            return "Action: finish"  # type: ignore[return-value]

    made = await trajectory_of(bundle, grader, Plain([], KeyError()))
    assert (made.status, made.reward) == (TrajectoryStatus.POLICY_ERROR, None)
    assert made.failure is not None
    assert made.failure.message == "raising answered with str; a policy returns a Completion"


async def test_an_endless_reply_is_kept_up_to_a_bound(bundle: Bundle, grader: Grader) -> None:
    class Endless(Raising):
        async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
            reply = await super().generate(transcript, sampling)
            return reply.replace(text=reply.text + "x" * MAX_REPLY_CHARS, reasoning="y" * 2 * MAX_REPLY_CHARS)

    made = await trajectory_of(bundle, grader, Endless(GOOD, ContextOverflowError("full")))
    assert made.status is TrajectoryStatus.CONTEXT_OVERFLOW
    replies = [message.content for message in made.messages if message.role == "assistant"]
    assert [len(reply) for reply in replies] == [MAX_REPLY_CHARS] * 2
    size = len(made.to_json())  # each reply stands in the transcript and in its step, with its reasoning
    assert size < 7 * MAX_REPLY_CHARS
