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


def first_pieces_script(kind: str, n_pieces: int, metric_name: str, seed: int) -> str:
    """Returns a script for a task that nothing is known of but that its rows are made of pieces.

    It takes the rows apart, prints what a look at the pieces tells, and fits a first model to them.

    Args:
        kind: What a prediction is made of, as for :func:`unpack_script`.
        n_pieces: Pieces in a row.
        metric_name: The task's metric as its description calls it.
        seed: Of the model.
    """
    whole = {"pieces": kind, "metric_name": metric_name}
    model = write_script("pieces", kind=kind, seed=seed, p=whole)
    return "\n\n".join([unpack_script(kind, n_pieces), write_script("look", root=PIECES), model])


def write_script(template: str, **values: Any) -> str:
    """Returns a script.

    Args:
        template: Name of a file in ``templates``, without ``.py.j2``.
        values: What the template needs; ``p`` is the :class:`Profile`.
    """
    text = (
        _environment()
        .get_template(f"{template}.py.j2")
        .render(**{"done": SUBMITTED, "tuned": False, "scored": False, **values})
    )
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
