"""The ``openai`` client, without its walk over every message of every request. Imported where a client is opened.

The client looks at each field of each message for names to translate and files to encode, and so takes longer over a
long conversation than everything else that it does. Ours are plain JSON already: they go into the body as they are.
"""

from collections.abc import Iterable
from typing import Any

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat, AsyncCompletions


class LeanCompletions(AsyncCompletions):
    """Chat completions whose messages are sent as they are given."""

    async def create(self, *, messages: Iterable[Any], extra_body: Any = None, **fields: Any) -> Any:
        """Sends one request; ``messages`` are plain JSON. The rest is as in the class above."""
        body = {"messages": list(messages), **(extra_body or {})}
        return await super().create(messages=[], extra_body=body, **fields)


class LeanChat(AsyncChat):
    """The part of the client that talks."""

    @property
    def completions(self) -> LeanCompletions:
        """Chat completions."""
        return LeanCompletions(self._client)


class LeanClient(AsyncOpenAI):
    """An ``openai`` client for conversations of plain text."""

    @property
    def chat(self) -> LeanChat:
        """The part of the client that talks."""
        return LeanChat(self)
