"""JSON actions in one conversation: every action, repairs, budgets, which submission counts."""

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from sandmle.errors import PolicyError
from sandmle.grading import Grader
from sandmle.policies import SamplingParams
from sandmle.records import Completion, FinishReason, Message, Trajectory, TrajectoryStatus, Usage
from sandmle.tasks import Bundle
from tests.env.fakes import FakeSandbox
from tests.scaffolds.searching import script, searched

SAMPLE = "sample_submission.csv"


def act(action: str, **params: str) -> str:
    return json.dumps({"action": action, "params": params})


def execute(code: str) -> str:
    return act("execute_code", code=code)


FINISH = act("finish")


class Saying:
    """Gives replies in turn and remembers what it was shown."""

    name = "saying"

    def __init__(self, replies: Iterable[str | Completion | BaseException]) -> None:
        self._replies = iter(replies)
        self.prompts: list[tuple[Message, ...]] = []

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        del sampling
        self.prompts.append(transcript)
        reply = next(self._replies)
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, Completion) else Completion(text=reply, usage=Usage(requests=1))

    async def aclose(self) -> None:
        return


async def played(bundle: Bundle, grader: Any, replies: Any, **settings: Any) -> tuple[Trajectory, Saying]:
    policy = replies if isinstance(replies, Saying) else Saying(replies)
    # The clock stands still: the seconds left stand in the messages.
    return await searched(bundle, grader, policy, "mle_agent", clock=lambda: 0.0, **settings), policy


async def test_a_conversation_and_its_record(bundle: Bundle, grader: Grader) -> None:
    replies = [act("request_info", info_type="overview"), act("validate_code", code="print hi"), execute(script(0.9))]
    made, policy = await played(bundle, grader, [*replies, act("get_history"), FINISH], feedback="none")
    assert (made.status, made.reward, made.grammar) == (TrajectoryStatus.SUBMITTED, 1.0, "mle_agent")
    assert [message.role for message in made.messages] == ["user"] + ["assistant", "user"] * 5
    answers = [message.content for message in made.messages[2::2]]
    assert bundle.description().strip()[:60] in answers[0]
    assert "hi" in answers[1]
    assert "right form" in answers[2]
    assert "3. execute_code: ok, validation score 0.9" in answers[3]
    assert "Actions left: 19." in answers[0]
    assert "20 actions and 1200 seconds" in policy.prompts[0][0].content
    for first, second in itertools.pairwise(policy.prompts):
        assert second[: len(first)] == first
    assert all(step.in_form for step in made.steps)


async def test_only_executed_scripts_count_and_the_best_of_them(bundle: Bundle, grader: Grader) -> None:
    replies = [
        execute(script(0.6)),
        execute(script(0.5, file=SAMPLE)),
        execute(script(None, file=SAMPLE)),
        execute(script(0.9, "write rubbish")),
        act("validate_code", code=script(0.99, file=SAMPLE)),
        FINISH,
    ]
    made, _ = await played(bundle, grader, replies)
    assert made.terms["gold"] == 1.0
    made, _ = await played(bundle, grader, [act("validate_code", code=script(0.9)), FINISH])
    assert made.terms["execute"] == 0.0


async def test_without_validation_scores_the_last_submission_counts(bundle: Bundle, grader: Grader) -> None:
    made, _ = await played(bundle, grader, [execute(script(None, file=SAMPLE)), execute(script()), FINISH])
    assert made.terms["gold"] == 1.0
    made, _ = await played(bundle, grader, [execute(script(None, file=SAMPLE)), execute(script(0.1)), FINISH])
    assert made.terms["gold"] == 1.0


async def test_the_score_is_shown_as_the_feedback_allows(bundle: Bundle, grader: Grader) -> None:
    replies = [execute(script(0.9)), execute(script(0.9, "print again")), FINISH]
    made, _ = await played(bundle, grader, replies, feedback="public", max_feedback=1)
    assert made.steps[0].feedback_score is not None
    assert "do not count for the final score" in made.steps[0].observation
    assert "used up" in made.steps[1].observation
    made, _ = await played(bundle, grader, replies, feedback="none")
    assert [step.feedback_score for step in made.steps] == [None, None, None]
    assert "roc_auc" not in made.steps[0].observation


@pytest.mark.parametrize(
    "bad",
    [
        "I would run code.",
        '{"action": "run", "params": {}}',
        '{"action": "execute_code", "params": {}}',
        '{"action": "execute_code", "params": {"code": ""}}',
        '{"action": "execute_code", "params": []}',
        '["execute_code"]',
        "{" * 5000,
        "",
    ],
)
async def test_the_form_is_repaired_outside_the_conversation(bundle: Bundle, grader: Grader, bad: str) -> None:
    made, policy = await played(bundle, grader, [bad, bad, execute(script(0.9)), FINISH])
    assert (made.status, made.terms["gold"], len(made.steps)) == (TrajectoryStatus.SUBMITTED, 1.0, 4)
    assert [step.in_form for step in made.steps] == [False, False, True, True]
    assert [len(prompt) for prompt in policy.prompts] == [1, 3, 3, 3]
    assert "could not be read" in policy.prompts[1][-1].content
    assert all(message.content for prompt in policy.prompts for message in prompt)
    assert len(made.messages) == 5


@pytest.mark.parametrize(("reply", "status"), [("rubbish", "stuck"), ("", "empty_reply")])
async def test_three_repairs_and_no_more(bundle: Bundle, grader: Grader, reply: str, status: str) -> None:
    made, policy = await played(bundle, grader, itertools.chain([execute(script(0.9))], itertools.repeat(reply)))
    assert (made.status, len(policy.prompts), made.terms["gold"]) == (status, 5, 1.0)


async def test_a_cut_reply_is_not_bad_form(bundle: Bundle, grader: Grader) -> None:
    cut = Completion(text='{"action": "exec', finish_reason=FinishReason.LENGTH)
    made, _ = await played(bundle, grader, [cut, execute(script(0.9)), FINISH])
    assert (made.terms["format"], made.terms["truncated"]) == (1.0, pytest.approx(1 / 3))


async def test_actions_run_out_and_repeating_is_stuck(bundle: Bundle, grader: Grader) -> None:
    replies = (execute(script(0.9, f"print {number}")) for number in itertools.count())
    made, _ = await played(bundle, grader, replies, max_turns=3)
    assert (made.status, len(made.steps)) == (TrajectoryStatus.MAX_TURNS, 3)
    made, _ = await played(bundle, grader, itertools.repeat(act("get_history")))
    assert (made.status, len(made.steps)) == (TrajectoryStatus.STUCK, 4)


async def test_reset_forgets_the_conversation_but_not_the_budget(bundle: Bundle, grader: Grader) -> None:
    made, policy = await played(bundle, grader, [execute(script(0.9)), act("reset"), act("get_history"), FINISH])
    assert [len(prompt) for prompt in policy.prompts] == [1, 3, 1, 3]
    assert "Actions left: 17." in made.steps[2].observation
    assert "1. execute_code" in made.steps[2].observation
    assert made.terms["gold"] == 1.0


async def test_the_window_of_the_history(bundle: Bundle, grader: Grader) -> None:
    replies = [act("request_info", info_type=name) for name in ("name", "metadata", "data_path", "output_path")]
    _, policy = await played(bundle, grader, [*replies, FINISH], options={"history_pairs": 2})
    assert [len(prompt) for prompt in policy.prompts] == [1, 3, 5, 5, 5]
    assert policy.prompts[4][0] == policy.prompts[0][0]


async def test_all_information_is_public(bundle: Bundle, grader: Grader) -> None:
    made, _ = await played(bundle, grader, [act("request_info", info_type="all"), FINISH])
    text = made.steps[0].observation
    for name in ("overview", "sample_submission", "data_structure", "data_path", "output_path", "name", "metadata"):
        assert f"## {name}" in text
    assert "threshold" not in text
    assert "private" not in text
    made, _ = await played(bundle, grader, [act("request_info", info_type="answers"), FINISH])
    assert "no information of the type 'answers'" in made.steps[0].observation


async def test_a_conversation_goes_on_from_its_journal(bundle: Bundle, grader: Grader, tmp_path: Path) -> None:
    replies = [
        execute(script(0.5, file=SAMPLE)),
        "rubbish",
        execute(script(0.9)),
        execute(script(0.7, file=SAMPLE)),
        act("get_history"),
        FINISH,
    ]
    whole, _ = await played(bundle, grader, replies)
    journal = tmp_path / "one.jsonl"
    cut, _ = await played(bundle, grader, [*replies[:3], PolicyError("down")], journal=journal)
    assert cut.status is TrajectoryStatus.POLICY_ERROR
    sandbox = FakeSandbox()
    made, policy = await played(bundle, grader, replies[3:], journal=journal, sandbox=sandbox)
    assert [step.replace(model_s=0.0) for step in made.steps] == [step.replace(model_s=0.0) for step in whole.steps]
    assert (made.messages, made.reward, made.usage) == (whole.messages, whole.reward, whole.usage)
    assert (len(policy.prompts), len(sandbox.requests)) == (3, 1)
