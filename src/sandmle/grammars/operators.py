"""The replies of a tree search: a plan with one script, and the reading of what a script printed.

A prompt of a search names its operator in its first line, ``## Job: draft``, so that people, and policies that are
not models, see at once what is asked for.
"""

import json
import re
from dataclasses import dataclass

from sandmle.grammars.base import Action
from sandmle.grammars.fenced import FencedGrammar
from sandmle.grammars.json_reply import read_number, read_object
from sandmle.grammars.scan import clean_text, strip_thinking
from sandmle.records import ActionKind, FinishReason, ReplyStatus

OPERATORS: tuple[str, ...] = ("draft", "debug", "improve", "crossover", "analyze")
SCORE_LINE = "Validation score:"
"""How a script is asked to print the score that it measured on its own held-out rows."""

_HEADING = re.compile(rf"\A## Job: ({'|'.join(OPERATORS)})[ \t]*$", re.MULTILINE)
_SCORE = re.compile(rf"^{re.escape(SCORE_LINE)}[ \t]*(\S+)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_NO_SCRIPT = "Write your plan in a few sentences, then one ```python block with the whole script."


@dataclass(frozen=True)
class ScriptReply:
    """What a reply to draft, debug, improve or crossover holds.

    Attributes:
        status: Whether there is a script, and if not, why.
        plan: The words before the script.
        code: The script; empty when there is none.
        in_form: There is one script and nothing after it.
        notes: What was ignored, and why.
        hint: How to do it right, when there is no script.
    """

    status: ReplyStatus
    plan: str = ""
    code: str = ""
    in_form: bool = False
    notes: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class Analysis:
    """What a model made of a script's output."""

    is_bug: bool
    validation_score: float | None
    summary: str


def job_heading(operator: str) -> str:
    """Returns the first line of a prompt, which names its operator."""
    return f"## Job: {operator}"


def read_job(prompt: str) -> str | None:
    """Returns the operator that a prompt asks for; None when it is no prompt of a search."""
    found = _HEADING.match(prompt)
    return found[1] if found else None


def parse_script(text: str, finish_reason: FinishReason = FinishReason.STOP) -> ScriptReply:
    """Reads a plan and its script. Never raises, whatever the text is."""
    parsed = FencedGrammar().parse(text, finish_reason)
    if parsed.action is None or parsed.action.kind is not ActionKind.RUN:
        status = ReplyStatus.FORMAT_ERROR if parsed.status is ReplyStatus.ACTION else parsed.status
        return ScriptReply(status, hint=_NO_SCRIPT)
    code = parsed.action.code
    plan = strip_thinking(parsed.kept.partition(code)[0])
    plan = re.sub(r"^ {0,3}`{3,}.*$", "", plan, flags=re.MULTILINE).strip()
    return ScriptReply(ReplyStatus.ACTION, plan, code, parsed.in_form, parsed.notes)


def render_script(plan: str, code: str) -> str:
    """Writes a reply in perfect form."""
    return FencedGrammar().render(plan, Action(ActionKind.RUN, code))


def parse_analysis(text: str) -> Analysis | None:
    """Reads the JSON object that ``analyze`` asks for; None when there is none. Never raises.

    An integer is a score like any other; NaN, infinity and true are none.
    """
    found = read_object(text)
    if found is None or not isinstance(found.get("is_bug"), bool):
        return None
    summary = found.get("summary", "")
    return Analysis(
        is_bug=found["is_bug"],
        validation_score=read_number(found.get("validation_score")),
        summary=clean_text(summary).strip() if isinstance(summary, str) else "",
    )


def render_analysis(analysis: Analysis) -> str:
    """Writes a reply in perfect form; :func:`parse_analysis` gives the same back."""
    return json.dumps(
        {
            "is_bug": analysis.is_bug,
            "validation_score": analysis.validation_score,
            "summary": analysis.summary,
        },
        ensure_ascii=False,
    )


def read_score_line(output: str) -> float | None:
    """Returns the last validation score that a script printed in the line it was asked for, or None."""
    found = _SCORE.findall(output)
    return read_number(found[-1]) if found else None
