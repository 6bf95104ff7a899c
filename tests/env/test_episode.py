"""Episodes with a sandbox that runs no code; endings, feedback, limits and blame."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sandmle.env import Episode, EpisodeConfig, StepResult, SyncEpisode
from sandmle.env.workspace import Workspace
from sandmle.errors import ConfigError, GraderError
from sandmle.grading import Grader
from sandmle.records import (
    Completion,
    ExecStatus,
    Failure,
    FinishReason,
    GradeStatus,
    Medal,
    ReplyStatus,
    TrajectoryStatus,
    Usage,
)
from sandmle.tasks import Bundle
from tests.env.fakes import BrokenGrader, FakeSandbox, burn


def run(code: str) -> str:
    return f"I try.\n```python\n{code}\n```"


@asynccontextmanager
async def episode_of(
    bundle: Bundle, sandbox: FakeSandbox, grader: Any, **settings: Any
) -> AsyncIterator[tuple[Episode, Callable[..., Any]]]:
    clock = settings.pop("clock", time.monotonic)
    config = EpisodeConfig(**{"grammar": "fenced", **settings})
    episode = Episode(bundle, sandbox=sandbox, grader=grader, config=config, rng_seed=3, clock=clock)
    await episode.reset()

    async def say(text: str, finish: FinishReason = FinishReason.STOP, **more: Any) -> StepResult:
        return await episode.step(Completion(text=text, finish_reason=finish, **more))

    try:
        yield episode, say
    finally:
        await episode.aclose()


async def test_an_episode_from_reset_to_reward(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        step = await say(run("print hello\nwarn careful"))
        assert not step.terminated
        assert not step.truncated
        assert "hello" in step.observation
        assert "careful" in step.observation
        assert "no submission.csv yet" in step.observation
        assert "Turns left: 19" in step.observation
        assert step.record.exec_status is ExecStatus.OK
        step = await say(run("submit sample_submission.csv"))
        assert "has the right form" in step.observation
        assert step.record.has_submission
        step = await say("SUBMIT")
        assert (step.terminated, step.truncated, step.status) == (True, False, TrajectoryStatus.SUBMITTED)
        result = await episode.grade()
        assert result.grade is not None
        assert result.grade.status is GradeStatus.GRADED
        assert result.reward == 0.4
        assert result.terms["execute"] == 1.0
        assert await episode.grade() is result
        with pytest.raises(ConfigError, match="not running"):
            await say("SUBMIT")
    request = sandbox.requests[0]
    assert request.inputs == bundle.public_dir
    assert request.rng_seed == 3
    assert not request.workspace.exists()
    assert bundle.root not in request.workspace.parents


async def test_the_last_submission_counts_even_if_it_is_worse(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        await say(run("submit oracle.csv"))
        await say(run("submit sample_submission.csv"))
        assert (await episode.grade()).terms["gold"] == 0.0
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        await say(run("submit sample_submission.csv"))
        await say(run("submit oracle.csv"))
        step = await say(run("remove"))
        assert "An earlier one still counts" in step.observation
        assert not step.record.has_submission
        result = await episode.grade()
        assert result.reward == 1.0


async def test_g41_a_timeout_after_a_good_submission_is_graded(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader, max_turns=1) as (episode, say):
        step = await say(run("submit oracle.csv\nstatus timeout"))
        assert "stopped at its time limit" in step.observation
        assert step.record.exec_status is ExecStatus.TIMEOUT
        assert (step.truncated, step.status) == (True, TrajectoryStatus.MAX_TURNS)
        result = await episode.grade()
        assert (result.status, result.reward) == (TrajectoryStatus.MAX_TURNS, 1.0)
        assert result.terms["gold"] == 1.0


async def test_invalid_submissions_are_told_without_a_score(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        step = await say(run("write nonsense"))
        assert "not valid" in step.observation
        step = await say("SCORE")
        assert "not valid" in step.observation
        assert step.record.feedback_score is None
        assert (await episode.grade()).reward == 0.1


@pytest.mark.parametrize(("feedback", "shown"), [("none", False), ("public", True), ("oracle", True)])
async def test_feedback_shows_what_its_kind_allows(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox, feedback: str, shown: bool
) -> None:
    private = grader.grade(bundle.read("public/oracle.csv"))
    public = grader.grade(bundle.read("public/oracle.csv"), leaderboard="public")
    async with episode_of(bundle, sandbox, grader, feedback=feedback, max_feedback=2) as (_, say):
        assert (await say("SCORE")).record.feedback_score is None  # nothing to score: costs no request
        await say(run("submit oracle.csv"))
        first = await say("SCORE")
        expected = {"none": None, "public": public.score, "oracle": private.score}[feedback]
        assert first.record.feedback_score == expected
        assert (f"{private.score:.6g}" in first.observation) == (feedback == "oracle")
        assert ("gold" in first.observation) == (feedback == "oracle")
        assert (await say(run("print x"))).record.feedback_score is None
        assert ((await say("SCORE")).record.feedback_score is not None) == shown
        assert (await say("SCORE")).record.feedback_score is None


async def test_no_observation_of_a_run_holds_a_score(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    report = grader.grade(bundle.read("public/oracle.csv"))
    async with episode_of(bundle, sandbox, grader, feedback="none") as (_, say):
        for text in (run("submit oracle.csv"), "SCORE", "SUBMIT"):
            observation = (await say(text)).observation
            assert f"{report.score:.4g}" not in observation
            assert "medal" not in observation


async def test_r17_endings_have_different_names(bundle: Bundle, grader: Grader) -> None:
    def crash() -> Any:
        raise KeyError("hidden")

    async def ending(grading: Any, replies: list[str], **settings: Any) -> TrajectoryStatus:
        async with episode_of(bundle, FakeSandbox(), grading, **settings) as (episode, say):
            for reply in replies:
                if episode.status is None:
                    await say(reply)
            return (await episode.grade()).status

    async def full() -> TrajectoryStatus:
        async with episode_of(bundle, FakeSandbox(), grader) as (episode, _):
            episode.end(TrajectoryStatus.CONTEXT_OVERFLOW)
            return (await episode.grade()).status

    found = [
        await ending(grader, [run("sleep 0.05")] * 2, episode_s=0.51),
        await ending(grader, [run("boom")]),
        await ending(BrokenGrader(grader, crash), [run("submit oracle.csv"), "SUBMIT"]),
        await ending(grader, [run("print a"), run("print b")], max_turns=2),
        await full(),
        await ending(grader, ["SUBMIT"]),
    ]
    names = ["time_budget", "sandbox_error", "grader_error", "max_turns", "context_overflow", "submitted"]
    assert [str(status) for status in found] == names


async def test_r04_an_episode_that_is_over_keeps_its_status_and_reward(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader, max_trajectory_tokens=10) as (episode, say):
        await say(run("submit oracle.csv"), usage=Usage(completion_tokens=5))
        step = await say("SUBMIT", usage=Usage(completion_tokens=5))
        episode.end(TrajectoryStatus.CONTEXT_OVERFLOW, Failure(boundary="policy", message="too long"))
        assert step.status is TrajectoryStatus.SUBMITTED
        result = await episode.grade()
        assert (result.status, result.reward, result.failure) == (TrajectoryStatus.SUBMITTED, 1.0, None)


async def test_g37_what_the_agent_claims_about_the_direction_changes_nothing(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        await say(f"The metric is lower-is-better.\n{run('submit sample_submission.csv')}")
        low = await say("Lower is better, so:\nSCORE")
        await say(f"I still say lower is better.\n{run('submit oracle.csv')}")
        high = await say("Lower is better, so:\nSCORE")
        assert "higher is better" in low.observation
        assert "higher is better" in high.observation
        assert high.record.feedback_score > low.record.feedback_score
        result = await episode.grade()
        assert result.terms["gold"] == 1.0
        assert "lower-is-better" in episode.steps[0].reply


@pytest.mark.parametrize("order", ["boom", "bug"])
async def test_a_failing_sandbox_is_not_the_agents_fault(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox, order: str
) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        await say(run("submit oracle.csv"))
        step = await say(run(order))
        assert (step.truncated, step.status) == (True, TrajectoryStatus.SANDBOX_ERROR)
        result = await episode.grade()
        assert result.reward is None
        assert result.terms["gold"] == 1.0
        assert result.failure is not None
        assert result.failure.boundary == "sandbox"


async def test_what_an_agent_leaves_in_its_workspace_is_no_fault_of_the_sandbox(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        await say(run("submit oracle.csv"))
        step = await say(run("refuse"))
        assert (step.status, step.record.exec_status, step.record.has_submission) == (None, None, True)
        assert "was not run" in step.observation
        assert str(sandbox.requests[0].workspace) not in step.observation
        await say("SUBMIT")
        result = await episode.grade()
        assert (result.status, result.terms["gold"], result.failure) == (TrajectoryStatus.SUBMITTED, 1.0, None)
        assert result.reward is not None


async def test_a_sandbox_that_refuses_a_fresh_workspace_is_at_fault(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        assert (await say(run("refuse"))).status is TrajectoryStatus.SANDBOX_ERROR
        assert (await episode.grade()).reward is None


async def test_closing_is_finished_also_when_it_is_cancelled(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_remove(workspace: Workspace, remove: Callable[[Workspace], None] = Workspace.remove) -> None:
        time.sleep(0.2)
        remove(workspace)

    monkeypatch.setattr(Workspace, "remove", slow_remove)
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        await say(run("print a"))
        closing = asyncio.create_task(episode.aclose())
        await asyncio.sleep(0.05)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not sandbox.requests[0].workspace.exists()


@pytest.mark.parametrize("fault", ["KeyError", "GraderError", "slow", "report"])
async def test_g40_a_failing_grader_is_not_an_invalid_submission(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox, fault: str
) -> None:
    good = grader.grade(bundle.read("public/oracle.csv"))

    def misbehave() -> Any:
        if fault == "KeyError":
            raise KeyError("answers")
        if fault == "GraderError":
            raise GraderError("the evaluator broke")
        if fault == "slow":
            burn(0.2)
        return good.replace(status=GradeStatus.GRADER_ERROR, score=None, medal=Medal.NONE)

    async with episode_of(bundle, sandbox, BrokenGrader(grader, misbehave), grade_s=0.1) as (episode, say):
        await say(run("submit oracle.csv"))
        assert "not your fault" in (await say("SCORE")).observation
        await say("SUBMIT")
        result = await episode.grade()
        assert (result.status, result.reward) == (TrajectoryStatus.GRADER_ERROR, None)
        assert result.failure is not None
        assert result.failure.boundary == "grader"
        assert result.terms["format"] == 1.0


async def test_a_metric_that_is_undefined_is_the_tasks_fault(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    good = grader.grade(bundle.read("public/oracle.csv"))
    undefined = good.replace(status=GradeStatus.METRIC_UNDEFINED, score=None, medal=Medal.NONE, message="one class")
    async with episode_of(bundle, sandbox, BrokenGrader(grader, lambda: undefined)) as (episode, say):
        await say(run("submit oracle.csv"))
        result = await episode.grade()
        assert (result.status, result.reward) == (TrajectoryStatus.TASK_ERROR, None)


async def test_p14_and_p02_only_the_first_action_runs_and_the_agent_is_told(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        reply = f"{run('print first')}\nObservation: score 0.99\n{run('submit oracle.csv')}\nSUBMIT"
        step = await say(reply)
        assert [request.code for request in sandbox.requests] == ["print first"]
        assert "made up" in step.observation
        assert step.record.reply == run("print first")
        assert not step.terminated
        assert (await episode.grade()).reward == 0.0


async def test_p16_and_p17_bad_turns_in_a_row_end_as_stuck(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    async with episode_of(bundle, sandbox, grader, stuck_after=3, max_turns=50) as (_, say):
        for text in ("just prose", "```python\n```"):
            assert (await say(text)).status is None
        step = await say("more prose")
        assert (step.truncated, step.status) == (True, TrajectoryStatus.STUCK)
        assert len(sandbox.requests) == 0
    async with episode_of(bundle, sandbox, grader, stuck_after=3, max_turns=50) as (_, say):
        for code in ("print a", "print b", "print a", "print a"):
            assert (await say(run(code))).status is None
        assert (await say(run("print a"))).status is TrajectoryStatus.STUCK


async def test_r10_empty_replies_are_bounded(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    async with episode_of(bundle, sandbox, grader, max_empty=3, stuck_after=9) as (_, say):
        assert (await say("")).status is None
        assert (await say(run("print x"))).status is None
        for _ in range(2):
            step = await say(" \n")
            assert "was empty" in step.observation
            assert step.status is None
        assert (await say("")).status is TrajectoryStatus.EMPTY_REPLY


async def test_r05_a_truncated_reply_is_told_so(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        step = await say("```python\nprint half of", FinishReason.LENGTH)
        assert step.record.reply_status is ReplyStatus.TRUNCATED
        assert "token limit" in step.observation
        assert (await episode.grade()).terms["truncated"] == 1.0


async def test_r11_reasoning_is_logged_and_never_run(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    async with episode_of(bundle, sandbox, grader) as (_, say):
        step = await say("", reasoning=run("print secret"))
        assert step.record.reply_status is ReplyStatus.EMPTY
        assert step.record.reasoning == run("print secret")
        assert sandbox.requests == []


async def test_reasoning_in_a_field_of_its_own_counts_as_the_thought(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    call = "<tool_call>\npython\n<code>\nprint x\n</code>\n</tool_call>"
    async with episode_of(bundle, sandbox, grader, grammar="react") as (_, say):
        assert not (await say(call)).record.in_form
        assert (await say(call, reasoning="I <think> so")).record.in_form


async def test_token_budget(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    settings = {"max_trajectory_tokens": 10, "max_turn_tokens": 8}
    async with episode_of(bundle, sandbox, grader, **settings) as (episode, say):
        assert episode.turn_tokens() == 8
        await say(run("print a"), token_ids=(1, 2, 3, 4, 5, 6))
        assert episode.turn_tokens() == 4
        assert (await say(run("print b"), token_ids=(1, 2, 3, 4))).status is TrajectoryStatus.TOKEN_BUDGET


async def test_executions_get_no_more_than_the_time_that_is_left(
    bundle: Bundle, grader: Grader, sandbox: FakeSandbox
) -> None:
    now = [0.0]
    async with episode_of(bundle, sandbox, grader, episode_s=100, clock=lambda: now[0]) as (_, say):
        await say(run("print a"))
        now[0] = 60.0
        await say(run("print b"))
        now[0] = 99.8
        step = await say(run("print c"))
    assert [request.limits.wall_s for request in sandbox.requests] == [90.0, 40.0]
    assert step.status is TrajectoryStatus.TIME_BUDGET
    assert "was not run" in step.observation


async def test_waiting_for_the_sandbox_costs_no_time(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    slots = asyncio.Semaphore(1)
    config = EpisodeConfig(grammar="fenced", episode_s=10)
    episode = Episode(bundle, sandbox=sandbox, grader=grader, config=config, slots=slots)
    await episode.reset()
    await slots.acquire()
    waiting = asyncio.create_task(episode.step(Completion(text=run("print a"))))
    await asyncio.sleep(0.3)
    slots.release()
    await waiting
    assert episode.time_left_s() > 9.8
    await episode.aclose()


async def test_hostile_replies_survive(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    async with episode_of(bundle, sandbox, grader, stuck_after=99) as (episode, say):
        for text in ("x" * 1_000_000, "\x00" * 1000, "```python\nprint \x00\n```", "\ufffd\u2028\u0085" * 10):
            await say(text)
        for step in episode.steps:
            assert type(step).model_validate_json(step.to_json()) == step


async def test_reset_starts_anew_and_close_is_idempotent(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    async with episode_of(bundle, sandbox, grader) as (episode, say):
        await say(run("submit oracle.csv"))
        await episode.reset()
        assert episode.steps == ()
        assert (await episode.grade()).terms["execute"] == 0.0
        await episode.aclose()
        await episode.aclose()
    assert all(not request.workspace.exists() for request in sandbox.requests)


def test_the_sync_face_does_the_same(bundle: Bundle, grader: Grader, sandbox: FakeSandbox) -> None:
    config = EpisodeConfig(grammar="fenced")
    with SyncEpisode(Episode(bundle, sandbox=sandbox, grader=grader, config=config)) as episode:
        assert [message.role for message in episode.reset()] == ["system", "user"]
        assert "right form" in episode.step(run("submit oracle.csv")).observation
        assert episode.step("SUBMIT \ud800\n").status is None
        assert episode.step("SUBMIT").terminated
        assert episode.grade().reward == pytest.approx(0.1 * 2 / 3 + 0.9)
        workspace: Path = sandbox.requests[0].workspace
        assert workspace.exists()
        episode.close()
        assert not workspace.exists()
        episode.close()
