"""The contract of an action grammar: how a reply says what to do. Exactly one action comes out of one reply."""

from dataclasses import dataclass
from typing import Protocol

from sandmle.records import ActionKind, FinishReason, ReplyStatus


@dataclass(frozen=True)
class Action:
    """What a turn asks for."""

    kind: ActionKind
    code: str = ""
    """Python source; only of ``RUN``."""


@dataclass(frozen=True)
class ParsedReply:
    """What a grammar made of a reply.

    Attributes:
        status: Whether there is an action, and if not, why.
        action: The one action to carry out; None unless ``status`` is ``ACTION``.
        in_form: The reply has exactly the required form (the format term of the reward).
        kept: The part of the reply that stays in the transcript: an invented observation and all after it is cut off.
        notes: What was ignored and why, one sentence each; the observation repeats them.
        hint: How to do it right, when there is no action.
    """

    status: ReplyStatus
    action: Action | None
    in_form: bool
    kept: str
    notes: tuple[str, ...] = ()
    hint: str = ""


class Grammar(Protocol):
    """One way to write actions. Stateless."""

    name: str

    def instructions(self) -> str:
        """Returns the text that explains the form to a model, for the system prompt."""
        ...

    def parse(self, text: str, finish_reason: FinishReason) -> ParsedReply:
        """Reads a reply. Never raises, whatever the text is."""
        ...

    def render(self, thought: str, action: Action) -> str:
        """Writes a reply in perfect form; ``parse`` gives the same action back."""
        ...

    def observation(self, text: str) -> str:
        """Wraps an observation for the user message that answers a turn."""
        ...
