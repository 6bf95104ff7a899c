"""A policy over anything that continues ids: transcripts are rendered once, sampled ids are kept as they are."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sandmle.errors import ContextOverflowError
from sandmle.grammars.scan import clean_text
from sandmle.policies.base import SamplingParams
from sandmle.policies.renderers import ChatRenderer
from sandmle.records import Completion, FinishReason, Message, Usage, canonical_json


@dataclass(frozen=True)
class TokenRequest:
    """One reply to be sampled.

    Attributes:
        prompt_ids: What the model continues.
        max_tokens: Most ids of the reply.
        temperature: 0 takes the likeliest id each time.
        top_p: Share of probability that is drawn from.
        rng_seed: Seeds the draws of this reply alone, whatever else is sampled at the time.
    """

    prompt_ids: tuple[int, ...]  # [num_prompt_tokens]
    max_tokens: int
    temperature: float
    top_p: float
    rng_seed: int


@dataclass(frozen=True)
class TokenReply:
    """What was sampled: ids with the one that ended the reply, and their log-probabilities."""

    token_ids: tuple[int, ...]  # [num_completion_tokens]
    logprobs: tuple[float, ...] | None  # [num_completion_tokens]
    ended: bool
    """The model ended the reply itself, by its last id."""
    waited_s: float = 0.0
    """Time before the model began."""


Sample = Callable[[TokenRequest], Awaitable[TokenReply]]
"""Continues ids; raises PolicyError when the model broke."""


class TokenPolicy:
    """Any source of ids as a policy. Holds no state of an episode."""

    def __init__(
        self, name: str, renderer: ChatRenderer, sample: Sample, *, context: int, max_tokens: int | None = None
    ) -> None:
        """Makes the policy.

        Args:
            name: The policy, for the record.
            renderer: The model's chat template.
            sample: Continues ids.
            context: Most ids of prompt and reply together.
            max_tokens: Most ids of a reply where the sampling names no limit; None for as many as the context holds.
        """
        self.name = name
        self.renderer = renderer
        self._sample = sample
        self._context, self._max_tokens = context, max_tokens

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the next assistant message, with its ids and those it was sampled after.

        Raises:
            ContextOverflowError: The transcript leaves no room for a reply.
            PolicyError: The model broke.
        """
        prompt = self.renderer.prompt(transcript)
        room = self._context - len(prompt)
        if room < 1:
            raise ContextOverflowError(f"{len(prompt)} tokens do not fit into a context of {self._context}")
        request = TokenRequest(
            prompt_ids=prompt,
            max_tokens=min(room, sampling.max_tokens or self._max_tokens or room),
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            rng_seed=_reply_seed(sampling.rng_seed, sum(message.role == "assistant" for message in transcript)),
        )
        reply = await self._sample(request)
        return Completion(
            text=clean_text(self.renderer.reply_text(reply.token_ids, ended=reply.ended)),
            finish_reason=FinishReason.STOP if reply.ended else FinishReason.LENGTH,
            prompt_ids=prompt,
            token_ids=reply.token_ids,
            logprobs=reply.logprobs,
            usage=Usage(
                requests=1,
                lost_s=reply.waited_s,
                prompt_tokens=len(prompt),
                completion_tokens=len(reply.token_ids),
            ),
        )

    async def aclose(self) -> None:
        """Does nothing: whoever gave the model ends it."""


def _reply_seed(episode_seed: int, turn: int) -> int:
    text = canonical_json([episode_seed, turn])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])
