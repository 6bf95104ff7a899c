"""Turns a transcript into the ids that a model continues, and ids into the text that a grammar reads."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sandmle.errors import ConfigError
from sandmle.policies.renderers.pieces import ChatPieces, read_template
from sandmle.records import Message


class ChatRenderer:
    """Renders message by message, so that the ids of a transcript begin with the ids of every earlier state of it.

    Replies that carry their sampled ids are taken as they are; all other text is encoded, with the special tokens of
    the model only where the template puts them: an observation cannot end a turn.
    """

    def __init__(self, tokenizer: Any, name: str, options: dict[str, Any] | None = None) -> None:
        """Reads the template.

        Args:
            tokenizer: A tokenizer of ``transformers``.
            name: The model, for messages.
            options: Variables of the chat template.

        Raises:
            ConfigError: The template cannot be used; see :func:`read_template`.
        """
        self.pieces: ChatPieces = read_template(tokenizer, name, options)
        self._tokenizer = tokenizer
        self._head = self._fixed(self.pieces.head)
        self._system_to_user = self._fixed(self.pieces.system_to_user)
        self._user_to_reply = self._fixed(self.pieces.user_to_reply)
        self._reply_to_user = self._fixed(self.pieces.reply_to_user)
        self.end_id: int = self._reply_to_user[0]
        """The id that ends a reply."""

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Returns the ids that the model continues: the whole transcript, open for the next reply.

        Raises:
            ConfigError: The transcript is not system, user, and then replies and user messages in turn.
        """
        ids, _ = self._render(messages)
        return tuple(ids)

    def training_row(self, messages: Sequence[Message]) -> tuple[list[int], list[int]]:
        """Returns ids and loss mask (1 = part of a reply) of a whole transcript, for supervised training.

        A reply's mask includes the id that ends it. User messages after the last reply are left out.
        """
        last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
        return self._render(messages[: last + 1])

    def reply_text(self, ids: Sequence[int], *, ended: bool) -> str:
        """Returns the text of a sampled reply, with what the template wrote at its beginning.

        Args:
            ids: Ids as sampled.
            ended: The last id only ends the reply.
        """
        return self.pieces.reply_prefix + self._decode(ids[:-1] if ended else ids)

    def _render(self, messages: Sequence[Message]) -> tuple[list[int], list[int]]:
        roles = [message.role for message in messages]
        expected = ["system", *("user" if at % 2 == 0 else "assistant" for at in range(len(roles) - 1))]
        if len(roles) < 2 or roles != expected:
            raise ConfigError(f"a transcript for a local model is system, user, assistant, user ..., not {roles}")
        ids = [*self._head, *self._plain(messages[0].content), *self._system_to_user]
        mask = [0] * len(ids)
        for message, after in pairwise([*messages[1:], None]):
            assert message is not None
            if message.role == "user":
                added = [*self._plain(message.content), *self._user_to_reply]
                n_sampled = 0
            else:
                reply, closing = self._reply(message)
                n_sampled = len(reply)
                added = reply if after is None else [*reply, *closing]
            ids.extend(added)
            mask.extend([1] * n_sampled + [0] * (len(added) - n_sampled))
        return ids, mask

    def _reply(self, message: Message) -> tuple[list[int], list[int]]:
        """Returns the ids of a reply and those that lead on to the next user message."""
        if message.token_ids is None:
            content = message.content.removeprefix(self.pieces.reply_prefix)
            return [*self._plain(content), self.end_id], self._reply_to_user[1:]
        ids = self._kept(message.token_ids, message.content)
        return ids, self._reply_to_user[1:] if ids and ids[-1] == self.end_id else self._reply_to_user

    def _kept(self, ids: tuple[int, ...], content: str) -> list[int]:
        """Returns the sampled ids up to where the transcript cut the reply, if it did."""
        ended = bool(ids) and ids[-1] == self.end_id
        text = self.reply_text(ids, ended=ended)
        if not content or len(content) >= len(text) or not text.startswith(content):
            return list(ids)
        low, high = 0, len(ids)
        while low < high:  # the most ids whose text is not longer than what was kept
            middle = (low + high + 1) // 2
            low, high = (
                (middle, high) if len(self.reply_text(ids[:middle], ended=False)) <= len(content) else (low, middle - 1)
            )
        return list(ids[:low])

    def _fixed(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _plain(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))
