from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.policies import PolicyOptions, SamplingParams, open_policy
from sandmle.policies.canned import CannedPolicy
from sandmle.records import Message


def open_mine(argument: str, options: PolicyOptions) -> CannedPolicy:
    return CannedPolicy([argument or "nothing", options.grammar], name="mine")


async def test_canned_replies_come_by_turn(tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_text('["a", "b\\ud800"]')
    policy = open_policy(f"canned:{file}")
    transcript: tuple[Message, ...] = (Message(role="user", content="x"),)
    found = []
    for _ in range(3):
        found.append((await policy.generate(transcript, SamplingParams())).text)
        transcript = (*transcript, Message(role="assistant", content="y"), Message(role="user", content="z"))
    assert found == ["a", "b\ufffd", "b\ufffd"]
    await policy.aclose()


async def test_an_opener_of_ones_own_by_dotted_path() -> None:
    policy = open_policy(f"{__name__}:open_mine:hello", grammar="fenced")
    assert (await policy.generate((), SamplingParams())).text == "hello"


@pytest.mark.parametrize(
    ("spec", "options", "words"),
    [
        ("chatt:m", {}, "did you mean 'chat'"),
        ("chat:", {}, "write chat:NAME"),
        ("chat", {}, "write chat:NAME"),
        ("scripted:x", {"colour": 1}, "no option 'colour'"),
        ("no.such.module:thing", {}, "cannot be loaded"),
        ("canned:/no/such/file", {}, "cannot read"),
    ],
)
def test_bad_names_are_one_sentence(spec: str, options: dict[str, int], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_policy(spec, **options)


@pytest.mark.parametrize("text", ["{}", "[]", "[1]", "nope"])
def test_bad_reply_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "replies.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=str(file)):
        open_policy(f"canned:{file}")
