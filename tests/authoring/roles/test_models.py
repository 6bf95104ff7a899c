"""Models behind a real HTTP server that misbehaves on demand."""

import time

import pytest

from sandmle.authoring.roles.models import list_prices, open_model
from sandmle.authoring.roles.options import LLMOptions, SpendLimits
from sandmle.authoring.roles.talking import Answer, Said, UnusableModelError
from sandmle.errors import ConfigError, ContextOverflowError, PolicyError
from tests.policies.server import Server, fails, in_turn, says

pytest.importorskip("pydantic_ai")
TALK = [Said("system", "be brief"), Said("user", "hello"), Said("assistant", "yes?"), Said("user", "go on")]
QUICK = SpendLimits(max_retries=2, max_wait_s=0.02, timeout_s=5.0)


async def ask(url: str, limits: SpendLimits = QUICK, **options: object) -> Answer:
    async with open_model(LLMOptions(model="openai:m", base_url=url, **options), limits) as model:
        return await model.ask(TALK)


async def test_a_conversation_is_sent_whole_and_usage_is_read():
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    with Server(in_turn(says("fine", usage=usage))).running() as server:
        answer = await ask(server.url, temperature=0.5, extra_body={"top_k": 3})
    assert answer == Answer("fine", "stop", 7, 3)
    body = server.seen[0].body
    assert [(each["role"], each["content"]) for each in body["messages"]] == [(s.speaker, s.text) for s in TALK]
    assert (body["model"], body["temperature"], body["top_k"]) == ("m", 0.5, 3)


async def test_a_cut_reply_says_so():
    with Server(in_turn(says("half", finish="length"))).running() as server:
        assert (await ask(server.url)).finish_reason == "length"


async def test_a_storm_of_429_is_waited_out_as_long_as_the_server_asks():
    limits = SpendLimits(max_retries=5, max_wait_s=5.0)
    replies = [fails(429, Retry_After="0.2"), fails(503), says("at last")]
    with Server(in_turn(*replies)).running() as server:
        start_s = time.monotonic()
        answer = await ask(server.url, limits)
    assert answer.text == "at last"
    assert server.seen[1].at_s - start_s >= 0.2
    assert len(server.seen) == 3


async def test_a_server_that_stays_down_is_one_sentence():
    with Server(in_turn(fails(503, "busy"))).running() as server:
        with pytest.raises(PolicyError, match=r"gave no reply in 3 tries") as caught:
            await ask(server.url)
    assert "\n" not in str(caught.value)
    assert len(server.seen) == 3


async def test_no_server_at_all():
    with pytest.raises(PolicyError, match="gave no reply in 3 tries"):
        await ask("http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (fails(401, "bad key"), "refuses the key; set a valid one"),
        (fails(404, "The model `m` does not exist"), "there is no model openai:m at http"),
        (fails(400, "temperature is not supported"), "refuses the request"),
    ],
    ids=["key", "name", "request"],
)
async def test_what_no_try_can_mend_is_said_at_once(reply, message):
    with Server(in_turn(reply)).running() as server:
        with pytest.raises(UnusableModelError, match=message):
            await ask(server.url)
    assert len(server.seen) == 1


async def test_a_full_context_is_its_own_error():
    full = fails(400, "This model's maximum context length is 2048 tokens. Please reduce the length of the messages.")
    with Server(in_turn(full)).running() as server:
        with pytest.raises(ContextOverflowError):
            await ask(server.url)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "gpt"}, "is no PROVIDER:NAME"),
        ({"model": "nobody:x"}, "nobody:x"),
        ({"model": "openai:x"}, "openai:x has no key: set OPENAI_API_KEY"),
        ({"model": "anthropic:x"}, "anthropic:x has no key: set ANTHROPIC_API_KEY"),
        ({"model": "openai:x", "api_key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY holds no API key"),
        ({"model": "openai:x", "base_url": "localhost:8000"}, "write it like http://localhost:8000/v1"),
    ],
    ids=["form", "provider", "openai-key", "anthropic-key", "named-key", "address"],
)
def test_a_model_that_cannot_be_opened(options, message, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=message):
        open_model(LLMOptions(**options), QUICK)


def test_prices_come_from_the_user_or_the_list():
    given = SpendLimits(usd_per_million_prompt=1.0, usd_per_million_completion=2.0, max_cost_usd=1.0)
    local = LLMOptions(model="openai:m", base_url="http://localhost:1/v1")
    assert list_prices(local, given) == (1.0, 2.0)
    assert list_prices(local, SpendLimits()) is None
    with pytest.raises(ConfigError, match="give --prices IN,OUT"):
        list_prices(local, SpendLimits(max_cost_usd=1.0))
    listed = list_prices(LLMOptions(model="openai:gpt-4o"), SpendLimits())
    assert listed is not None
    assert 0 < listed[0] < listed[1]
