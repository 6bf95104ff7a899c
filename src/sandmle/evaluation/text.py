"""Makes text that models or files chose safe to show: no terminal escapes, no invisible controls, valid UTF-8."""

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and other strings: titles, links, clipboard
    r"|[ -/]*[0-~])?"  # two-character escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
# Controls but tab and newline, lone surrogates, and what reorders or hides text (Trojan Source, CVE-2021-42574).
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)


def clean_text(text: str) -> str:
    """Returns text of several lines: escape sequences are dropped, other unsafe characters become U+FFFD."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub("\ufffd", text)


def clean_line(text: str) -> str:
    """Returns clean text on one line."""
    return " ".join(clean_text(text).split())
