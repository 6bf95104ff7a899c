"""A model behind a vLLM server, token in and token out: ids go there and ids come back, with log-probabilities.

The server is asked by its completions endpoint with ``return_token_ids`` (vLLM 0.10.2 or newer). Its log-probabilities
are those of the model's own distribution unless it runs with ``--logprobs-mode processed_logprobs``; at temperature 1
the two are the same.
"""

import json
from typing import TYPE_CHECKING, Any

from sandmle.errors import ConfigError, ContextOverflowError, PolicyError
from sandmle.policies.base import SamplingParams
from sandmle.policies.chat import open_client, read_key
from sandmle.policies.options import PolicyOptions
from sandmle.policies.renderers import ChatRenderer
from sandmle.policies.replies import fault_of_status
from sandmle.policies.tokens import TokenPolicy, TokenReply, TokenRequest
from sandmle.records import Completion, Message

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NO_LIMIT = 1 << 30


class VLLMPolicy:
    """A policy over a vLLM server. Tries again are the client's: with waits that the server asks for."""

    def __init__(self, model: str, renderer: ChatRenderer, client: "AsyncOpenAI", timeout_s: float = 600.0) -> None:
        """Takes over a client.

        Args:
            model: The model's name at the server.
            renderer: Its chat template.
            client: Closed with the policy.
            timeout_s: Seconds for one try.
        """
        self.name = f"vllm:{model}"
        self._model, self._client, self._timeout_s = model, client, timeout_s
        # How long a context is only the server knows; it says so when one is full.
        self._tokens = TokenPolicy(self.name, renderer, self._sample, context=_NO_LIMIT)

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the next assistant message; see :class:`sandmle.policies.tokens.TokenPolicy`."""
        return await self._tokens.generate(transcript, sampling)

    async def aclose(self) -> None:
        """Closes the connections. Idempotent."""
        await self._client.close()

    async def _sample(self, request: TokenRequest) -> TokenReply:
        import openai

        try:
            response = await self._client.completions.with_raw_response.create(
                model=self._model,
                prompt=list(request.prompt_ids),
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                top_p=request.top_p,
                seed=request.rng_seed,
                logprobs=0,
                timeout=self._timeout_s,
                extra_body={"return_token_ids": True},
            )
            return _read(response.text, self.name)
        except openai.APIStatusError as error:
            fault = fault_of_status(error.status_code, error.response.text)
            kind = ContextOverflowError if fault.is_overflow else PolicyError
            raise kind(f"{self.name}: {fault.message}", n_tries=1) from error
        except openai.OpenAIError as error:
            raise PolicyError(
                f"{self.name}: no reply from {self._client.base_url} ({type(error).__name__}); is the server still up?",
                n_tries=1,
            ) from error


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
    client = open_client(options.base_url, read_key(options), options.max_retries)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(argument)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"the tokenizer of {argument} cannot be loaded: {reason}") from error
    return VLLMPolicy(argument, ChatRenderer(tokenizer, argument), client)


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
