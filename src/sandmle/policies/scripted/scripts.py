"""Writes the engineers' scripts from templates."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from sandmle.policies.scripted.moves import SUBMITTED

PIECES = "pieces/"
"""Folder of the workspace that holds the pieces of rows as a table of their own."""


def unpack_script(kind: str, n_pieces: int) -> str:
    """Returns a script that takes the rows of ./input apart into a table of their pieces below ./pieces.

    Args:
        kind: What a prediction is made of: mask, boxes, order, span or words.
        n_pieces: Pieces in a row.
    """
    return write_script("unpack", kind=kind, k=n_pieces)


def write_script(template: str, **values: Any) -> str:
    """Returns a script.

    Args:
        template: Name of a file in ``templates``, without ``.py.j2``.
        values: What the template needs; ``p`` is the :class:`Profile`.
    """
    text = _environment().get_template(f"{template}.py.j2").render(**{"done": SUBMITTED, "tuned": False, **values})
    return _tidy(text)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("sandmle.policies.scripted"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["repr"] = repr
    return environment


def _tidy(text: str) -> str:
    """Returns code with at most two blank lines in a row and none at its ends."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.strip() or (lines and any(lines[-2:])):
            lines.append(line.rstrip())
    return "\n".join(lines).strip("\n")
