"""The chat policy against a server that misbehaves: cases R01, R02, R07, R08, R10, R11, R19."""

import asyncio
import email.utils
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sandmle.errors import ConfigError, ContextOverflowError, PolicyError
from sandmle.policies import PolicyOptions, SamplingParams, open_policy
from sandmle.policies.chat import ChatPolicy
from sandmle.records import Completion, FinishReason, Message
from tests.policies.server import Reply, Server, fails, in_turn, says

ASK = (Message(role="system", content="be good"), Message(role="user", content="hello"))
NOW_S = 1_700_000_000.0
OVERFLOW = "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def served(
    script: Callable[[int, dict[str, Any]], Reply], **options: Any
) -> AsyncIterator[tuple[ChatPolicy, Server, list[float]]]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    with Server(script).running() as server:
        settings = PolicyOptions(base_url=server.url, **options)
        policy = ChatPolicy("m", settings, sleep=sleep, wall_clock=lambda: NOW_S)
        try:
            yield policy, server, waits
        finally:
            await policy.aclose()


async def test_a_reply_with_usage_and_cost() -> None:
    script = in_turn(says("hi", usage={"prompt_tokens": 10, "completion_tokens": 4}))
    prices = {"usd_per_million_prompt": 1.0, "usd_per_million_completion": 5.0}
    async with served(script, extra_body={"top_k": 5, "temperature": None}, **prices) as (policy, server, waits):
        reply = await policy.generate(ASK, SamplingParams(temperature=0.5, max_tokens=99, rng_seed=7))
    assert (reply.text, reply.finish_reason, waits) == ("hi", FinishReason.STOP, [])
    assert (reply.usage.requests, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 10, 4)
    assert reply.usage.cost_usd == pytest.approx(30e-6)
    sent = server.seen[0].body
    assert sent["messages"] == [{"role": "system", "content": "be good"}, {"role": "user", "content": "hello"}]
    assert {key: sent.get(key) for key in ("model", "max_tokens", "seed", "top_k", "top_p")} == {
        "model": "m",
        "max_tokens": 99,
        "seed": 7,
        "top_k": 5,
        "top_p": 1.0,
    }
    assert "temperature" not in sent


@pytest.mark.parametrize("status", [400, 413, 500])
async def test_r01_r02_a_full_context_is_told_apart_in_any_status(status: int) -> None:
    async with served(in_turn(fails(status, OVERFLOW))) as (policy, server, _):
        with pytest.raises(ContextOverflowError):
            await policy.generate(ASK, SamplingParams())
        assert len(server.seen) == 1


async def test_r02_a_full_context_as_finish_reason_error() -> None:
    async with served(in_turn(says(OVERFLOW, finish="error"))) as (policy, server, _):
        with pytest.raises(ContextOverflowError):
            await policy.generate(ASK, SamplingParams())
        assert len(server.seen) == 1


async def test_r02_an_ordinary_500_is_retried() -> None:
    async with served(in_turn(fails(500), says("", finish="error"), says("fine"))) as (policy, server, waits):
        reply = await policy.generate(ASK, SamplingParams())
    assert (reply.text, len(server.seen), len(waits)) == ("fine", 3, 2)
    assert (reply.usage.requests, reply.usage.retries) == (3, 2)
    assert reply.usage.retry_wait_s == pytest.approx(sum(waits))


async def test_a_429_that_speaks_of_tokens_is_no_overflow() -> None:
    script = in_turn(fails(429, "too many tokens per minute; context length does not matter"), says("fine"))
    async with served(script) as (policy, _, _):
        assert (await policy.generate(ASK, SamplingParams())).text == "fine"


async def test_r07_retry_after_is_honoured_in_seconds_as_a_date_and_capped() -> None:
    date = email.utils.formatdate(NOW_S + 5, usegmt=True)
    script = in_turn(
        fails(429, Retry_After="3"),
        fails(429, Retry_After="3"),
        fails(429, Retry_After=date),
        fails(503, Retry_After="3600"),
        fails(429, Retry_After="soon"),
        fails(429, retry_after_ms="250"),
        says("fine"),
    )
    async with served(script, max_wait_s=20.0) as (policy, _, waits):
        reply = await policy.generate(ASK, SamplingParams())
    assert reply.text == "fine"
    assert 3 <= waits[0] <= 3.3
    assert 3 <= waits[1] <= 3.3
    assert 5 <= waits[2] <= 5.5
    assert waits[3] == 20.0
    assert 0 < waits[4] <= 20.0
    assert 0.25 <= waits[5] <= 0.3
    assert reply.usage.retry_wait_s == pytest.approx(sum(waits))


async def test_r07_the_real_sleep_keeps_the_gap() -> None:
    with Server(in_turn(fails(429, Retry_After="0.3"), says("fine"))).running() as server:
        policy = ChatPolicy("m", PolicyOptions(base_url=server.url))
        await policy.generate(ASK, SamplingParams())
        await policy.aclose()
    assert server.seen[1].at_s - server.seen[0].at_s >= 0.3


async def test_r08_each_fault_is_treated_as_its_kind_and_the_others_finish() -> None:
    first: dict[str, Reply] = {
        "one": fails(401, "bad key"),
        "two": fails(400, "bad request"),
        "three": Reply(reset=True),
        "four": fails(503),
    }

    def script(number: int, body: dict[str, Any]) -> Reply:
        who = body["messages"][-1]["content"]
        return first.pop(who) if who in first else says(f"hello {who}")

    names = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    async with served(script) as (policy, _, waits):
        outcomes = await asyncio.gather(
            *(policy.generate((Message(role="user", content=name),), SamplingParams()) for name in names),
            return_exceptions=True,
        )
    assert isinstance(outcomes[0], PolicyError)
    assert isinstance(outcomes[1], PolicyError)
    assert "401" in str(outcomes[0])
    texts = [outcome.text for outcome in outcomes[2:] if isinstance(outcome, Completion)]
    assert texts == [f"hello {name}" for name in names[2:]]
    assert len(waits) == 2
    assert waits[0] != waits[1]


async def test_r08_retries_are_bounded() -> None:
    async with served(in_turn(fails(503, Retry_After="3600")), max_retries=3, max_wait_s=2) as (policy, server, waits):
        with pytest.raises(PolicyError, match=r"503.*4 tries"):
            await policy.generate(ASK, SamplingParams())
    assert (len(server.seen), waits) == (4, [2.0, 2.0, 2.0])


async def test_tries_that_time_out_end_with_the_patience_and_are_counted() -> None:
    now = [0.0]
    hanging = says("late")
    hanging.delay_s = 0.3

    def clock() -> float:
        now[0] += 150.0
        return now[0]

    async def sleep(seconds: float) -> None:
        del seconds

    with Server(in_turn(hanging)).running() as server:
        policy = ChatPolicy("m", PolicyOptions(base_url=server.url, max_retries=99), sleep=sleep, clock=clock)
        with pytest.raises(PolicyError, match="no reply within") as caught:
            await policy.generate(ASK, SamplingParams(timeout_s=0.1, patience_s=400.0))
        await policy.aclose()
    assert caught.value.n_tries == 3
    assert caught.value.lost_s == pytest.approx(6 * 150.0 + caught.value.retry_wait_s)


async def test_waiting_for_a_slot_is_lost_time() -> None:
    slow = says("x")
    slow.delay_s = 0.2
    async with served(in_turn(slow), concurrency=1) as (policy, _, _):
        replies = await asyncio.gather(*(policy.generate(ASK, SamplingParams()) for _ in range(2)))
    assert replies[0].usage.lost_s < 0.1
    assert replies[1].usage.lost_s >= 0.15


async def test_a_server_that_is_not_there_is_a_policy_error() -> None:
    with Server(in_turn(says("x"))).running() as server:
        url = server.url
    policy = ChatPolicy("m", PolicyOptions(base_url=url, max_retries=0))
    with pytest.raises(PolicyError, match="no connection"):
        await policy.generate(ASK, SamplingParams())
    await policy.aclose()


async def test_a_slow_server_costs_no_more_than_the_time_limit() -> None:
    slow = says("late")
    slow.delay_s = 1.0
    async with served(in_turn(slow, says("in time"))) as (policy, _, waits):
        assert (await policy.generate(ASK, SamplingParams(timeout_s=0.2))).text == "in time"
    assert len(waits) == 1


async def test_r10_null_content_and_r11_reasoning_alone_are_empty_replies() -> None:
    async with served(in_turn(says(None), says("", reasoning_content="Done"), says(None, reasoning="r"))) as (
        policy,
        _,
        _,
    ):
        first = await policy.generate(ASK, SamplingParams())
        second = await policy.generate(ASK, SamplingParams())
        third = await policy.generate(ASK, SamplingParams())
    assert (first.text, second.text, second.reasoning, third.reasoning) == ("", "", "Done", "r")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>busy</html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [3]}',
        b'{"choices": null, "error": {"message": "overloaded", "code": 529}}',
        b'{"error": "odd"}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
async def test_r19_bodies_that_are_no_reply_are_retried_and_then_recorded(body: bytes) -> None:
    async with served(in_turn(Reply(body=body)), max_retries=1) as (policy, server, _):
        with pytest.raises(PolicyError):
            await policy.generate(ASK, SamplingParams())
        assert len(server.seen) == 2


async def test_r19_an_error_object_with_a_final_code_is_not_retried() -> None:
    body = json.dumps({"error": {"message": "no such model", "code": "404"}}).encode()
    async with served(in_turn(Reply(body=body))) as (policy, server, _):
        with pytest.raises(PolicyError, match="no such model"):
            await policy.generate(ASK, SamplingParams())
        assert len(server.seen) == 1


async def test_hostile_text_survives_json() -> None:
    nasty = "a\x00b\ud800c"
    body = says(nasty, reasoning_content=nasty).body
    assert rb"\ud800" in body
    parts = says([{"type": "text", "text": "x"}, {"type": "image"}, 3, {"text": None}, {"text": "y"}], finish="length")
    async with served(in_turn(Reply(body=body), parts, says("z" * 1_000_000))) as (policy, _, _):
        first = await policy.generate(ASK, SamplingParams())
        assert first.text == first.reasoning == "a\ufffdb\ufffdc"
        assert Completion.model_validate_json(first.to_json()) == first
        second = await policy.generate(ASK, SamplingParams())
        assert (second.text, second.finish_reason) == ("xy", FinishReason.LENGTH)
        assert len((await policy.generate(ASK, SamplingParams())).text) == 1_000_000


async def test_requests_in_flight_are_bounded() -> None:
    slow = says("x")
    slow.delay_s = 0.05
    async with served(in_turn(slow), concurrency=2) as (policy, server, _):
        await asyncio.gather(*(policy.generate(ASK, SamplingParams()) for _ in range(8)))
    assert server.most_at_once <= 2


async def test_keys_come_from_the_named_variable_and_never_into_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    async with served(in_turn(fails(401, "Incorrect key: sk-secret")), api_key_env="MY_KEY") as (policy, server, _):
        with pytest.raises(PolicyError) as caught:
            await policy.generate(ASK, SamplingParams())
    assert server.seen[0].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in str(caught.value)
    async with served(in_turn(says("x"))) as (policy, server, _):
        await policy.generate(ASK, SamplingParams())
    assert "sk-other" not in str(server.seen[0].headers)


def test_missing_key_address_or_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        open_policy("chat:gpt")
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        open_policy("chat:gpt", base_url="http://localhost:1/v1", api_key_env="NO_SUCH_KEY")
    with pytest.raises(ConfigError, match="http://"):
        open_policy("chat:gpt", base_url="localhost:8000")
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(ConfigError, match=r"pip install 'sandmle\[llm\]'"):
        open_policy("chat:gpt", base_url="http://localhost:1/v1")
