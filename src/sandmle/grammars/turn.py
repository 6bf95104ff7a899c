"""What all grammars share: one reply, at most one action, and a word on everything else."""

from collections.abc import Callable
from dataclasses import dataclass

from sandmle.grammars.base import Action, ParsedReply
from sandmle.grammars.scan import clean_text, find_thinking, invented_at
from sandmle.records import FinishReason, ReplyStatus


@dataclass(frozen=True)
class Found:
    """Something in a reply that has the look of an action.

    Attributes:
        start: Offset of its first character.
        end: Offset just behind it.
        action: The action; None when it cannot be carried out.
        problem: Why not, one sentence with the fix.
        is_open: It is never closed, which after a cut at the token limit is nobody's bad form.
        is_strict: It has exactly the form that the grammar asks for.
    """

    start: int
    end: int
    action: Action | None = None
    problem: str = ""
    is_open: bool = False
    is_strict: bool = True


# More thinking sections than any model writes; a bound, so that no reply takes long to read.
_MAX_SECTIONS = 20
_MAX_COUNTED = 20

Finder = Callable[[str, int], Found | None]
"""Finds the first action at or behind an offset of a text."""


@dataclass(frozen=True)
class _Thoughts:
    text: str
    position: int
    leads: bool
    is_closed: bool


def parse_turn(
    text: str, finish_reason: FinishReason, find: Finder, *, needs_thought: bool, missing_hint: str
) -> ParsedReply:
    """Reads a reply of any grammar.

    Args:
        text: The reply.
        finish_reason: Why the model stopped.
        find: Where the grammar's actions are.
        needs_thought: The form asks for a thinking section with something in it before the action.
        missing_hint: What to tell a model that wrote no action.
    """
    text = clean_text(text)
    cut_short = finish_reason is FinishReason.LENGTH
    if not text.strip():
        status = ReplyStatus.TRUNCATED if cut_short else ReplyStatus.EMPTY
        return ParsedReply(status, None, in_form=False, kept="", hint=missing_hint)
    thoughts = _skip_thoughts(text, find)
    if not thoughts.is_closed:
        hint = "Close your thinking with </think> before the action."
        return _no_action(text, cut_short=cut_short, hint=hint)
    found = find(text, thoughts.position)
    notes: list[str] = []
    cut = invented_at(text, thoughts.position, after_action=False)
    if cut is not None and (found is None or cut < found.start):
        hint = f"Do not write what the environment answers. {missing_hint}"
        return _no_action(text[:cut].rstrip(), cut_short=False, hint=hint)
    if found is None:
        return _no_action(text, cut_short=cut_short, hint=missing_hint)
    if found.action is None:
        return _no_action(text, cut_short=cut_short and found.is_open, hint=found.problem)
    cut = invented_at(text, found.end, after_action=True)
    rest = text[found.end : cut]
    if extra := _count_actions(rest, find):
        notes.append(f"{extra} more action(s) in the reply were ignored: only the first action of a turn runs.")
    if cut is not None:
        notes.append("Your reply made up an answer of the environment; it was cut off from there on.")
    if not found.is_strict:
        notes.append("The action was understood, but it does not have the form that the instructions ask for.")
    well_thought = thoughts.leads and bool(thoughts.text)
    in_form = found.is_strict and not text[found.end :].strip() and (well_thought or not needs_thought)
    kept = text if cut is None else text[:cut].rstrip()
    return ParsedReply(ReplyStatus.ACTION, found.action, in_form=in_form, kept=kept, notes=tuple(notes))


def _skip_thoughts(text: str, find: Finder) -> _Thoughts:
    """Passes over the thinking sections before the first action; what they draft is never carried out."""
    bodies: list[str] = []
    position, leads = 0, False
    for _ in range(_MAX_SECTIONS):
        section = find_thinking(text, position)
        if section is None:
            break
        found = find(text, position)
        if found is not None and found.start < section.start:
            break
        leads = leads or not text[: section.start].strip()
        if not section.is_closed:
            return _Thoughts("", position, leads, is_closed=False)
        bodies.append(section.body)
        position = section.end
    return _Thoughts("\n".join(bodies).strip(), position, leads, is_closed=True)


def _count_actions(text: str, find: Finder) -> int:
    count, position = 0, 0
    while count < _MAX_COUNTED and (found := find(text, position)) is not None:
        count, position = count + 1, max(found.end, position + 1)
    return count


def _no_action(kept: str, *, cut_short: bool, hint: str) -> ParsedReply:
    status = ReplyStatus.TRUNCATED if cut_short else ReplyStatus.FORMAT_ERROR
    return ParsedReply(status, None, in_form=False, kept=kept, hint=hint)
