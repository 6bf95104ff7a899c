"""Demonstrations for the supervised warm start: good trajectories of any policy, as chats.

One line each, in the form that most trainers read: ``messages`` with role and content, and beside it where it is from.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from sandmle.errors import ConfigError
from sandmle.policies.renderers import ChatRenderer
from sandmle.records import Message, Record, Trajectory


class Demonstration(Record):
    """One chat to learn from."""

    schema_version: Literal[1] = 1
    messages: tuple[Message, ...]
    task_id: str
    policy: str
    attempt: int
    reward: float


class DemonstrationFilter(Record):
    """Which trajectories become demonstrations (rejection sampling)."""

    min_reward: float = Field(default=0.0, ge=0, le=1)
    """Trajectories with a lower reward are left out; those without a reward always are."""
    per_task: int | None = Field(default=None, gt=0)
    """The best so many of each task; None for all."""


def select(trajectories: Iterable[Trajectory], wanted: DemonstrationFilter) -> list[Demonstration]:
    """Returns the demonstrations in the order of task, reward (best first), policy and attempt."""
    good = [
        Demonstration(
            messages=tuple(Message(role=each.role, content=each.content) for each in _until_reply(trajectory.messages)),
            task_id=trajectory.task_id,
            policy=trajectory.policy,
            attempt=trajectory.attempt,
            reward=trajectory.reward,
        )
        for trajectory in trajectories
        if trajectory.reward is not None and trajectory.reward >= wanted.min_reward
    ]
    good = [each for each in good if any(message.role == "assistant" for message in each.messages)]
    good.sort(key=lambda each: (each.task_id, -each.reward, each.policy, each.attempt))
    if wanted.per_task is None:
        return good
    counts: dict[str, int] = {}
    kept = []
    for each in good:
        counts[each.task_id] = counts.get(each.task_id, 0) + 1
        if counts[each.task_id] <= wanted.per_task:
            kept.append(each)
    return kept


def save_demonstrations(path: Path, demonstrations: Sequence[Demonstration]) -> None:
    """Writes demonstrations, one a line; an earlier file is replaced.

    Raises:
        ConfigError: The disk refuses.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text("".join(f"{each.to_json()}\n" for each in demonstrations), encoding="utf-8")
        partial.rename(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def read_demonstrations(path: Path) -> Iterator[tuple[Message, ...]]:
    """Yields the chats of a JSONL file; other fields than ``messages`` are not looked at.

    Raises:
        ConfigError: There is no such file, or a line holds no chat.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # a text may hold other ends of lines
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read demonstrations from {path}: {error}; give a JSONL file") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _read_line(line, f"{path}, line {number}")


@dataclass(frozen=True)
class TrainingRows:
    """Demonstrations as ids.

    Attributes:
        rows: One each: ``input_ids`` and ``labels``, which are -100 at all but the tokens of replies.
        n_too_long: Demonstrations left out for their length.
        n_tokens: Tokens of replies in all rows.
    """

    rows: list[dict[str, list[int]]]
    n_too_long: int
    n_tokens: int


def tokenize(chats: Iterable[Sequence[Message]], renderer: ChatRenderer, max_length: int) -> TrainingRows:
    """Returns demonstrations as ids, put together as in rollouts.

    Raises:
        ConfigError: None is left.
    """
    rows: list[dict[str, list[int]]] = []
    n_all = n_tokens = 0
    for chat in chats:
        n_all += 1
        ids, mask = renderer.training_row(chat)
        if len(ids) <= max_length:
            labels = [token if trained else -100 for token, trained in zip(ids, mask, strict=True)]
            rows.append({"input_ids": ids, "labels": labels})
            n_tokens += sum(mask)
    if not rows:
        raise ConfigError(
            f"none of {n_all} demonstrations can be learnt from within {max_length} tokens; raise sft.max_length or "
            "record shorter ones"
        )
    return TrainingRows(rows=rows, n_too_long=n_all - len(rows), n_tokens=n_tokens)


def _until_reply(messages: Sequence[Message]) -> Sequence[Message]:
    last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[: last + 1]


def _read_line(line: str, where: str) -> tuple[Message, ...]:
    try:
        values: Any = json.loads(line)
        chat = tuple(Message.model_validate(each) for each in values["messages"])
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise ConfigError(
            f'{where} holds no chat; it must be {{"messages": [{{"role": .., "content": ..}}, ..]}}'
        ) from error
    return chat
