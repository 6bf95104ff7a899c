"""Any model behind an OpenAI-compatible chat endpoint: OpenAI, vLLM, llama.cpp, SGLang, Ollama, most providers.

When and how often to try again is decided here, so that waits are bounded, seen and counted.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sandmle.errors import ContextOverflowError, PolicyError
from sandmle.policies.base import SamplingParams
from sandmle.policies.endpoint import DEFAULT_BASE_URL, Endpoint, read_key
from sandmle.policies.options import PolicyOptions
from sandmle.policies.replies import Fault, read_reply
from sandmle.policies.retry import wait_s
from sandmle.records import Completion, Message, Usage


class ChatPolicy:
    """A model behind a chat endpoint. Used from one event loop."""

    def __init__(
        self,
        model: str,
        options: PolicyOptions | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        """Opens no connection yet.

        Args:
            model: The model's name at the server.
            options: Address, key, limits, prices.
            sleep: How to wait before a retry.
            wall_clock: Seconds since the epoch, to read dates in headers.
            clock: Seconds from any start, to measure what failed tries and full slots take.
            rng: For the jitter of waits.

        Raises:
            ConfigError: The ``aiohttp`` package or the key is missing.
        """
        self.name = f"chat:{model}"
        self._model = model
        self._options = options or PolicyOptions()
        key = read_key(self._options)
        self._endpoint = Endpoint(self._options.base_url or DEFAULT_BASE_URL, key, wall_clock=wall_clock)
        self._slots = asyncio.Semaphore(self._options.concurrency)
        self._sleep, self._clock = sleep, clock
        self._rng = rng or random.Random()

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the model's reply; faults that may pass are tried again, with waits that the server asks for.

        Raises:
            PolicyError: There is no reply after all tries, or another try makes no sense.
            ContextOverflowError: The transcript does not fit into the model's context.
        """
        queued_s = failed_s = waited_s = 0.0
        n_tries = 0
        while True:
            asked_s = self._clock()
            async with self._slots:
                sent_s = self._clock()
                outcome = await self._ask(transcript, sampling)
            queued_s += sent_s - asked_s
            n_tries += 1
            if isinstance(outcome, Completion):
                lost_s = queued_s + failed_s + waited_s
                spent = Usage(requests=n_tries - 1, retries=n_tries - 1, retry_wait_s=waited_s, lost_s=lost_s)
                return outcome.replace(usage=outcome.usage + spent)
            failed_s += self._clock() - sent_s
            pause_s = wait_s(n_tries, outcome.retry_after_s, self._options.max_wait_s, self._rng)
            is_last = n_tries > self._options.max_retries or failed_s + waited_s + pause_s > sampling.patience_s
            if outcome.is_overflow or not outcome.may_pass or is_last:
                kind = ContextOverflowError if outcome.is_overflow else PolicyError
                tried = "" if outcome.is_overflow else f" ({n_tries} tries, {waited_s:.1f} s of waiting)"
                message = f"{self.name}: {outcome.message}{tried}"
                lost_s = queued_s + failed_s + waited_s
                raise kind(message, n_tries=n_tries, retry_wait_s=waited_s, lost_s=lost_s)
            await self._sleep(pause_s)
            waited_s += pause_s

    async def aclose(self) -> None:
        """Closes the connections. Idempotent."""
        await self._endpoint.aclose()

    async def _ask(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion | Fault:
        messages = [{"role": each.role, "content": each.content} for each in transcript if each.content]
        body = {"model": self._model, "messages": messages, **self._fields(sampling)}
        reply = await self._endpoint.post("chat/completions", body, sampling.timeout_s)
        if isinstance(reply, Fault):
            return reply
        return read_reply(reply, (self._options.usd_per_million_prompt, self._options.usd_per_million_completion))

    def _fields(self, sampling: SamplingParams) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": sampling.rng_seed,
        }
        if "max_completion_tokens" in self._options.extra_body:
            fields["max_tokens"] = None
        merged = {**fields, **self._options.extra_body}
        return {name: value for name, value in merged.items() if value is not None}


def open_chat(argument: str, options: PolicyOptions) -> ChatPolicy:
    """Returns the policy of a model.

    Raises:
        ConfigError: The ``aiohttp`` package or the key is missing.
    """
    return ChatPolicy(argument, options)
