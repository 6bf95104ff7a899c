"""What is said to a model and what it answers, and trying again with patience.

How often and how long to wait is decided here, not in the providers' clients, so that waits are bounded and counted.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self, runtime_checkable

from sandmle.authoring.roles.options import SpendLimits
from sandmle.errors import ConfigError, PolicyError
from sandmle.policies.replies import Fault
from sandmle.policies.retry import wait_s

Speaker = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Said:
    """One message of a conversation."""

    speaker: Speaker
    text: str


@dataclass(frozen=True)
class Answer:
    """What a model replied, and what it took."""

    text: str
    finish_reason: Literal["stop", "length", "content_filter", "other"] = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


class UnusableModelError(ConfigError):
    """The model cannot be used at all: no key, no such model, no server. Another try makes no sense."""


class Responder(Protocol):
    """Something that answers conversations."""

    async def ask(self, conversation: Sequence[Said]) -> Answer:
        """Returns the reply.

        Raises:
            UnusableModelError: Nobody will ever reply.
            ContextOverflowError: The conversation is too long for the model.
            PolicyError: There is no reply after all tries.
        """
        ...


@runtime_checkable
class OpenModel(Responder, Protocol):
    """A model of a provider or a server; a context that closes its connections."""

    async def __aenter__(self) -> Self:
        """Opens what the model needs."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes all connections."""
        ...


async def patiently(
    ask_once: Callable[[], Awaitable[Answer | Fault]], name: str, limits: SpendLimits, rng: random.Random
) -> Answer:
    """Returns the first answer; after a fault it waits and asks again.

    Args:
        ask_once: One try; raises where no further one can help.
        name: The model's, for the message.
        limits: Tries and waits.
        rng: For the jitter of waits.

    Raises:
        PolicyError: There is no answer after all tries.
    """
    n_tries, waited_s = 0, 0.0
    while True:
        outcome = await ask_once()
        n_tries += 1
        if isinstance(outcome, Answer):
            return outcome
        if n_tries > limits.max_retries:
            raise PolicyError(
                f"{name} gave no reply in {n_tries} tries and {waited_s:.0f} s of waiting: {outcome.message}",
                n_tries=n_tries,
                retry_wait_s=waited_s,
            )
        pause_s = wait_s(n_tries, outcome.retry_after_s, limits.max_wait_s, rng)
        await asyncio.sleep(pause_s)
        waited_s += pause_s
