"""A model for tests: answers each role as a recording does, over real HTTP or in this process."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sandmle.authoring.roles.dry_run import recordings_dir
from sandmle.authoring.roles.journal import ReplyLine, read_recording
from sandmle.authoring.roles.talking import Answer, Said
from tests.policies.server import Reply, says

GOOD = recordings_dir()
FLAWED = Path(__file__).parents[2] / "data" / "recordings"
_MARKS = {
    "strategist": "You invent small machine-learning competitions",
    "developer": "You are an ML engineer",
    "mlops": "You decide how submissions",
    "writer": "You write the description",
    "reviewer": "You check descriptions",
}


def lines_of(path: Path) -> list[ReplyLine]:
    return read_recording(path)[1]


def role_of(system: str) -> str:
    return next(role for role, mark in _MARKS.items() if system.startswith(mark))


class RecordedResponder:
    """Answers from a recording, by role and by how often that role was sent back."""

    def __init__(self, path: Path) -> None:
        self._lines = lines_of(path)
        self.n_asked = 0

    def reply_to(self, system: str, n_turns: int) -> ReplyLine:
        self.n_asked += 1
        own = [line for line in self._lines if line.role == role_of(system)]
        return own[min(n_turns, len(own) - 1)]

    async def ask(self, conversation: Sequence[Said]) -> Answer:
        n_turns = sum(said.speaker == "assistant" for said in conversation)
        line = self.reply_to(conversation[0].text, n_turns)
        return Answer(line.text, line.finish_reason, prompt_tokens=100, completion_tokens=50)


def served(path: Path, delay_s: float = 0.0) -> Callable[[int, dict[str, Any]], Reply]:
    """Returns a script for the test server that answers as a recording does."""
    responder = RecordedResponder(path)

    def script(number: int, body: dict[str, Any]) -> Reply:
        messages = body["messages"]
        line = responder.reply_to(messages[0]["content"], sum(m["role"] == "assistant" for m in messages))
        reply = says(
            line.text, line.finish_reason, {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        )
        reply.delay_s = delay_s
        return reply

    return script
