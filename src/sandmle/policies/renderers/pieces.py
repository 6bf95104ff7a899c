"""The fixed texts of a chat template, read off by rendering probes; templates that rewrite earlier turns are refused.

A trainer needs every prompt of an episode to begin with the one before, id by id. Many templates do not grant that:
they drop earlier thinking, or move words about. So a template is not run again on each turn. Its fixed texts are read
once, and the ids of an episode are put together from them and from the replies as they were sampled.
"""

from dataclasses import dataclass
from typing import Any

from sandmle.errors import ConfigError

_SYSTEM, _USER, _REPLY, _USER_2, _REPLY_2, _USER_3 = (
    f"sandmle probe {word}" for word in "one two three four five six".split()
)


@dataclass(frozen=True)
class ChatPieces:
    """What a template puts round the contents of messages.

    Attributes:
        head: Before the system message.
        system_to_user: Between system and first user message.
        user_to_reply: From a user message to the place where the model goes on writing.
        reply_prefix: The end of ``user_to_reply`` that belongs to the reply, such as an opened thinking section.
        reply_to_user: From the end of a reply to the next user message; begins with what ends a reply.
    """

    head: str
    system_to_user: str
    user_to_reply: str
    reply_prefix: str
    reply_to_user: str


def read_template(tokenizer: Any, name: str, options: dict[str, Any] | None = None) -> ChatPieces:
    """Returns the pieces of a tokenizer's chat template.

    Args:
        tokenizer: A tokenizer of ``transformers``.
        name: The model, for messages.
        options: Variables of the template, such as ``enable_thinking``.

    Raises:
        ConfigError: There is no template, it takes no system message, or it does not put turns one after the other.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError(
            f"model {name} has no chat template; give an instruction-tuned model, or add a template to it"
        )
    first = _render(tokenizer, name, options, [_SYSTEM, _USER])
    second = _render(tokenizer, name, options, [_SYSTEM, _USER, _REPLY, _USER_2])
    third = _render(tokenizer, name, options, [_SYSTEM, _USER, _REPLY, _USER_2, _REPLY_2, _USER_3])
    refusal = ConfigError(
        f"the chat template of {name} changes earlier turns when a turn is added, so that sampled ids cannot be kept; "
        "use a model whose template only appends, such as one with ChatML"
    )
    head, found, rest = first.partition(_SYSTEM)
    system_to_user, found_user, user_to_reply = rest.partition(_USER)
    _, found_reply, after = second.partition(_REPLY)
    reply_to_user, found_next, tail = after.partition(_USER_2)
    if not (found and found_user and found_reply and found_next):
        raise ConfigError(f"the chat template of {name} does not show every message; it has to take a system message")
    opening = second.partition(_USER)[2].partition(_REPLY)[0]
    if tail != user_to_reply or not user_to_reply.startswith(opening) or not reply_to_user:
        raise refusal
    turns = [_SYSTEM, system_to_user, _USER, opening, _REPLY, reply_to_user, _USER_2, opening, _REPLY_2, reply_to_user]
    if third != "".join([head, *turns, _USER_3, user_to_reply]):
        raise refusal
    return ChatPieces(head, system_to_user, user_to_reply, user_to_reply.removeprefix(opening), reply_to_user)


def _render(tokenizer: Any, name: str, options: dict[str, Any] | None, contents: list[str]) -> str:
    roles = ["system", *("user" if at % 2 == 0 else "assistant" for at in range(len(contents) - 1))]
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **(options or {}))
    except Exception as error:  # a template is a program that may raise anything
        raise ConfigError(f"the chat template of {name} refuses an ordinary chat: {error}") from error
    return str(text)
