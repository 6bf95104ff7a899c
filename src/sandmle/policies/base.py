"""The contract of a policy: a transcript in, one reply out."""

from typing import Protocol, runtime_checkable

from pydantic import Field

from sandmle.records import Completion, Message, Record


class SamplingParams(Record):
    """How a reply is sampled."""

    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int | None = Field(default=None, gt=0)
    """Most tokens of one reply; None leaves it to the server."""
    rng_seed: int = 0
    """Passed to the server where it takes one, and to every scripted policy."""
    timeout_s: float = Field(default=300.0, gt=0)
    """Seconds for one try of a call: a server that has not sent the whole reply by then has failed."""
    patience_s: float = Field(default=600.0, ge=0)
    """Seconds that the failed tries of one call and the pauses between them may take; then there is no further try."""


@runtime_checkable
class Policy(Protocol):
    """Anything that answers a transcript. Holds no state of an episode: all it knows is the transcript."""

    name: str

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the next assistant message.

        Raises:
            PolicyError: The model failed after all allowed retries.
            ContextOverflowError: The transcript does not fit into the model's context.
        """
        ...

    async def aclose(self) -> None:
        """Releases connections. Idempotent."""
        ...
