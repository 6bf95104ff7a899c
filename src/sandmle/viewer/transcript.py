"""Makes one trajectory readable: thought, code and observation of every turn, cut to a bounded length."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sandmle.evaluation.text import clean_text
from sandmle.records import ActionKind, ReplyStatus, SearchNode, StepRecord, Trajectory

MAX_REPLY_CHARS = 6_000
MAX_CODE_CHARS = 12_000
MAX_OBSERVATION_CHARS = 4_000

# What grammars put round a thought or an action; it says nothing that the turn's heading does not say.
_MARKUP_LINE = re.compile(
    r"^[ \t]*(?:(?:</?(?:think|tool_call|code)>[ \t]*)+|`{3,}[ \t]*(?:python3?|py)?|~{3,}|python3?)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_THINK_TAG = re.compile(r"\n?</?think>[ \t]*\n?")
_ACTIONS = {
    ActionKind.SCORE: re.compile(r"<tool_call>.*?(?:</tool_call>|\Z)|^[ \t]*SCORE[ \t]*$", re.DOTALL | re.MULTILINE),
    ActionKind.FINISH: re.compile(r"<answer>.*?(?:</answer>|\Z)|^[ \t]*SUBMIT[ \t]*$", re.DOTALL | re.MULTILINE),
}
_TITLES = {ActionKind.RUN: "run", ActionKind.SCORE: "ask for the score", ActionKind.FINISH: "hand in"}


@dataclass(frozen=True)
class Turn:
    """One turn, ready to be shown.

    Attributes:
        number: Counts from 1.
        title: What the turn did.
        outcome: How the code ended; empty if none ran.
        facts: Seconds, memory and the like.
        thought: The reply without the action's markup and code.
        code: What ran.
        observation: What came back.
        notes: What was ignored, and why.
    """

    number: int
    title: str
    outcome: str
    facts: str
    thought: str
    code: str
    observation: str
    notes: tuple[str, ...]


def turns_of(trajectory: Trajectory) -> list[Turn]:
    """Returns the turns of a trajectory; all text is clean but not escaped."""
    nodes = {node.step: node for node in trajectory.nodes}
    return [_turn(step, _title(step, nodes)) for step in trajectory.steps]


def cut(text: str, limit: int) -> str:
    """Returns clean text of at most about ``limit`` characters: head and tail, with a mark that says what is gone."""
    text = clean_text(text).strip("\n")
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out here …]\n{text[-tail:]}"


def _title(step: StepRecord, nodes: Mapping[int | None, SearchNode]) -> str:
    node = nodes.get(step.index)
    if node is not None:
        return f"node {node.index + 1}, {node.operator}"
    if step.action is not None:
        return _TITLES[step.action]
    if nodes and step.reply_status is ReplyStatus.ACTION:
        return "read the output"
    return str(step.reply_status).replace("_", " ")


def _turn(step: StepRecord, title: str) -> Turn:
    return Turn(
        number=step.index + 1,
        title=title,
        outcome=str(step.exec_status or ""),
        facts=_facts(step),
        thought=cut(_thought(step), MAX_REPLY_CHARS),
        code=cut(step.code or "", MAX_CODE_CHARS),
        observation=cut(step.observation, MAX_OBSERVATION_CHARS),
        notes=tuple(clean_text(note) for note in step.notes),
    )


def _facts(step: StepRecord) -> str:
    facts = []
    if step.exec_wall_s is not None:
        facts.append(f"{step.exec_wall_s:.2f} s")
    if step.exec_peak_memory_mb is not None:
        facts.append(f"{step.exec_peak_memory_mb:.0f} MB")
    if step.model_s >= 0.05:
        facts.append(f"model {step.model_s:.1f} s")
    if step.feedback_score is not None:
        facts.append(f"shown score {step.feedback_score:.4g}")
    if step.has_submission:
        facts.append("submission.csv is there")
    if not step.in_form:
        facts.append("not in form")
    return " · ".join(facts)


def _thought(step: StepRecord) -> str:
    """Returns the reply without what is shown elsewhere: the code, and the markup of the action."""
    reply = step.reply
    code = (step.code or "").strip("\n")
    if code and code in reply:
        before, after = reply.split(code, 1)
        reply = f"{_MARKUP_LINE.sub('', before).strip()}\n{_MARKUP_LINE.sub('', after).strip()}"
    elif step.action in _ACTIONS:
        *_, last = [None, *_ACTIONS[step.action].finditer(reply)]
        if last is not None:
            reply = reply[: last.start()] + reply[last.end() :]
    return _THINK_TAG.sub("\n", reply).strip()
