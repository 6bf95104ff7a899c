"""The tree of a search as rows: every script below the one that it was made from."""

from dataclasses import dataclass

from sandmle.evaluation.formats import score_text
from sandmle.evaluation.text import clean_line
from sandmle.records import SearchNode, Trajectory

MAX_ROWS = 300
MAX_PLAN_CHARS = 300
_MAX_DEPTH = 12
"""Rows deeper than this are not moved further in, so that a long chain of repairs stays on the page."""


@dataclass(frozen=True)
class TreeRow:
    """One node, ready to be shown; no text is escaped.

    Attributes:
        number: Counts from 1.
        depth: How far the row is moved in.
        operator: How the script came to be.
        parents: Numbers of the nodes that it was made from.
        score: Its validation score; empty if there is none.
        is_buggy: It cannot be built on.
        is_chosen: Its submission was graded.
        turn: Number of the turn that ran it; None if no reply held a script.
        plan: What the model meant to do, on one line.
        analysis: What the model made of the output, on one line.
    """

    number: int
    depth: int
    operator: str
    parents: tuple[int, ...]
    score: str
    is_buggy: bool
    is_chosen: bool
    turn: int | None
    plan: str
    analysis: str


@dataclass(frozen=True)
class SearchTree:
    """The rows, parents before children, and how many were left out."""

    rows: tuple[TreeRow, ...]
    n_left_out: int


def tree_of(trajectory: Trajectory) -> SearchTree:
    """Returns the tree of a trajectory; without rows where the scaffold keeps none."""
    nodes = trajectory.nodes
    children: dict[int | None, list[int]] = {}
    for place, node in enumerate(nodes):
        # A file may say anything: only an earlier node can be a parent, so that there is no way round in a circle.
        above = next((parent for parent in node.parents if 0 <= parent < place), None)
        children.setdefault(above, []).append(place)
    rows: list[TreeRow] = []
    waiting = [(place, 0) for place in reversed(children.get(None, []))]
    while waiting and len(rows) < MAX_ROWS:
        place, depth = waiting.pop()
        rows.append(_row(nodes[place], place, depth, is_chosen=place == trajectory.chosen_node))
        waiting += [(child, depth + 1) for child in reversed(children.get(place, []))]
    return SearchTree(tuple(rows), len(nodes) - len(rows))


def _row(node: SearchNode, place: int, depth: int, *, is_chosen: bool) -> TreeRow:
    return TreeRow(
        number=place + 1,
        depth=min(depth, _MAX_DEPTH),
        operator=node.operator,
        parents=tuple(parent + 1 for parent in node.parents),
        score="" if node.validation_score is None else score_text(node.validation_score),
        is_buggy=node.is_buggy,
        is_chosen=is_chosen,
        turn=None if node.step is None else node.step + 1,
        plan=_short(node.plan),
        analysis=_short(node.analysis),
    )


def _short(text: str) -> str:
    line = clean_line(text)
    return line if len(line) <= MAX_PLAN_CHARS else f"{line[:MAX_PLAN_CHARS]}…"
