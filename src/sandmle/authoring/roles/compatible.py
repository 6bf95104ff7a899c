"""A model behind an OpenAI-compatible server (vLLM, SGLang, llama.cpp, DeepSeek), asked as the chat policies ask it."""

import random
from collections.abc import Sequence
from typing import Any, Self

from sandmle.authoring.roles.options import LLMOptions, SpendLimits
from sandmle.authoring.roles.talking import Answer, Said, UnusableModelError, patiently
from sandmle.errors import ContextOverflowError
from sandmle.policies.endpoint import NO_KEY, Endpoint
from sandmle.policies.replies import Fault, read_reply
from sandmle.records import FinishReason

_NO_PRICES = (None, None)
_REFUSES_KEY = frozenset({401, 403})
_SHOWN_CHARS = 200


class CompatibleModel:
    """A model by its server's address; a context that closes its connections."""

    def __init__(self, name: str, base_url: str, key: str | None, options: LLMOptions, limits: SpendLimits) -> None:
        """Opens no connection yet.

        Args:
            name: The model's name at the server.
            base_url: Address with its ``/v1``.
            key: Sent there; None for none.
            options: Settings, and the name for messages.
            limits: Retries and timeouts.

        Raises:
            ConfigError: The address is none, or the llm extra is missing.
        """
        self._name, self._options, self._limits = name, options, limits
        self._endpoint = Endpoint(base_url, key or NO_KEY)
        self._rng = random.Random()

    async def __aenter__(self) -> Self:
        """Does nothing: the first request opens connections."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Closes all connections."""
        await self._endpoint.aclose()

    async def ask(self, conversation: Sequence[Said]) -> Answer:
        """Returns the reply; faults that may pass are tried again, with waits that the server asks for."""
        body = self._body(conversation)

        async def ask_once() -> Answer | Fault:
            reply = await self._endpoint.post("chat/completions", body, self._limits.timeout_s)
            if isinstance(reply, Fault):
                return self._judged(reply)
            made = read_reply(reply, _NO_PRICES)
            if isinstance(made, Fault):
                return self._judged(made)
            usage = made.usage
            reason: Any = "other" if made.finish_reason is FinishReason.OTHER else str(made.finish_reason)
            return Answer(made.text, reason, usage.prompt_tokens, usage.completion_tokens)

        return await patiently(ask_once, self._options.model, self._limits, self._rng)

    def _body(self, conversation: Sequence[Said]) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {
            "model": self._name,
            "messages": [{"role": said.speaker, "content": said.text} for said in conversation],
            "max_tokens": options.max_tokens,
        }
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if "max_completion_tokens" in options.extra_body:
            del body["max_tokens"]
        return {**body, **options.extra_body}

    def _judged(self, fault: Fault) -> Fault:
        """Returns a fault that may pass, shortened; raises for those that no further try can mend."""
        name, where = self._options.model, f" at {self._endpoint.base_url}"
        told = fault.message[:_SHOWN_CHARS]
        if fault.is_overflow:
            raise ContextOverflowError(f"the conversation no longer fits into the context of {name}")
        if fault.status in _REFUSES_KEY:
            raise UnusableModelError(
                f"{name}{where} refuses the key; set a valid one, or name its variable with --api-key-env"
            )
        if fault.status == 404:
            raise UnusableModelError(f"there is no model {name}{where}; check the name and the address ({told})")
        if "insufficient_quota" in fault.message:
            raise UnusableModelError(
                f"{name}{where} says that the account has no credit left; top it up and go on with --resume"
            )
        if not fault.may_pass:
            raise UnusableModelError(f"{name}{where} refuses the request: {told}")
        return fault
