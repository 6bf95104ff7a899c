"""Any model a user has, by name: behind an address as the chat policies ask it, of a provider through pydantic-ai."""

import asyncio
import os
import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from sandmle.authoring.roles.compatible import CompatibleModel
from sandmle.authoring.roles.options import LLMOptions, SpendLimits
from sandmle.authoring.roles.talking import Answer, OpenModel, Said, UnusableModelError, patiently
from sandmle.errors import ConfigError, ContextOverflowError
from sandmle.policies.replies import Fault

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

INSTALL = "authoring with a model needs the llm extra; run: pip install 'sandmle[llm]'"
_SHOWN_CHARS = 200
_KEY_VARIABLE = re.compile(r"[A-Z][A-Z_]*_API_KEY")


class HostedModel:
    """A provider's model; a context that closes its connections."""

    def __init__(self, model: "Model", options: LLMOptions, limits: SpendLimits) -> None:
        """Opens no connection yet.

        Args:
            model: The model, of pydantic-ai.
            options: Name and settings, for messages and requests.
            limits: Retries and timeouts.
        """
        self._model, self._options, self._limits = model, options, limits
        self._rng = random.Random()

    async def __aenter__(self) -> Self:
        """Opens what the model needs."""
        await self._model.__aenter__()
        return self

    async def __aexit__(self, *exc_info: Any) -> None:
        """Closes all connections."""
        await self._model.__aexit__(*exc_info)

    async def ask(self, conversation: Sequence[Said]) -> Answer:
        """Returns the reply; faults that may pass are tried again, with waits that the server asks for."""
        from pydantic_ai.direct import model_request
        from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior

        messages = _messages(conversation)
        settings = self._settings()

        async def ask_once() -> Answer | Fault:
            try:
                async with asyncio.timeout(self._limits.timeout_s):
                    return _answer(await model_request(self._model, messages, model_settings=settings))
            except TimeoutError:
                return Fault(f"no reply within {self._limits.timeout_s:g} s", may_pass=True)
            except ModelAPIError as error:
                self._raise_if_final(error)
                return Fault(_first_line(error), may_pass=True, retry_after_s=getattr(error, "retry_after", None))
            except UnexpectedModelBehavior as error:
                return Fault(_first_line(error), may_pass=True)

        return await patiently(ask_once, self._options.model, self._limits, self._rng)

    def _settings(self) -> Any:
        options = self._options
        # Retries are counted here; the providers' clients make none.
        settings: dict[str, Any] = {
            "max_tokens": options.max_tokens,
            "timeout": self._limits.timeout_s,
            "max_retries": 0,
        }
        if options.temperature is not None:
            settings["temperature"] = options.temperature
        if options.extra_body:
            settings["extra_body"] = options.extra_body
        return settings

    def _raise_if_final(self, error: "ModelAPIError") -> None:
        """Raises for faults that no further try can mend."""
        from pydantic_ai import exceptions

        name = self._options.model
        if isinstance(error, exceptions.ModelContextWindowExceededError):
            raise ContextOverflowError(f"the conversation no longer fits into the context of {name}") from error
        if isinstance(error, exceptions.ModelAuthenticationError):
            raise UnusableModelError(
                f"{name} refuses the key; set a valid one, or name its variable with --api-key-env"
            ) from error
        if isinstance(error, exceptions.ModelNotFoundError):
            raise UnusableModelError(
                f"there is no model {name}; check the name and the address ({_first_line(error)})"
            ) from error
        if isinstance(error, exceptions.ModelQuotaExceededError):
            raise UnusableModelError(
                f"{name} says that the account has no credit left; top it up and go on with --resume"
            ) from error
        status = getattr(error, "status_code", None)
        passing = (exceptions.ModelRateLimitError, exceptions.ModelUnavailableError, exceptions.ModelServerError)
        may_pass = isinstance(error, (*passing, exceptions.ModelConnectionError)) or status in (408, 409, 425, 429)
        if not may_pass and not (status is not None and status >= 500):
            raise UnusableModelError(f"{name} refuses the request: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Returns an error's text on one line, with the cause where the text itself says nothing."""
    cause = error.__cause__
    told = str(error) if not cause or len(str(error)) > 40 else f"{error}: {cause}"
    return " ".join(told.split())[:_SHOWN_CHARS]


def _messages(conversation: Sequence[Said]) -> "list[ModelMessage]":
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    messages: list[ModelMessage] = []
    parts: list[Any] = []
    for said in conversation:
        if said.speaker == "assistant":
            messages += [ModelRequest(parts=parts), ModelResponse(parts=[TextPart(said.text)])]
            parts = []
        else:
            parts.append((SystemPromptPart if said.speaker == "system" else UserPromptPart)(said.text))
    return [*messages, ModelRequest(parts=parts)]


def _answer(response: "ModelResponse") -> Answer:
    from pydantic_ai.messages import TextPart

    reason = response.finish_reason
    known = reason in ("stop", "length", "content_filter")
    return Answer(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        finish_reason=reason if known else "other",  # type: ignore[arg-type]
        prompt_tokens=response.usage.input_tokens,
        completion_tokens=response.usage.output_tokens,
    )


def open_model(options: LLMOptions, limits: SpendLimits) -> OpenModel:
    """Returns a model by ``PROVIDER:NAME``.

    With ``base_url`` any provider name stands for an OpenAI-compatible server, for example ``openai:qwen3`` on vLLM,
    SGLang or llama.cpp; a key is sent there only if ``api_key_env`` names it.

    Raises:
        ConfigError: The llm extra or the key is missing, or the provider is unknown.
    """
    provider, _, name = options.model.partition(":")
    if not provider or not name:
        raise ConfigError(f"model {options.model!r} is no PROVIDER:NAME; write it like openai:gpt-5")
    key = _key(options)
    if options.base_url is not None:
        return CompatibleModel(name, options.base_url, key, options, limits)
    try:
        import pydantic_ai.direct  # noqa: F401  (is the extra installed?)
    except ImportError as error:
        raise ConfigError(INSTALL) from error
    return HostedModel(_hosted(options.model, key), options, limits)


def _key(options: LLMOptions) -> str | None:
    if options.api_key_env is None:
        return None
    key = os.environ.get(options.api_key_env, "").strip()
    if not key:
        raise ConfigError(f"the environment variable {options.api_key_env} holds no API key; set it, or name another")
    return key


def _hosted(model: str, key: str | None) -> "Model":
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

    def provider_of(name: str) -> "Provider[Any]":
        if key is None:
            return infer_provider(name)
        factory: Any = infer_provider_class(name)
        made: Provider[Any] = factory(api_key=key)
        return made

    try:
        return infer_model(model, provider_of)
    except ImportError as error:
        raise ConfigError(f"{model} needs another package: {_first_line(error)}") from error
    except UserError as error:
        variable = _KEY_VARIABLE.search(str(error))
        if variable is None:
            raise ConfigError(f"{model} cannot be used: {_first_line(error)}") from error
        raise ConfigError(
            f"{model} has no key: set {variable.group()}, name another variable with --api-key-env, or give the "
            "--base-url of a server that needs none"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{model} names no provider that is known: {_first_line(error)}") from error


def list_prices(options: LLMOptions, limits: SpendLimits) -> tuple[float, float] | None:
    """Returns US dollars for a million prompt and completion tokens: as given, else from the price list, else None.

    Raises:
        ConfigError: ``max_cost_usd`` is given but no price is known.
    """
    given = (limits.usd_per_million_prompt, limits.usd_per_million_completion)
    if given[0] is not None and given[1] is not None:
        return (given[0], given[1])
    prices = None if options.base_url is not None else _from_list(options.model)
    if prices is None and limits.max_cost_usd is not None:
        raise ConfigError(
            f"--max-cost needs the price of {options.model}, which is not on the list; give --prices IN,OUT "
            "(US dollars for a million tokens)"
        )
    return prices


def _from_list(model: str) -> tuple[float, float] | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError as error:
        raise ConfigError(INSTALL) from error
    provider, _, name = model.partition(":")
    million = 1_000_000
    try:
        # Small requests: long ones may have prices of their own.
        spoken = calc_price(Usage(input_tokens=1000, output_tokens=0), name, provider_id=provider.split("-")[0])
        heard = calc_price(Usage(input_tokens=0, output_tokens=1000), name, provider_id=provider.split("-")[0])
    except (LookupError, ValueError):
        return None
    return float(spoken.total_price) * million / 1000, float(heard.total_price) * million / 1000
