"""Reading hostile text: thinking sections, fences, and where code really ends. Linear in the length of the text."""

import ast
import bisect
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"

_THINK_TAG = re.compile(r"</?think>")
_ORPHAN_CLOSE = re.compile(r"^[ \t]*</think>|</think>[ \t]*$", re.MULTILINE)
_UNSAFE = re.compile("[\ud800-\udfff\x00]")
_LEXEME = re.compile(
    r"#[^\n]*|\"\"\"|'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_FENCE_LINE = re.compile(r"(?:^|(?<=</think>)) {0,3}(?P<fence>`{3,})(?P<info>[^`\n]*)$", re.MULTILINE)
# What only the environment may write. A line that starts so after an action was made up by the model.
_INVENTED_TAG = re.compile(r"^[ \t]*(?:</?tool_response>|<\|im_start\|>)", re.MULTILINE)
_INVENTED_LINE = re.compile(
    r"^[ \t]*(?:</?tool_response>|<\|im_start\|>|[*_#> \t]*observation[*_ \t]*:)", re.MULTILINE | re.IGNORECASE
)
# Beyond this a closer is taken at its word instead of being checked with the parser.
_MAX_PARSED_CHARS = 200_000


@dataclass(frozen=True)
class Block:
    """A piece of code found in a reply.

    Attributes:
        code: The source, without the markers.
        end: Offset just behind the closing marker.
    """

    code: str
    end: int


@dataclass(frozen=True)
class Thinking:
    """A thinking section.

    Attributes:
        start: Offset of the section.
        end: Offset just behind it; the text's length when it is never closed.
        body: What was thought.
        is_closed: False when the closing tag is missing.
    """

    start: int
    end: int
    body: str
    is_closed: bool


def clean_text(text: str) -> str:
    """Returns text that survives JSON and UTF-8: NULs and lone surrogates become U+FFFD."""
    return _UNSAFE.sub("\ufffd", text)


def find_thinking(text: str, start: int = 0) -> Thinking | None:
    """Finds the first thinking section at or behind an offset; nested tags belong to the outer section.

    A closing tag without an opening one ends a section that a chat template has opened in the prompt.
    """
    first = _THINK_TAG.search(text, start)
    if first is None:
        return None
    if first.group() == THINK_CLOSE:
        # Only a tag at the border of a line: one in the middle may be a string in code.
        orphan = _ORPHAN_CLOSE.search(text) if start == 0 else None
        if orphan is None:
            return None
        return Thinking(0, orphan.end(), text[: orphan.start()].strip(), is_closed=True)
    depth, last_close = 0, None
    for tag in _THINK_TAG.finditer(text, first.start()):
        depth += 1 if tag.group() == THINK_OPEN else -1
        if tag.group() == THINK_CLOSE:
            last_close = tag
        if depth == 0:
            break
    if last_close is None:
        return Thinking(first.start(), len(text), text[first.end() :].strip(), is_closed=False)
    # Not balanced (the thought mentions the tag): the last closing tag is taken.
    return Thinking(first.start(), last_close.end(), text[first.end() : last_close.start()].strip(), is_closed=True)


def strip_thinking(text: str) -> str:
    """Returns what is visible of a reply: all but its thinking sections; an unclosed one hides the rest."""
    visible, position = [], 0
    while (section := find_thinking(text, position)) is not None:
        visible.append(text[position : section.start])
        position = section.end
    return "".join([*visible, text[position:]])


def invented_at(text: str, start: int, *, after_action: bool) -> int | None:
    """Returns the offset at which the model starts to play the environment, or None.

    Args:
        text: The reply.
        start: Where to start looking; never inside code.
        after_action: Also count a line ``Observation: ...``, which before an action is only prose.
    """
    found = (_INVENTED_LINE if after_action else _INVENTED_TAG).search(text, start)
    return None if found is None else found.start()


def next_fence(text: str, start: int) -> re.Match[str] | None:
    """Returns the next line that opens or closes a fence (groups ``fence`` and ``info``); never one inside a line."""
    return _FENCE_LINE.search(text, start)


def read_fenced(text: str, opener: re.Match[str]) -> Block | None:
    """Reads the code behind an opening fence; None when the fence is never closed."""
    start = min(opener.end() + 1, len(text))
    width = len(opener["fence"])
    closer = _choose_closer(
        text,
        start,
        (
            match
            for match in _FENCE_LINE.finditer(text, start)
            if len(match["fence"]) >= width and not match["info"].strip()
        ),
    )
    if closer is None:
        return None
    indent = len(opener.group()) - len(opener.group().lstrip(" "))
    code = text[start : closer.start()].removesuffix("\n")
    if indent:
        code = re.sub(rf"^ {{1,{indent}}}", "", code, flags=re.MULTILINE)
    return Block(code, closer.end())


def read_until(text: str, start: int, closer: re.Pattern[str]) -> Block | None:
    """Reads code up to a closing mark that is not inside a triple-quoted string; None when there is none."""
    found = _choose_closer(text, start, closer.finditer(text, start))
    if found is None:
        return None
    return Block(text[start : found.start()].removeprefix("\n").removesuffix("\n"), found.end())


def is_blank_code(code: str) -> bool:
    """Tells whether code has nothing to run: no lines but blank ones and comments."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in code.split("\n"))


def _choose_closer(text: str, start: int, closers: Iterator[re.Match[str]]) -> re.Match[str] | None:
    """Returns the mark that ends the code.

    It is the first one outside a triple-quoted string. A string that swallows an earlier mark must also leave Python
    that parses: else its quotes were unbalanced, and the first mark is the end.
    """
    first = next(closers, None)
    if first is None or not _ends_in_string(text[start : first.start()]):
        return first
    others = list(closers)
    spans = _triple_quoted_spans(text[start : others[-1].start()]) if others else []
    starts = [span[0] for span in spans]
    for closer in others:
        offset = closer.start() - start
        nearest = bisect.bisect_right(starts, offset) - 1
        if nearest < 0 or offset >= spans[nearest][1]:
            return closer if _parses(text[start : closer.start()]) else first
    return first


def _ends_in_string(code: str) -> bool:
    spans = _triple_quoted_spans(code)
    if not spans or spans[-1][1] < len(code):
        return False
    quoted = code[spans[-1][0] :]
    return len(quoted) < 6 or not quoted.endswith(quoted[:3]) or quoted[:-3].endswith("\\")


def _triple_quoted_spans(code: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    position = 0
    while (match := _LEXEME.search(code, position)) is not None:
        position = match.end()
        quote = match.group()
        if quote in ('"""', "'''"):
            position = _end_of_string(code, match.end(), quote)
            spans.append((match.start(), position))
    return spans


def _end_of_string(code: str, start: int, quote: str) -> int:
    position = start
    while (found := code.find(quote, position)) >= 0:
        slashes = found
        while slashes > start and code[slashes - 1] == "\\":
            slashes -= 1
        if (found - slashes) % 2 == 0:
            return found + len(quote)
        position = found + 1
    return len(code)


def _parses(code: str) -> bool:
    if len(code) > _MAX_PARSED_CHARS:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(code)
        except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError):
            return False
    return True
