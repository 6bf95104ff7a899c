"""What a server says is wrong, and what it says was used."""

import json

import pytest

from sandmle.policies.replies import fault_of_status, read_reply
from sandmle.records import Completion

OVERFLOW = "This model's maximum context length is 4096 tokens."


def error(message: str, **more: object) -> str:
    return json.dumps({"error": {"message": message, **more}})


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, json.dumps({"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"})),
        (422, json.dumps({"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 512"})),
        (400, error("too many tokens: 5000 of 4096")),
        (400, error("The prompt (5000 tokens) cannot exceed 4096")),
        (400, error("Requested 5000, which cannot exceed the 4096 tokens of the model")),
        (400, error("`max_tokens` plus input tokens cannot exceed 4096")),
        (413, ""),
        (413, "<html>Request Entity Too Large</html>"),
        (500, error(OVERFLOW)),
        (500, json.dumps({"message": OVERFLOW})),
        (500, json.dumps({"error": OVERFLOW})),
    ],
)
def test_r01_r02_words_and_statuses_of_a_full_context(status: int, body: str) -> None:
    fault = fault_of_status(status, body)
    assert fault.is_overflow
    assert not fault.may_pass


@pytest.mark.parametrize(
    ("status", "body", "may_pass"),
    [
        (500, error("internal error", request={"content": OVERFLOW}), True),
        (502, f"<html>bad gateway; you sent: {OVERFLOW}</html>", True),
        (503, json.dumps({"detail": "busy", "messages": [OVERFLOW]}), True),
        (500, "[" * 100_000, True),
        (429, error("too many tokens per minute; cannot exceed 100 tokens"), True),
        (400, error("max_tokens cannot exceed 8192 tokens"), False),
        (400, error("`max_tokens` cannot exceed 8192"), False),
        (400, error("top_logprobs cannot exceed 20"), False),
        (403, error("your plan gives you not so many; too many tokens"), False),
    ],
)
def test_other_faults_are_no_full_context(status: int, body: str, may_pass: bool) -> None:
    fault = fault_of_status(status, body)
    assert not fault.is_overflow
    assert fault.may_pass == may_pass


@pytest.mark.parametrize("count", ["9" * 4300, "9" * 5000, "9" * 30, "-5", "1e999", "true", '"12"', "null"])
def test_counts_that_cannot_be_counts_do_not_break_the_record(count: str) -> None:
    body = f'{{"choices": [{{"message": {{"content": "hi"}}}}], "usage": {{"prompt_tokens": {count}}}}}'
    reply = read_reply(body, (1.0, 1.0))
    assert isinstance(reply, Completion)
    assert (reply.text, reply.usage.prompt_tokens, reply.usage.cost_usd) == ("hi", 0, 0.0)
    assert Completion.model_validate_json(reply.to_json()) == reply


def test_an_error_code_that_is_no_number_is_an_ordinary_fault() -> None:
    for code in ("1e999", "9" * 5000, "[]"):
        fault = read_reply(f'{{"error": {{"message": "odd", "code": {code}}}}}', (None, None))
        assert not isinstance(fault, Completion)
        assert fault.may_pass
