"""Replies that are one JSON object: the reading of a script's output, and the actions of the ``mle_agent`` scaffold."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sandmle.grammars.scan import clean_text, strip_thinking

_MAX_BRACES = 200
_LARGEST = 1e100

ACTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "request_info": ("info_type",),
        "validate_code": ("code",),
        "execute_code": ("code",),
        "get_history": (),
        "reset": (),
        "finish": (),
    }
)
"""The actions of ``mle_agent`` and their parameters."""


@dataclass(frozen=True)
class JsonAction:
    """An action of the ``mle_agent`` scaffold."""

    name: str
    params: Mapping[str, str] = field(default_factory=dict)


def read_object(text: str) -> dict[str, Any] | None:
    """Returns the first JSON object of a reply that is not inside a thinking section; None when there is none."""
    text = clean_text(strip_thinking(text))
    decoder = json.JSONDecoder(strict=False)
    position = -1
    for _ in range(_MAX_BRACES):
        position = text.find("{", position + 1)
        if position < 0:
            return None
        try:
            value, _ = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def read_number(value: Any) -> float | None:
    """Returns a number from a JSON value: integers and numbers written as text count, true and NaN do not.

    Numbers beyond any metric count as none too: sums and differences of them are infinite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) <= _LARGEST else None


def parse_json_action(text: str) -> JsonAction | str:
    """Returns the action of a reply, or one sentence that says what is wrong with it. Never raises."""
    found = read_object(text)
    if found is None:
        return 'The reply holds no JSON object of the form {"action": ..., "params": {...}}.'
    name, params = found.get("action"), found.get("params", {})
    if not isinstance(name, str) or name not in ACTIONS:
        return f'"action" must be one of {", ".join(ACTIONS)}.'
    if not isinstance(params, dict):
        return '"params" must be a JSON object.'
    wanted = ACTIONS[name]
    for key in wanted:
        if not isinstance(params.get(key), str) or not params[key].strip():
            return f'{name} needs "params" with the text "{key}".'
    # Escapes become characters only in the decoder: half a surrogate pair could not be written down.
    return JsonAction(name, {key: clean_text(params[key]) for key in wanted})


def render_json_action(action: JsonAction) -> str:
    """Writes a reply in perfect form; :func:`parse_json_action` gives the same action back."""
    return json.dumps({"action": action.name, "params": dict(action.params)}, ensure_ascii=False)


def is_in_form(text: str, action: JsonAction) -> bool:
    """Tells whether a reply is the JSON object of an action and nothing else, but for a fence round it."""
    bare = strip_thinking(text).strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        value = json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and set(value) == {"action", "params"} and set(value["params"]) == set(action.params)
