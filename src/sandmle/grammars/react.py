"""The ``react`` grammar: think, then one tool call or the final answer (the form of the paper, section 4.1)."""

import json
import re

from sandmle.grammars.base import Action, ParsedReply
from sandmle.grammars.scan import clean_text, is_blank_code, next_fence, read_fenced, read_until
from sandmle.grammars.turn import Found, parse_turn
from sandmle.records import ActionKind, FinishReason

_OPENER = re.compile(r"(?:^|(?<=</think>))[ \t]*(?P<tag><tool_call>|<answer>)", re.MULTILINE)
_CALL_CLOSE = "</tool_call>"
_ANSWER_CLOSE = "</answer>"
_CODE_OPEN = re.compile(r"\s*(?:python3?\b)?\s*<code>[ \t]*", re.IGNORECASE)
_CODE_CLOSE = re.compile(r"[ \t]*</code>(?=[ \t\r]*(?:$|</tool_call>))", re.MULTILINE)
_CODE_FENCE = re.compile(r"\s*(?:python3?\b)?\s*?(?=^ {0,3}```)", re.IGNORECASE | re.MULTILINE)
_SCORE_WORD = re.compile(r"\s*score\s*(?=</tool_call>|$)", re.IGNORECASE)
_SPACE = re.compile(r"\s*")
_THINK_TAG = re.compile(r"<(/?think)>")
_CODE_NAMES = frozenset({"python", "pythoninterpreter", "python_interpreter"})
_MISSING = (
    "After </think> write one <tool_call> with python and <code>, or with Score, or finish with "
    "<answer>submission</answer>; each starts on a line of its own."
)
_BAD_CALL = f"The tool call cannot be read. {_MISSING}"

_INSTRUCTIONS = """\
Every reply has two parts. First your reasoning between <think> and </think>; it must not be empty. Then exactly \
one of these three:

1. Run a Python script:
<tool_call>
python
<code>
print("the whole script goes here")
</code>
</tool_call>

2. Ask how good the current submission.csv is:
<tool_call>
{"name": "Score", "arguments": {}}
</tool_call>

3. Hand in the current submission.csv and stop:
<answer>submission</answer>

Write nothing after it; the result comes in the next message between <tool_response> tags, which you never write \
yourself. If a reply holds several calls, only the first one counts."""


class ReactGrammar:
    """A thinking block, then one tool call with code, or Score, or an answer."""

    name = "react"

    def instructions(self) -> str:
        """Returns the text that explains the form to a model, for the system prompt."""
        return _INSTRUCTIONS

    def parse(self, text: str, finish_reason: FinishReason = FinishReason.STOP) -> ParsedReply:
        """Reads a reply. Never raises, whatever the text is."""
        return parse_turn(text, finish_reason, _find, needs_thought=True, missing_hint=_MISSING)

    def render(self, thought: str, action: Action) -> str:
        """Writes a reply in perfect form; ``parse`` gives the same action back."""
        body = _THINK_TAG.sub(r"\1", thought).strip() or "Next step."
        head = f"<think>\n{body}\n</think>\n"
        if action.kind is ActionKind.FINISH:
            return f"{head}<answer>submission</answer>"
        if action.kind is ActionKind.SCORE:
            return f'{head}<tool_call>\n{{"name": "Score", "arguments": {{}}}}\n</tool_call>'
        reply = f"{head}<tool_call>\npython\n<code>\n{action.code}\n</code>\n</tool_call>"
        if self.parse(reply).action == action:
            return reply
        # Code that holds the closing mark where it would count: write it as a JSON string.
        call = json.dumps({"name": "python", "arguments": {"code": action.code}})
        return f"{head}<tool_call>\n{call}\n</tool_call>"

    def observation(self, text: str) -> str:
        """Wraps an observation for the user message that answers a turn."""
        return f"<tool_response>\n{text}\n</tool_response>"


def _find(text: str, start: int) -> Found | None:
    opener = _OPENER.search(text, start)
    if opener is None:
        return None
    if opener["tag"] == "<answer>":
        end = text.find(_ANSWER_CLOSE, opener.end())
        if end < 0:
            return Found(opener.start(), len(text), problem="Close the answer with </answer>.", is_open=True)
        return Found(opener.start(), end + len(_ANSWER_CLOSE), Action(ActionKind.FINISH))
    return _read_call(text, opener.start(), opener.end())


def _read_call(text: str, start: int, body: int) -> Found:
    if (code := _CODE_OPEN.match(text, body)) is not None:
        block = read_until(text, code.end(), _CODE_CLOSE)
        if block is None:
            return Found(start, len(text), problem="Close the code with </code> on a line of its own.", is_open=True)
        return _run(text, start, block.end, block.code)
    if (fence := _CODE_FENCE.match(text, body)) is not None and (opener := next_fence(text, fence.end())) is not None:
        fenced = read_fenced(text, opener)
        if fenced is None:
            return Found(start, len(text), problem="Close the code block with ``` on a line.", is_open=True)
        return _run(text, start, fenced.end, fenced.code, is_strict=False)
    if (word := _SCORE_WORD.match(text, body)) is not None and text[body : word.end()].strip():
        end, closed = _close(text, word.end())
        return Found(start, end, Action(ActionKind.SCORE), is_strict=closed)
    return _read_json(text, start, _skip_space(text, body))


def _read_json(text: str, start: int, body: int) -> Found:
    close = text.find(_CALL_CLOSE, body)
    try:
        call, end = json.JSONDecoder(strict=False).raw_decode(text, body)
    except (ValueError, RecursionError):
        end = len(text) if close < 0 else close + len(_CALL_CLOSE)
        return Found(start, end, problem=_BAD_CALL, is_open=close < 0)
    name = str(call.get("name", "")).lower() if isinstance(call, dict) else ""
    arguments = call.get("arguments") if isinstance(call, dict) else None
    if name == "score":
        end, closed = _close(text, end)
        return Found(start, end, Action(ActionKind.SCORE), is_strict=closed)
    code = arguments.get("code") if isinstance(arguments, dict) else None
    if name in _CODE_NAMES and isinstance(code, str):
        return _run(text, start, end, clean_text(code))
    return Found(start, _close(text, end)[0], problem=_BAD_CALL)


def _run(text: str, start: int, end: int, code: str, *, is_strict: bool = True) -> Found:
    end, closed = _close(text, end)
    if is_blank_code(code):
        return Found(start, end, problem=f"The code has nothing to run. {_MISSING}")
    return Found(start, end, Action(ActionKind.RUN, code), is_strict=is_strict and closed)


def _close(text: str, position: int) -> tuple[int, bool]:
    """Returns the offset behind the closing tag of a call and whether it is there."""
    after = _skip_space(text, position)
    if text.startswith(_CALL_CLOSE, after):
        return after + len(_CALL_CLOSE), True
    return position, False


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return position if space is None else space.end()
