"""JSON replies: what is read, what is refused, and that what is written is read back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandmle.grammars.json_reply import (
    ACTIONS,
    JsonAction,
    is_in_form,
    parse_json_action,
    read_number,
    read_object,
    render_json_action,
)
from sandmle.grammars.operators import (
    OPERATORS,
    Analysis,
    job_heading,
    parse_analysis,
    parse_script,
    read_job,
    read_score_line,
    render_analysis,
    render_script,
)
from sandmle.records import FinishReason, ReplyStatus

CODE = 'print("{}")\nx = {"a": 1}'


@settings(max_examples=40, deadline=None)
@given(st.text())
def test_no_text_makes_a_reader_raise(text: str) -> None:
    read_object(text)
    parse_json_action(text)
    parse_analysis(text)
    parse_script(text)
    read_job(text)
    read_score_line(text)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(ACTIONS)), st.text(min_size=1).filter(str.strip))
def test_actions_are_read_back(name: str, value: str) -> None:
    value = value.replace("\x00", "x").encode("utf-8", "replace").decode()
    action = JsonAction(name, dict.fromkeys(ACTIONS[name], value))
    text = render_json_action(action)
    if "<think>" in value or "</think>" in value:
        return
    assert parse_json_action(text) == action
    assert is_in_form(text, action)


def test_fences_and_thinking_round_an_action() -> None:
    action = JsonAction("execute_code", {"code": CODE})
    text = render_json_action(action)
    assert parse_json_action(f"<think>{{}} hm</think>\n```json\n{text}\n```") == action
    assert is_in_form(f"```json\n{text}\n```", action)
    assert parse_json_action(f"Here it is: {text} Done.") == action
    assert not is_in_form(f"Here it is: {text} Done.", action)


def test_an_analysis_is_read_back() -> None:
    for analysis in (Analysis(True, None, "broken"), Analysis(False, 3.0, "a {brace}")):
        assert parse_analysis(render_analysis(analysis)) == analysis
    assert parse_analysis('{"is_bug": "no", "validation_score": 1}') is None
    assert parse_analysis('{"is_bug": false, "validation_score": 1, "summary": 3}') == Analysis(False, 1.0, "")


@pytest.mark.parametrize("value", [True, None, "NaN", "inf", float("nan"), [], "x", 10**400])
def test_what_is_no_number(value: object) -> None:
    assert read_number(value) is None


def test_the_last_score_line_counts() -> None:
    assert read_score_line("Validation score: 0.1\nx\nvalidation score: 1e-3\n") == 0.001
    assert read_score_line("Validation score: 3") == 3.0
    assert read_score_line("Validation score: nan") is None
    assert read_score_line("the Validation score: 3") is None


def test_jobs_are_named_in_a_line() -> None:
    for operator in OPERATORS:
        assert read_job(f"{job_heading(operator)}\n\ny\n## Job: draft") == operator
    assert read_job("## Job: destroy") is None
    assert read_job("x\n## Job: draft") is None


def test_a_script_is_read_back_with_its_plan() -> None:
    reply = parse_script(render_script("First I try.\nThen more.", CODE))
    assert (reply.plan, reply.code, reply.in_form) == ("First I try.\nThen more.", CODE, True)
    assert parse_script("SUBMIT").status is ReplyStatus.FORMAT_ERROR
    assert parse_script("").status is ReplyStatus.EMPTY
    assert parse_script("```python\nx =", FinishReason.LENGTH).status is ReplyStatus.TRUNCATED
    thought = parse_script(f"<think>```python\nno\n```</think>Plan.\n```python\n{CODE}\n```")
    assert (thought.plan, thought.code) == ("Plan.", CODE)


def test_half_a_surrogate_pair_in_an_escape_can_be_written_down() -> None:
    action = parse_json_action(r'{"action": "execute_code", "params": {"code": "x = 1  # \ud800"}}')
    assert isinstance(action, JsonAction)
    assert action.params["code"].encode() == "x = 1  # \ufffd".encode()
    analysis = parse_analysis(r'{"is_bug": false, "validation_score": 0.5, "summary": "\udfff."}')
    assert analysis is not None
    assert analysis.summary.encode() == "\ufffd.".encode()


@pytest.mark.parametrize("text", ["1e308", "-1.7e308", "1e101"])
def test_numbers_beyond_any_metric_are_no_scores(text: str) -> None:
    assert read_number(float(text)) is None
    assert read_number(text) is None
