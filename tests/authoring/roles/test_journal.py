"""Conversations on disk."""

import pytest

from sandmle.authoring.roles.journal import Journal, RecordingHead, ReplyLine, file_name, recordings_in
from sandmle.errors import AuthoringError, ConfigError

HEAD = RecordingHead(seed_id="spaceship-titanic", k=2, model="m")


def line(text: str, role: str = "strategist") -> ReplyLine:
    return ReplyLine(role=role, text=text)


def test_what_was_said_is_heard_again(tmp_path):
    path = tmp_path / "a" / "conversation.jsonl"
    journal = Journal(path, HEAD)
    assert journal.next("strategist") is None
    journal.append(line("one"))
    journal.append(line("two\nlines", "developer"))
    again = Journal(path, HEAD)
    assert again.next("strategist") == line("one")
    assert again.next("developer") == line("two\nlines", "developer")
    assert again.next("writer") is None


def test_a_torn_last_line_is_dropped_and_written_over(tmp_path):
    path = tmp_path / "conversation.jsonl"
    Journal(path, HEAD).append(line("one"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"role":"developer","te')
    journal = Journal(path, HEAD)
    assert [each.text for each in journal.lines] == ["one"]
    journal.append(line("two", "developer"))
    assert path.read_bytes() == whole + line("two", "developer").to_json().encode() + b"\n"


def test_a_head_that_was_torn_begins_anew(tmp_path):
    path = tmp_path / "conversation.jsonl"
    path.write_bytes(b'{"schema_ver')
    journal = Journal(path, HEAD)
    journal.append(line("one"))
    assert [each.text for each in Journal(path, HEAD).lines] == ["one"]


def test_another_roles_reply_is_refused(tmp_path):
    path = tmp_path / "conversation.jsonl"
    Journal(path, HEAD).append(line("one"))
    with pytest.raises(AuthoringError, match="line 2 is a reply of the strategist, but the writer is asked"):
        Journal(path, HEAD).next("writer")


def test_a_recording_of_another_proposal_is_refused(tmp_path):
    path = tmp_path / "conversation.jsonl"
    Journal(path, HEAD).append(line("one"))
    with pytest.raises(ConfigError, match="is a recording of spaceship-titanic number 2"):
        Journal(path, HEAD.replace(k=3))


def test_recordings_are_listed(tmp_path):
    with pytest.raises(ConfigError, match="no recordings"):
        recordings_in(tmp_path)
    with pytest.raises(ConfigError, match="no folder"):
        recordings_in(tmp_path / "none")
    Journal(tmp_path / file_name("spaceship-titanic", 2), HEAD).append(line("one"))
    assert recordings_in(tmp_path) == {"spaceship-titanic--2.jsonl": HEAD}
    (tmp_path / "x--0.jsonl").write_text("no json\n")
    with pytest.raises(ConfigError, match=r"x--0.jsonl, line 1 is no line of a recording"):
        recordings_in(tmp_path)
