"""The description must not give the hidden rule away."""

import re

from sandmle.gate.base import RULE_FILE, Check, Finding, GateContext, words_of

_REVEALING = re.compile(
    r"hidden rule|secret rule|true rule|ground[- ]truth rule|decision rule|log[- ]odds|logits?\b|coefficients? of"
    r"|noise (?:level|standard deviation|scale)"
    r"|label(?:s)? (?:is|are) \d+ (?:if|when|where)",
    re.IGNORECASE,
)
_SHINGLE = 8
"""So many words in a row that the rule and the description share are a quotation."""
_NUMBERS_SHARED = 2
_EXACT_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)")


def run(context: GateContext) -> Finding:
    """Looks for words that only a rule needs, and for quotations and exact numbers of provenance/rule.md."""
    text = context.bundle.description()
    found = [f"description.md says {match.group()!r}" for match in _REVEALING.finditer(text)]
    if (context.bundle.root / RULE_FILE).is_file():
        rule = context.read(RULE_FILE).decode(errors="replace")
        quoted = _shingles(rule) & _shingles(text)
        if quoted:
            found.append(f"description.md quotes the rule: {min(quoted)!r}")
        shared = sorted(_exact_numbers(rule) & _exact_numbers(text))
        if len(shared) >= _NUMBERS_SHARED:
            found.append(f"description.md gives the rule's numbers {shared[0]} and {shared[1]}")
    return Finding(not found, found[0] if found else "", float(len(found)), 0.0)


def _shingles(text: str) -> set[str]:
    words = words_of(text)
    return {" ".join(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1)}


def _exact_numbers(text: str) -> set[str]:
    """Returns the decimal numbers with three significant digits or more, which nobody writes by chance."""
    return {number for number in _EXACT_NUMBER.findall(text) if len(number.replace(".", "").strip("0")) >= 3}


CHECK = Check("rule_revealed", run)
