"""The ``fenced`` grammar: one ```python block, or ``SCORE`` or ``SUBMIT`` on a line of its own."""

import re

from sandmle.grammars.base import Action, ParsedReply
from sandmle.grammars.scan import is_blank_code, next_fence, read_fenced
from sandmle.grammars.turn import Found, parse_turn
from sandmle.records import ActionKind, FinishReason

_WORDS = {"SCORE": ActionKind.SCORE, "SUBMIT": ActionKind.FINISH}
_WORD_LINE = re.compile(r"(?:^|(?<=</think>))[ \t]*(?P<word>SCORE|SUBMIT)[ \t\r]*$", re.MULTILINE)
_LANGUAGES = frozenset({"python", "py", "python3"})
_MISSING = "Write one ```python block with a complete script, or SCORE or SUBMIT on a line of its own."

_INSTRUCTIONS = """\
Say briefly what you are going to do and why, then take exactly one action. An action is one of these:

1. Run a script: a fenced block that starts with ```python on a line of its own and ends with ``` on a line of its own.
2. Ask how good the current submission.csv is: the word SCORE on a line of its own.
3. Hand in the current submission.csv and stop: the word SUBMIT on a line of its own.

Write nothing after the action; the answer comes in the next message. If a reply holds several actions, only the first \
one counts."""


class FencedGrammar:
    """Code in Markdown fences and two words; what most chat models write without being taught."""

    name = "fenced"

    def instructions(self) -> str:
        """Returns the text that explains the form to a model, for the system prompt."""
        return _INSTRUCTIONS

    def parse(self, text: str, finish_reason: FinishReason = FinishReason.STOP) -> ParsedReply:
        """Reads a reply. Never raises, whatever the text is."""
        return parse_turn(text, finish_reason, _find, needs_thought=False, missing_hint=_MISSING)

    def render(self, thought: str, action: Action) -> str:
        """Writes a reply in perfect form; ``parse`` gives the same action back."""
        # A thought must not hold anything that reads as an action or a fence: push such lines in.
        lines = [f"> {line}" if _WORD_LINE.match(line) or "```" in line else line for line in thought.split("\n")]
        return "\n".join([*lines, "", _render_action(action)]) if thought.strip() else _render_action(action)

    def observation(self, text: str) -> str:
        """Wraps an observation for the user message that answers a turn."""
        return f"Observation:\n{text}"


def _render_action(action: Action) -> str:
    if action.kind is ActionKind.RUN:
        longest = max((len(run) for run in re.findall(r"^ {0,3}(`{3,})", action.code, re.MULTILINE)), default=2)
        fence = "`" * (longest + 1)
        return f"{fence}python\n{action.code}\n{fence}"
    return "SCORE" if action.kind is ActionKind.SCORE else "SUBMIT"


def _find(text: str, start: int) -> Found | None:
    position = start
    while True:
        fence = next_fence(text, position)
        word = _WORD_LINE.search(text, position, len(text) if fence is None else fence.start())
        if word is not None:
            return Found(word.start(), word.end(), Action(_WORDS[word["word"]]))
        if fence is None:
            return None
        if _language(fence) in _LANGUAGES:
            return _read_block(text, fence)
        position = _skip_block(text, fence)


def _read_block(text: str, fence: re.Match[str]) -> Found:
    block = read_fenced(text, fence)
    if block is None:
        return Found(fence.start(), len(text), problem="Close the code block with ``` on a line.", is_open=True)
    if is_blank_code(block.code):
        return Found(fence.start(), block.end, problem=f"The code block has nothing to run. {_MISSING}")
    return Found(fence.start(), block.end, Action(ActionKind.RUN, block.code))


def _language(fence: re.Match[str]) -> str:
    words = fence["info"].lower().split()
    return words[0] if words else ""


def _skip_block(text: str, opener: re.Match[str]) -> int:
    """Returns the offset behind a block that is no action; a python fence ends one whose end was forgotten."""
    position = opener.end()
    while (fence := next_fence(text, position)) is not None:
        info = _language(fence)
        if info in _LANGUAGES and len(fence["fence"]) <= len(opener["fence"]):
            return fence.start()
        if not info and len(fence["fence"]) >= len(opener["fence"]):
            return fence.end()
        position = fence.end()
    return opener.end()
