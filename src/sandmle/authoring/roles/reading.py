"""Replies to typed outputs. What cannot be read is a :class:`Complaint`, which goes back to the model."""

import json
import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from sandmle.authoring.roles.outputs import EVALUATOR_SCRIPT, Evaluator, MetricChoice, Scripts
from sandmle.grammars.scan import next_fence, read_fenced, strip_thinking

Output = TypeVar("Output", bound=BaseModel)
_FILE_LINE = re.compile(r"\A\s*#\s*file:\s*(?P<name>[\w./-]+)\s*\n")
_SHOWN_CHARS = 120
_MOST_PROBLEMS = 6


class Complaint(Exception):
    """Why a reply is not accepted.

    Attributes:
        kind: One word for the funnel, for example ``invalid_reply``.
        summary: One sentence for people.
        detail: What the model is told.
    """

    def __init__(self, kind: str, summary: str, detail: str = "") -> None:
        super().__init__(summary)
        self.kind, self.summary, self.detail = kind, summary, detail or summary


def shown(text: str) -> str:
    """Returns the beginning of a text on one line, quoted."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= _SHOWN_CHARS else flat[:_SHOWN_CHARS] + "...")


def read_json(text: str, kind: type[Output]) -> Output:
    """Returns the JSON object of a reply, with or without a fence or prose around it.

    Raises:
        Complaint: There is none, or it is not what was asked for.
    """
    found = _object_in(strip_thinking(text))
    if found is None:
        raise Complaint("invalid_reply", f"the reply holds no JSON object; it begins {shown(text)}")
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc'])) or 'the object'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]
        ]
        summary = f"the reply is not what was asked for: {problems[0]}"
        raise Complaint("invalid_reply", summary, "The JSON object has faults:\n- " + "\n- ".join(problems)) from error


def _object_in(text: str) -> object | None:
    """Returns the first JSON object in a text; the brace it begins with may stand anywhere."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at = text.find("{")
    while at >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
            if isinstance(found, dict):
                return found
        except (ValueError, RecursionError):
            pass  # a brace in prose or in LaTeX; the next one may begin the object
        at = text.find("{", at + 1)
    return None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def read_scripts(text: str) -> Scripts:
    """Returns the Python files of a reply: fenced blocks whose first line is ``# file: NAME``.

    Raises:
        Complaint: There is no such block.
    """
    visible = strip_thinking(text)
    files: dict[str, str] = {}
    position = 0
    while (opener := next_fence(visible, position)) is not None:
        block = read_fenced(visible, opener)
        if block is None:
            raise Complaint("invalid_reply", "a code block of the reply is never closed")
        named = _FILE_LINE.match(block.code)
        if named:
            files[named["name"]] = block.code[named.end() :].strip("\n") + "\n"
        position = block.end
    if not files:
        raise Complaint(
            "invalid_reply",
            f"the reply holds no code block that begins with '# file: NAME'; it begins {shown(text)}",
        )
    try:
        return Scripts(files=files)
    except ValidationError as error:
        raise Complaint("invalid_reply", str(error.errors()[0]["msg"])) from error


def read_scoring(text: str) -> MetricChoice | Evaluator:
    """Returns the MLOps Engineer's choice: a metric's name, or an evaluator with its script.

    Raises:
        Complaint: It is neither.
    """
    found = _object_in(strip_thinking(text))
    if isinstance(found, dict) and "metric" in found:
        return read_json(text, MetricChoice)
    scripts = read_scripts(text)
    if EVALUATOR_SCRIPT not in scripts.files:
        raise Complaint("invalid_reply", f"the reply names no metric and has no {EVALUATOR_SCRIPT}")
    if not isinstance(found, dict):
        raise Complaint("invalid_reply", "the evaluator has no JSON object with its title and words")
    try:
        return Evaluator.model_validate({**found, "source": scripts.files[EVALUATOR_SCRIPT]})
    except ValidationError as error:
        raise Complaint("invalid_reply", f"the evaluator's JSON object is wrong: {error.errors()[0]['msg']}") from error


def read_markdown(text: str) -> str:
    """Returns the description of a reply; a fence round the whole of it is taken off.

    Raises:
        Complaint: It does not begin with a title.
    """
    visible = strip_thinking(text).strip()
    fenced = re.fullmatch(r"```(?:markdown|md)?\n(.*)\n```", visible, re.DOTALL)
    visible = (fenced[1] if fenced else visible).strip()
    if not visible.startswith("# "):
        raise Complaint("invalid_reply", f"the description begins with no Markdown title but with {shown(visible)}")
    return visible + "\n"
