"""What a user may choose about authoring with a model. It holds no key: keys stay in the environment."""

from typing import Any

from pydantic import Field

from sandmle.records import Record


class LLMOptions(Record):
    """The part of the options that the tasks depend on; it stands in the run's ``run.json``."""

    model: str = "replay"
    """``PROVIDER:NAME``, for example ``openai:gpt-5`` or ``anthropic:claude-sonnet-4-5``."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server, with its ``/v1``."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None for the provider's usual one."""
    max_repairs: int = Field(default=3, ge=0)
    """Replies of one role that may be sent back before the task is given up."""
    max_tokens: int = Field(default=12_000, gt=0)
    """Longest reply."""
    temperature: float | None = Field(default=None, ge=0)
    """None for the provider's own."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Fields to add to each request, for what only some servers know."""


class SpendLimits(Record):
    """How much may be asked at once and in all. Two runs that differ in these make the same tasks."""

    requests: int = Field(default=16, gt=0)
    """Requests in flight."""
    tasks: int = Field(default=64, gt=0)
    """Tasks in flight."""
    max_cost_usd: float | None = Field(default=None, gt=0)
    max_total_tokens: int | None = Field(default=None, gt=0)
    usd_per_million_prompt: float | None = Field(default=None, ge=0)
    """Price where the price list does not know the model."""
    usd_per_million_completion: float | None = Field(default=None, ge=0)
    max_retries: int = Field(default=6, ge=0)
    """Tries after the first one, for faults that may pass."""
    max_wait_s: float = Field(default=60.0, gt=0)
    """Longest wait before a retry, also when the server asks for more."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Longest wait for one reply."""
