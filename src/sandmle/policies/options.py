"""What a policy may be told beside its name."""

from typing import Any

from pydantic import Field

from sandmle.records import Record


class PolicyOptions(Record):
    """Options of every policy; each takes what concerns it."""

    grammar: str = "react"
    """The grammar that scripted replies are written in."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server, with its ``/v1``; None for OpenAI's own."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key. Keys themselves are never part of a configuration."""
    concurrency: int = Field(default=8, gt=0)
    """Requests in flight at once."""
    max_retries: int = Field(default=6, ge=0)
    """Tries after the first one, for faults that may pass."""
    max_wait_s: float = Field(default=60.0, gt=0)
    """Longest wait before a retry, also when the server asks for more."""
    usd_per_million_prompt: float | None = Field(default=None, ge=0)
    usd_per_million_completion: float | None = Field(default=None, ge=0)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Fields to add to each request, for what only some servers know."""
