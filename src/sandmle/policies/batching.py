"""A policy over a model in this process: all episodes that wait for a reply are served by one batch."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

from sandmle.errors import PolicyError
from sandmle.policies.base import SamplingParams
from sandmle.policies.renderers import ChatRenderer
from sandmle.policies.tokens import TokenPolicy, TokenReply, TokenRequest
from sandmle.records import Completion, Message


class TokenGenerator(Protocol):
    """A model that continues ids. May change its weights between two calls."""

    context: int
    """Most ids of prompt and reply together."""

    def generate(self, requests: Sequence[TokenRequest]) -> list[TokenReply]:
        """Returns one reply a request, in order. Called from one thread at a time."""
        ...

    def close(self) -> None:
        """Releases the model. Idempotent."""
        ...


@dataclass
class BatchTimes:
    """What generation has taken so far."""

    n_batches: int = 0
    n_replies: int = 0
    n_tokens: int = 0
    generate_s: float = 0.0


@dataclass(frozen=True)
class _Waiting:
    request: TokenRequest
    since_s: float
    answer: "asyncio.Future[TokenReply]"


class BatchedPolicy:
    """Gathers the calls that are waiting and answers them together.

    While a batch is generated, the sandbox works for the episodes whose replies are out; their next calls make up the
    next batch. With ``expect``, a batch begins only when every episode that is running waits for a reply: the batches
    are then as large as they can be, and the same in every run.
    """

    def __init__(
        self,
        name: str,
        renderer: ChatRenderer,
        generator: TokenGenerator,
        *,
        max_batch: int = 64,
        max_tokens: int | None = None,
    ) -> None:
        """Takes over a model.

        Args:
            name: The policy, for the record.
            renderer: The model's chat template.
            generator: The model; closed with the policy.
            max_batch: Replies at once.
            max_tokens: Most ids of a reply where the sampling names no limit; None for as many as the context holds.
        """
        self.name = name
        self.times = BatchTimes()
        self.renderer = renderer
        self.generator = generator
        self._max_batch, self._max_tokens = max_batch, max_tokens
        self._waiting: list[_Waiting] = []
        self._n_expected = 0
        self._worker: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the next assistant message; see :class:`sandmle.policies.tokens.TokenPolicy`."""
        policy = TokenPolicy(
            self.name, self.renderer, self._sample, context=self.generator.context, max_tokens=self._max_tokens
        )
        return await policy.generate(transcript, sampling)

    def expect(self, n_more: int) -> None:
        """Counts episodes in (positive) or out (negative) whose calls a batch waits for."""
        self._n_expected += n_more
        if self._waiting:
            self._wake()

    async def aclose(self) -> None:
        """Ends the batches and releases the model. Idempotent."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        self.generator.close()

    async def _sample(self, request: TokenRequest) -> TokenReply:
        waiting = _Waiting(request, time.monotonic(), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake()
        return await waiting.answer

    def _wake(self) -> None:
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._serve())

    async def _serve(self) -> None:
        await asyncio.sleep(0)  # let every call that is ready join
        while self._waiting and len(self._waiting) >= self._n_expected:
            # By seed, not by arrival: the same calls make the same batch.
            self._waiting.sort(key=lambda each: each.request.rng_seed)
            everyone, self._waiting = self._waiting, []
            for start in range(0, len(everyone), self._max_batch):
                await self._answer(everyone[start : start + self._max_batch])

    async def _answer(self, batch: list[_Waiting]) -> None:
        started_s = time.monotonic()
        requests = [each.request for each in batch]
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="generate")
        try:
            replies = await asyncio.get_running_loop().run_in_executor(self._thread, self.generator.generate, requests)
        except Exception as error:  # a model may break in any way; it is never the fault of an episode
            for each in batch:
                if not each.answer.done():
                    each.answer.set_exception(PolicyError(f"model {self.name} broke: {type(error).__name__}: {error}"))
            return
        self.times.n_batches += 1
        self.times.n_replies += len(replies)
        self.times.n_tokens += sum(len(reply.token_ids) for reply in replies)
        self.times.generate_s += time.monotonic() - started_s
        for each, reply in zip(batch, replies, strict=True):
            if not each.answer.done():
                each.answer.set_result(replace(reply, waited_s=started_s - each.since_s))
