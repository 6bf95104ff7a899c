"""Reads what an OpenAI-compatible server sends, and takes nothing in it for granted. Pure functions."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandmle.grammars.scan import clean_text
from sandmle.records import Completion, FinishReason, Usage

_OVERFLOW = re.compile(
    r"context[ _-]*(?:length|window|size)|max(?:imum)?[ _](?:model[ _]len|sequence length|input length)|"
    r"prompt is too long|prompt too long|input is too long|too many input tokens|"
    r"token count[^.]{0,80}exceeds|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)
# Weaker words, for statuses that blame the request; a `max_tokens` that the server does not take is no full context.
_REQUEST_TOO_LONG = re.compile(
    r"must have less than \d+ tokens|`inputs` tokens \+ `max_new_tokens` must be|too many tokens|"
    r"(?:token|length|input|prompt|context)[^.]{0,80}(?<!_tokens )(?<!_tokens. )cannot exceed|"
    r"(?<!_tokens )(?<!_tokens. )cannot exceed[^.]{0,80}(?:token|context)",
    re.IGNORECASE,
)
_TOO_LONG = 413
_BLAMES_THE_REQUEST = frozenset({400, 422})
_FINISH = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}
_MAY_PASS = frozenset({408, 409, 425, 429})
_MAX_MESSAGE_CHARS = 300
_MAX_COUNT = 10**12


@dataclass(frozen=True)
class Fault:
    """Why there is no reply.

    Attributes:
        message: One sentence.
        may_pass: Worth another try.
        is_overflow: The transcript is too long for the model.
        retry_after_s: What the server asks to wait.
        status: The status of the server's reply, where there was one.
    """

    message: str
    may_pass: bool = False
    is_overflow: bool = False
    retry_after_s: float | None = None
    status: int | None = None


def fault_of_status(status: int, body: str, retry_after_s: float | None = None) -> Fault:
    """Returns the fault behind a reply that is not a success.

    A server may report a full context as any of 400, 413, 422 and 500; only 429 never means that, though its text may
    speak of too many tokens. A broken server may send the request back, and the agent's own words in it: with 5xx only
    the message of the error counts.
    """
    text = _shorten(body)
    if _is_overflow(status, body):
        return Fault(f"the context is full: {text}", is_overflow=True, status=status)
    may_pass = status in _MAY_PASS or status >= 500
    return Fault(f"the server answered {status}: {text}", may_pass, retry_after_s=retry_after_s, status=status)


def read_reply(text: str, prices: tuple[float | None, float | None]) -> Completion | Fault:
    """Reads the body of a successful reply.

    Args:
        text: The body.
        prices: US dollars for a million prompt tokens and for a million completion tokens, where known.
    """
    try:
        body = _parse(text)
    except (ValueError, RecursionError):
        return Fault(f"the server sent no JSON: {_shorten(text)}", may_pass=True)
    if not isinstance(body, dict):
        return Fault(f"the server sent no JSON object: {_shorten(text)}", may_pass=True)
    choice = _first_choice(body)
    if choice is None:
        return _fault_of_error(body.get("error"), text)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    content = _text_of(message.get("content"))
    finish = str(choice.get("finish_reason") or "stop").lower()
    if finish == "error":
        return _fault_of_error(choice.get("error") or body.get("error") or content, text)
    return Completion(
        text=content,
        finish_reason=_FINISH.get(finish, FinishReason.OTHER),
        reasoning=_text_of(message.get("reasoning_content")) or _text_of(message.get("reasoning")),
        usage=_usage(body.get("usage"), prices),
    )


def _is_overflow(status: int, body: str) -> bool:
    if status == _TOO_LONG:
        return True
    if status >= 500:
        return bool(_OVERFLOW.search(_own_message(body)))
    if status in _BLAMES_THE_REQUEST and _REQUEST_TOO_LONG.search(body):
        return True
    return status != 429 and bool(_OVERFLOW.search(body))


def _own_message(body: str) -> str:
    """Returns the message of an error object, of one in a field ``error``, or an error that is just a text."""
    try:
        error = _parse(body)
    except (ValueError, RecursionError):
        return ""
    if isinstance(error, dict) and error.get("error"):
        error = error["error"]
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _parse(text: str) -> Any:
    """Parses JSON, and takes whole numbers of absurd length for what they are, instead of failing at them."""
    return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= 20 else float(digits))


def _first_choice(body: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _fault_of_error(error: Any, text: str) -> Fault:
    """Returns the fault behind an error object that came with a status of success."""
    code = error.get("code", error.get("status")) if isinstance(error, dict) else None
    try:
        status = int(code) if code is not None else 500
    except (TypeError, ValueError, OverflowError):
        status = 500
    return fault_of_status(status if 400 <= status < 600 else 500, json.dumps(error) if error else text)


def _text_of(value: Any) -> str:
    """Returns text, or the text parts of a list of parts; anything else, null too, is no text."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        return clean_text("".join(part for part in parts if isinstance(part, str)))
    return ""


def _usage(value: Any, prices: tuple[float | None, float | None]) -> Usage:
    counts = value if isinstance(value, dict) else {}
    prompt, completion = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    cost = None
    if prices[0] is not None and prices[1] is not None:
        cost = (prompt * prices[0] + completion * prices[1]) / 1e6
    return Usage(requests=1, prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost)


def _count(value: Any) -> int:
    """Returns a count of tokens; 0 for what cannot be one."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_COUNT
    return value if is_count else 0


def _shorten(text: str) -> str:
    line = " ".join(clean_text(text).split())
    return line if len(line) <= _MAX_MESSAGE_CHARS else f"{line[:_MAX_MESSAGE_CHARS]}..."
