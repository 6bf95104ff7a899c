"""Our client sends what the ``openai`` client sends, without its walk over every message."""

import pytest

from tests.policies.server import Server, in_turn, says

openai = pytest.importorskip("openai")
TALK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hällo"}]


@pytest.mark.parametrize("is_raw", [False, True], ids=["parsed", "raw"])
async def test_the_same_bytes_of_json_arrive(is_raw):
    from sandmle.policies.openai_client import LeanClient

    with Server(in_turn(says("fine"))).running() as server:
        for kind in (openai.AsyncOpenAI, LeanClient):
            async with kind(base_url=server.url, api_key="k", max_retries=0) as client:
                chat = client.chat.completions.with_raw_response if is_raw else client.chat.completions
                await chat.create(model="m", messages=TALK, max_tokens=5, extra_body={"top_k": 3})
    first, second = (seen.body for seen in server.seen)
    assert first == second
    assert second["messages"] == TALK
