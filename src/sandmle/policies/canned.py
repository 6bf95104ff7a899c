"""A policy with prepared replies: for tests, for demonstrations, and to play recorded replies again."""

import json
from collections.abc import Sequence
from pathlib import Path

from sandmle.errors import ConfigError
from sandmle.grammars.scan import clean_text
from sandmle.policies.base import SamplingParams
from sandmle.policies.options import PolicyOptions
from sandmle.records import Completion, Message


class CannedPolicy:
    """Gives one prepared reply a turn, by the number of replies in the transcript; at the end the last one, again."""

    def __init__(self, replies: Sequence[str | Completion], name: str = "canned") -> None:
        if not replies:
            raise ConfigError(f"policy {name} has no replies; give it at least one")
        self.name = name
        self._replies = tuple(
            reply if isinstance(reply, Completion) else Completion(text=clean_text(reply)) for reply in replies
        )

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the reply of this turn."""
        del sampling
        turn = sum(message.role == "assistant" for message in transcript)
        return self._replies[min(turn, len(self._replies) - 1)]

    async def aclose(self) -> None:
        """Does nothing: there is nothing to release."""


def open_canned(argument: str, options: PolicyOptions) -> CannedPolicy:
    """Returns the policy of a file that holds a JSON list of replies.

    Raises:
        ConfigError: There is no such file, or it holds something else.
    """
    del options
    path = Path(argument)
    try:
        replies = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read replies from {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(replies, list) or not replies or not all(isinstance(reply, str) for reply in replies):
        raise ConfigError(f"{path} must hold a JSON list of replies, at least one, each a string")
    return CannedPolicy(replies, name=f"canned:{path.name}")
