"""A node of a search over scripts, as the tree-search scaffolds record it."""

from typing import Literal

from pydantic import Field

from sandmle.records.base import Record

Operator = Literal["draft", "debug", "improve", "crossover"]
"""How a script came to be; ``analyze`` reads what a script printed and makes none."""


class SearchNode(Record):
    """One script of a search: where it came from and what became of it. Code and output stand in the steps."""

    index: int = Field(ge=0)
    """Its place in the search, from 0."""
    operator: Operator
    parents: tuple[int, ...] = ()
    """Nodes that it was made from: none for a draft, two for a crossover."""
    step: int | None = None
    """Index of the trajectory's step that ran the script; None when no reply held a script."""
    plan: str = ""
    """What the model meant to do."""
    validation_score: float | None = None
    """The score that the script measured on its own held-out rows; the search chooses by it."""
    is_buggy: bool
    """It failed, or has no validation score, or no submission of the right form."""
    analysis: str = ""
    """What the model made of the output."""
