"""Sampling with a model in this process: token-faithful, seeded reply by reply, batched."""

import asyncio
from typing import Any

import pytest
import torch

from sandmle.errors import ContextOverflowError, PolicyError
from sandmle.policies import SamplingParams
from sandmle.policies.hf import HFGenerator, make_policy
from sandmle.policies.tokens import TokenPolicy, TokenReply, TokenRequest
from sandmle.records import Completion, FinishReason, Message
from sandmle.scaffolds.tokens import TokenTrail
from tests.policies.tiny import tiny

START = (Message(role="system", content="You are an expert."), Message(role="user", content="import pandas"))


def policy(**settings: Any) -> Any:
    return make_policy(*tiny(), "hf:tiny", **settings)


async def episode(opened: Any, seed: int, turns: int = 3, **sampling: Any) -> TokenTrail:
    transcript, trail = list(START), TokenTrail()
    for turn in range(turns):
        wanted = SamplingParams(**{"max_tokens": 12, "rng_seed": seed, **sampling})
        completion = await opened.generate(tuple(transcript), wanted)
        trail.add(completion)
        transcript += [
            Message(role="assistant", content=completion.text, token_ids=completion.token_ids),
            Message(role="user", content=f"Observation: {turn}"),
        ]
    return trail


async def test_logprobs_are_those_of_the_trained_model_and_arrays_of_one_length() -> None:
    opened, model = policy(), tiny()[0]
    trails = await asyncio.gather(*(episode(opened, seed) for seed in range(4)))
    assert opened.times.n_batches == 3  # every turn of the four episodes was one batch
    for trail in trails:
        arrays = trail.arrays()
        ids, mask = arrays["completion_ids"], torch.tensor(arrays["loss_mask"]).bool()
        assert len(ids) == len(arrays["loss_mask"]) == len(arrays["logprobs"])
        whole = torch.tensor([arrays["prompt_ids"] + ids])
        with torch.no_grad():
            logits = model(whole).logits[0, len(arrays["prompt_ids"]) - 1 : -1]
        again = torch.log_softmax(logits.float(), -1).gather(1, torch.tensor(ids)[:, None])[:, 0]
        assert (again - torch.tensor(arrays["logprobs"]))[mask].abs().max() < 1e-4
    await opened.aclose()


async def test_without_a_limit_a_reply_may_fill_the_context() -> None:
    asked: list[TokenRequest] = []

    async def sample(request: TokenRequest) -> TokenReply:
        asked.append(request)
        return TokenReply((5,), (-1.0,), ended=True)

    renderer = policy().renderer
    for limit, most in ((None, None), (7, None), (None, 9), (7, 9)):
        opened = TokenPolicy("x", renderer, sample, context=4096, max_tokens=limit)
        await opened.generate(START, SamplingParams(max_tokens=most))
    room = 4096 - len(asked[0].prompt_ids)
    assert [each.max_tokens for each in asked] == [room, 7, 9, 9]


async def test_a_reply_does_not_depend_on_its_neighbours() -> None:
    opened = policy()
    together = await asyncio.gather(*(episode(opened, seed) for seed in range(3)))
    alone = await episode(opened, 1)
    assert alone.arrays()["completion_ids"] == together[1].arrays()["completion_ids"]
    assert alone.arrays()["completion_ids"] != together[2].arrays()["completion_ids"]
    await opened.aclose()


async def test_temperature_0_takes_the_likeliest() -> None:
    opened = policy()
    one, other = await asyncio.gather(*(episode(opened, seed, 1, temperature=0.0) for seed in (1, 2)))
    assert one.arrays()["completion_ids"] == other.arrays()["completion_ids"]
    # Two rows of one batch need not agree to the last bit.
    assert one.arrays()["logprobs"] == pytest.approx(other.arrays()["logprobs"], abs=1e-4)
    await opened.aclose()


def test_top_p_draws_from_the_likeliest_only() -> None:
    model = tiny()[0]
    generator = HFGenerator(model, [], 0)
    prompt = (5, 6, 7)
    with torch.no_grad():
        best = int(model(torch.tensor([prompt])).logits[0, -1].argmax())
    replies = generator.generate([TokenRequest(prompt, 1, 1.0, 1e-6, seed) for seed in range(20)])
    assert {reply.token_ids for reply in replies} == {(best,)}
    assert replies[0].logprobs[0] == pytest.approx(0.0, abs=1e-5)
    free = generator.generate([TokenRequest(prompt, 1, 1.0, 1.0, seed) for seed in range(20)])
    assert len({reply.token_ids for reply in free}) > 5


def test_draws_follow_the_distribution() -> None:
    generator = HFGenerator(tiny()[0], [], 0)
    replies = generator.generate([TokenRequest((5, 6, 7), 1, 0.05, 1.0, seed) for seed in range(400)])
    counts = {reply.token_ids: sum(each.token_ids == reply.token_ids for each in replies) for reply in replies}
    for reply in replies:
        expected = float(torch.tensor(reply.logprobs[0]).exp())
        assert abs(counts[reply.token_ids] / 400 - expected) < 0.1


async def test_t13_a_reply_ends_by_the_templates_end_and_is_cut_by_its_limit() -> None:
    opened = policy()
    end = opened.renderer.end_id

    class Fixed:
        context = 100

        def generate(self, requests: list[TokenRequest]) -> list[TokenReply]:
            return [TokenReply((9, end), (-1.0, -1.0), True), TokenReply((9, 9), (-1.0, -1.0), False)][: len(requests)]

        def close(self) -> None:
            pass

    opened.generator = Fixed()
    one, other = await asyncio.gather(*(opened.generate(START, SamplingParams(rng_seed=seed)) for seed in (1, 2)))
    assert {one.finish_reason, other.finish_reason} == {FinishReason.STOP, FinishReason.LENGTH}
    assert "<|im_end|>" not in one.text
    assert all(len(each.token_ids) == 2 for each in (one, other))
    await opened.aclose()


async def test_a_full_context_is_told_from_a_broken_model() -> None:
    opened = policy(context=20)
    with pytest.raises(ContextOverflowError):
        await opened.generate((START[0], Message(role="user", content="import pandas " * 50)), SamplingParams())

    class Broken:
        context = 1000

        def generate(self, requests: list[TokenRequest]) -> list[TokenReply]:
            raise RuntimeError("no memory")

        def close(self) -> None:
            pass

    opened.generator = Broken()
    with pytest.raises(PolicyError, match="no memory"):
        await opened.generate(START, SamplingParams())
    await opened.aclose()


async def test_a_batch_waits_for_the_episodes_that_are_running() -> None:
    opened = policy()
    opened.expect(2)
    first = asyncio.ensure_future(opened.generate(START, SamplingParams(max_tokens=2, rng_seed=1)))
    await asyncio.sleep(0.05)
    assert not first.done()
    second: Completion = await opened.generate(START, SamplingParams(max_tokens=2, rng_seed=2))
    assert (await first).token_ids
    assert second.token_ids
    assert opened.times.n_batches == 1
    third = asyncio.ensure_future(opened.generate(START, SamplingParams(max_tokens=2, rng_seed=3)))
    await asyncio.sleep(0)
    opened.expect(-1)
    assert (await third).token_ids
    await opened.aclose()
