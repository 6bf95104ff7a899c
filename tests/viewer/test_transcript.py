import pytest

from sandmle.records import ActionKind, ReplyStatus, StepRecord
from sandmle.viewer.transcript import cut, turns_of
from tests.evaluation.run_builder import episode, step


def _thought(turn: StepRecord) -> str:
    return turns_of(episode("t1", "p", 0, 0.9, steps=(turn,)))[0].thought


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<think>\nPlan.\n</think>\n<tool_call>\npython\n<code>\nprint(1)\n</code>\n</tool_call>", "Plan."),
        ("Plan.\n\n```python\nprint(1)\n```", "Plan."),
        ("Plan.\n```python\nprint(1)\n```\nAnd then more.", "Plan.\nAnd then more."),
    ],
)
def test_the_thought_is_the_reply_without_code_and_markup(reply: str, expected: str) -> None:
    assert _thought(step(reply=reply, code="print(1)")) == expected


@pytest.mark.parametrize(
    ("action", "reply"),
    [
        (ActionKind.FINISH, "<think>Done.</think>\n<answer>submission</answer>"),
        (ActionKind.FINISH, "Done.\n\nSUBMIT"),
        (ActionKind.SCORE, '<think>Done.</think>\n<tool_call>\n{"name": "Score", "arguments": {}}\n</tool_call>'),
        (ActionKind.SCORE, "Done.\nSCORE"),
    ],
)
def test_actions_without_code_leave_the_thought(action: ActionKind, reply: str) -> None:
    assert _thought(step(reply=reply, action=action, code=None)) == "Done."


def test_code_that_is_not_in_the_reply_as_it_ran_leaves_the_reply_whole() -> None:
    reply = '<think>Plan.</think>\n<tool_call>\n{"name": "python", "arguments": {"code": "print(1)\\n"}}\n</tool_call>'
    assert _thought(step(reply=reply, code="other")) == reply.replace("<think>", "").replace("</think>", "")


def test_a_reply_without_an_action_is_shown_whole() -> None:
    turn = step(reply="I do not know.", reply_status=ReplyStatus.FORMAT_ERROR, action=None, code=None, in_form=False)
    shown = turns_of(episode("t1", "p", 0, 0.9, steps=(turn,)))[0]
    assert (shown.title, shown.thought) == ("format error", "I do not know.")
    assert "not in form" in shown.facts


def test_cut_keeps_head_and_tail_and_says_how_much_is_gone() -> None:
    text = cut("a" * 500 + "b" * 500, 300)
    assert text.startswith("a" * 200)
    assert text.endswith("b" * 100)
    assert "700 characters left out" in text
    assert cut("short", 300) == "short"
