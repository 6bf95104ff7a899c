"""A vLLM server as a policy: ids there and back, faults told apart."""

import json
from typing import Any

import pytest

from sandmle.errors import ConfigError, ContextOverflowError, PolicyError
from sandmle.policies import SamplingParams, open_policy
from sandmle.policies.endpoint import Endpoint
from sandmle.policies.renderers import ChatRenderer
from sandmle.policies.vllm import VLLMPolicy
from sandmle.records import FinishReason, Message
from tests.policies.server import Reply, Server, fails, in_turn
from tests.policies.tiny import tiny

START = (Message(role="system", content="You are an expert."), Message(role="user", content="import pandas"))


def sampled(ids: list[int] | None, finish: str = "stop", **more: Any) -> Reply:
    logprobs = {"token_logprobs": [-0.5] * len(ids or [])}
    choice = {"index": 0, "text": "", "finish_reason": finish, "token_ids": ids, "logprobs": logprobs, **more}
    return Reply(body=json.dumps({"id": "x", "object": "text_completion", "choices": [choice]}).encode())


async def ask(*replies: Reply, **options: Any) -> tuple[Any, Server]:
    with Server(in_turn(*replies)).running() as server:
        policy = VLLMPolicy("m", ChatRenderer(tiny()[1], "m"), Endpoint(server.url, "key"), **options)
        try:
            return await policy.generate(START, SamplingParams(max_tokens=7, rng_seed=3)), server
        finally:
            await policy.aclose()


async def test_ids_go_there_and_come_back() -> None:
    tokenizer = tiny()[1]
    ids = [*tokenizer.encode("print(1)"), tokenizer.convert_tokens_to_ids("<|im_end|>")]
    completion, server = await ask(sampled(ids))
    sent = server.seen[0].body
    assert tuple(sent["prompt"]) == completion.prompt_ids == ChatRenderer(tokenizer, "m").prompt(START)
    assert (sent["max_tokens"], sent["return_token_ids"]) == (7, True)
    assert completion.text == "print(1)"
    assert completion.token_ids == tuple(ids)
    assert completion.logprobs == (-0.5,) * len(ids)
    assert completion.finish_reason is FinishReason.STOP


async def test_a_reply_that_was_cut() -> None:
    completion, _ = await ask(sampled([9, 9], "length"))
    assert completion.finish_reason is FinishReason.LENGTH
    assert completion.token_ids == (9, 9)


async def test_r13_a_server_without_ids_is_named() -> None:
    with pytest.raises(PolicyError, match=r"no token ids.*0\.10\.2"):
        await ask(sampled(None))


async def test_r01_a_full_context_is_told_from_other_faults() -> None:
    with pytest.raises(ContextOverflowError):
        await ask(fails(400, "This model's maximum context length is 4096 tokens"))
    with pytest.raises(PolicyError, match="400"):
        await ask(fails(400, "bad"))


async def test_a_dead_server_is_a_fault_of_the_policy() -> None:
    policy = VLLMPolicy("m", ChatRenderer(tiny()[1], "m"), Endpoint("http://127.0.0.1:9/v1", "key"), max_wait_s=0.01)
    with pytest.raises(PolicyError, match="still up"):
        await policy.generate(START, SamplingParams())
    await policy.aclose()


async def test_a_busy_server_is_asked_again() -> None:
    completion, server = await ask(fails(503), fails(429, Retry_After="0.01"), sampled([9]), max_wait_s=0.01)
    assert (completion.token_ids, len(server.seen)) == ((9,), 3)
    with pytest.raises(PolicyError, match="503") as caught:
        await ask(fails(503), max_retries=1, max_wait_s=0.01)
    assert caught.value.n_tries == 2


def test_the_address_is_asked_for() -> None:
    with pytest.raises(ConfigError, match="--base-url"):
        open_policy("vllm:m")
