"""Any model behind an OpenAI-compatible chat endpoint: OpenAI, vLLM, llama.cpp, SGLang, Ollama, most providers.

The ``openai`` package does the HTTP; when and how often to try again is decided here, so that waits are bounded, seen
and counted.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sandmle.errors import ConfigError, ContextOverflowError, PolicyError
from sandmle.policies.base import SamplingParams
from sandmle.policies.options import PolicyOptions
from sandmle.policies.replies import Fault, fault_of_status, read_reply
from sandmle.policies.retry import retry_after_s, wait_s
from sandmle.records import Completion, Message, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
_NO_KEY = "no-key-needed"


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
            ConfigError: The ``openai`` package or the key is missing.
        """
        self.name = f"chat:{model}"
        self._model = model
        self._options = options or PolicyOptions()
        self._key = read_key(self._options)
        self._client = open_client(self._options.base_url or DEFAULT_BASE_URL, self._key)
        self._slots = asyncio.Semaphore(self._options.concurrency)
        self._sleep, self._wall_clock, self._clock = sleep, wall_clock, clock
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
                message = f"{self.name}: {outcome.message.replace(self._key, '***')}{tried}"
                lost_s = queued_s + failed_s + waited_s
                raise kind(message, n_tries=n_tries, retry_wait_s=waited_s, lost_s=lost_s)
            await self._sleep(pause_s)
            waited_s += pause_s

    async def aclose(self) -> None:
        """Closes the connections. Idempotent."""
        await self._client.close()

    async def _ask(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion | Fault:
        import openai

        try:
            async with asyncio.timeout(sampling.timeout_s):
                response = await self._client.chat.completions.with_raw_response.create(
                    model=self._model,
                    messages=[{"role": each.role, "content": each.content} for each in transcript if each.content],  # type: ignore[misc]
                    timeout=sampling.timeout_s,
                    extra_body=self._fields(sampling),
                )
                text = response.text
        except (TimeoutError, openai.APITimeoutError):
            return Fault(f"no reply within {sampling.timeout_s:g} s", may_pass=True)
        except openai.APIStatusError as error:
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            asked_s = retry_after_s(headers, self._wall_clock())
            return fault_of_status(error.status_code, error.response.text, asked_s)
        except openai.APIConnectionError as error:
            return Fault(f"no connection to {self._client.base_url}: {error.__cause__ or error}", may_pass=True)
        except openai.OpenAIError as error:
            return Fault(f"{type(error).__name__}: {error}")
        prices = (self._options.usd_per_million_prompt, self._options.usd_per_million_completion)
        return read_reply(text, prices)

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
        ConfigError: The ``openai`` package or the key is missing.
    """
    return ChatPolicy(argument, options)


def read_key(options: PolicyOptions) -> str:
    """Returns the key from the environment; none is sent to another server than OpenAI's unless it is named."""
    name = options.api_key_env or (DEFAULT_KEY_ENV if options.base_url is None else None)
    if name is None:
        return _NO_KEY
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(
            f"the environment variable {name} holds no API key; set it, or give a base_url that needs none"
        )
    return key


def open_client(base_url: str, key: str, max_retries: int = 0) -> "AsyncOpenAI":
    """Returns a client of an OpenAI-compatible server.

    Raises:
        ConfigError: The address is none, or the ``openai`` package is missing.
    """
    wrong = f"base_url {base_url!r} is no address; write it like http://localhost:8000/v1"
    if not base_url.startswith(("http://", "https://")):
        raise ConfigError(wrong)
    try:
        from sandmle.policies.openai_client import LeanClient
    except ImportError as error:
        raise ConfigError(
            "models behind an address need the openai package; run: pip install 'sandmle[llm]'"
        ) from error
    try:
        parts = urlsplit(base_url)
        if not parts.hostname or parts.port == 0:  # a port out of range is a ValueError
            raise ConfigError(wrong)
        return LeanClient(base_url=base_url, api_key=key, max_retries=max_retries)
    except ConfigError:
        raise
    except Exception as error:  # the client's HTTP library has its own error for a bad address
        raise ConfigError(wrong) from error
