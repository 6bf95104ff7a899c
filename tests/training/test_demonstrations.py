"""Demonstrations: the good episodes of a run as chats, only their replies learnt."""

from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.policies.renderers import ChatRenderer
from sandmle.records import Message, Trajectory
from sandmle.training.demonstrations import (
    DemonstrationFilter,
    read_demonstrations,
    save_demonstrations,
    select,
    tokenize,
)
from tests.policies.tiny import tiny
from tests.training.test_masks_and_metrics import episode

CHAT = (
    Message(role="system", content="rules"),
    Message(role="user", content="task"),
    Message(role="assistant", content="print(1)", token_ids=(1, 2)),
    Message(role="user", content="over"),
)


def made(reward: float | None, attempt: int = 0, task_id: str = "task") -> Trajectory:
    return episode(reward=reward, attempt=attempt, task_id=task_id, messages=CHAT)


def test_the_best_are_kept_and_what_follows_the_last_reply_is_not(tmp_path: Path) -> None:
    run = [made(0.4, 0), made(0.9, 1), made(None, 2), made(0.5, 3), made(0.8, 0, "other"), episode(reward=1.0)]
    kept = select(run, DemonstrationFilter(min_reward=0.45, per_task=1))
    assert [(each.task_id, each.reward) for each in kept] == [("other", 0.8), ("task", 0.9)]
    save_demonstrations(tmp_path / "new/demos.jsonl", kept)
    chats = list(read_demonstrations(tmp_path / "new/demos.jsonl"))
    assert [[message.role for message in chat] for chat in chats] == [["system", "user", "assistant"]] * 2
    assert chats[0][2].token_ids is None


def test_a_text_may_hold_any_end_of_line(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three\x0bfour\r\nfive"
    chat = (*CHAT[:2], Message(role="assistant", content=text))
    kept = select([episode(reward=1.0, messages=chat)], DemonstrationFilter())
    save_demonstrations(tmp_path / "demos.jsonl", kept)
    [again] = read_demonstrations(tmp_path / "demos.jsonl")
    assert again[2].content == text


def test_long_demonstrations_are_left_out_and_counted() -> None:
    renderer = ChatRenderer(tiny()[1], "tiny")
    long = (*CHAT[:2], Message(role="assistant", content="print(1)\n" * 100))
    rows = tokenize([CHAT, long], renderer, 60)
    assert (len(rows.rows), rows.n_too_long) == (1, 1)
    learnt = [label for label in rows.rows[0]["labels"] if label != -100]
    assert learnt == list(CHAT[2].token_ids or ())  # ids that are there are taken as they are
    assert rows.n_tokens == len(learnt)
    with pytest.raises(ConfigError, match="max_length"):
        tokenize([long], renderer, 60)


@pytest.mark.parametrize("line", ["x", "{}", '{"messages": 3}', '{"messages": [{"role": "tool", "content": ""}]}'])
def test_a_line_that_is_no_chat_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "demos.jsonl").write_text(f"\n{line}\n")
    with pytest.raises(ConfigError, match=r"line 2 holds no chat"):
        list(read_demonstrations(tmp_path / "demos.jsonl"))
    with pytest.raises(ConfigError, match="cannot read"):
        list(read_demonstrations(tmp_path / "none.jsonl"))
