"""A model behind a vLLM server, token in and token out: ids go there and ids come back, with log-probabilities.

The server is asked by its completions endpoint with ``return_token_ids`` (vLLM 0.10.2 or newer). Its log-probabilities
are those of the model's own distribution unless it runs with ``--logprobs-mode processed_logprobs``; at temperature 1
the two are the same.
"""

import asyncio
import json
import random
from typing import Any

from sandmle.errors import ConfigError, ContextOverflowError, PolicyError
from sandmle.policies.base import SamplingParams
from sandmle.policies.endpoint import Endpoint, read_key
from sandmle.policies.options import PolicyOptions
from sandmle.policies.renderers import ChatRenderer
from sandmle.policies.replies import Fault
from sandmle.policies.retry import wait_s
from sandmle.policies.tokens import TokenPolicy, TokenReply, TokenRequest
from sandmle.records import Completion, Message

_NO_LIMIT = 1 << 30


class VLLMPolicy:
    """A policy over a vLLM server. Faults that may pass are tried again, with waits that the server asks for."""

    def __init__(
        self,
        model: str,
        renderer: ChatRenderer,
        endpoint: Endpoint,
        *,
        timeout_s: float = 600.0,
        max_retries: int = 2,
        max_wait_s: float = 30.0,
    ) -> None:
        """Takes over an endpoint.

        Args:
            model: The model's name at the server.
            renderer: Its chat template.
            endpoint: Closed with the policy.
            timeout_s: Seconds for one try.
            max_retries: Further tries of a request after faults that may pass.
            max_wait_s: Longest pause before a try.
        """
        self.name = f"vllm:{model}"
        self._model, self._endpoint, self._timeout_s = model, endpoint, timeout_s
        self._max_retries, self._max_wait_s, self._rng = max_retries, max_wait_s, random.Random()
        # How long a context is only the server knows; it says so when one is full.
        self._tokens = TokenPolicy(self.name, renderer, self._sample, context=_NO_LIMIT)

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the next assistant message; see :class:`sandmle.policies.tokens.TokenPolicy`."""
        return await self._tokens.generate(transcript, sampling)

    async def aclose(self) -> None:
        """Closes the connections. Idempotent."""
        await self._endpoint.aclose()

    async def _sample(self, request: TokenRequest) -> TokenReply:
        body = {
            "model": self._model,
            "prompt": list(request.prompt_ids),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.rng_seed,
            "logprobs": 0,
            "return_token_ids": True,
        }
        n_tries, waited_s = 0, 0.0
        while True:
            reply = await self._endpoint.post("completions", body, self._timeout_s)
            n_tries += 1
            if not isinstance(reply, Fault):
                return _read(reply, self.name)
            if not reply.may_pass or n_tries > self._max_retries:
                kind = ContextOverflowError if reply.is_overflow else PolicyError
                asked = " Is the server still up?" if reply.status is None else ""
                raise kind(f"{self.name}: {reply.message}.{asked}", n_tries=n_tries, retry_wait_s=waited_s)
            pause_s = wait_s(n_tries, reply.retry_after_s, self._max_wait_s, self._rng)
            await asyncio.sleep(pause_s)
            waited_s += pause_s


def open_vllm(argument: str, options: PolicyOptions) -> VLLMPolicy:
    """Opens ``vllm:MODEL``: the name at the server, and the folder or cached name of its tokenizer.

    Raises:
        ConfigError: There is no address, a package is missing, or the tokenizer or its template cannot be used.
    """
    if options.base_url is None:
        raise ConfigError(
            f"policy vllm:{argument} needs the server's address, such as --base-url http://localhost:8000/v1"
        )
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise ConfigError("policy vllm needs transformers; run: pip install 'sandmle[llm,train]'") from error
    endpoint = Endpoint(options.base_url, read_key(options))
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(argument)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"the tokenizer of {argument} cannot be loaded: {reason}") from error
    return VLLMPolicy(
        argument,
        ChatRenderer(tokenizer, argument),
        endpoint,
        max_retries=options.max_retries,
        max_wait_s=options.max_wait_s,
    )


def _read(text: str, name: str) -> TokenReply:
    try:
        choice = json.loads(text)["choices"][0]
        ids, logprobs = choice.get("token_ids"), (choice.get("logprobs") or {}).get("token_logprobs")
        ended = choice.get("finish_reason") == "stop"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise PolicyError(f"{name}: the server's reply is none: {text[:100]!r}", n_tries=1) from error
    if not ids or not logprobs or len(ids) != len(logprobs):
        raise PolicyError(f"{name}: the server returns no token ids; it has to be vLLM 0.10.2 or newer", n_tries=1)
    return TokenReply(tuple(ids), tuple(float(each) for each in logprobs), ended)
