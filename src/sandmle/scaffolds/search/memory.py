"""What a prompt tells of earlier scripts: a scope chooses the nodes; and how ambitious the next script should be."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from sandmle.scaffolds.search.tree import Tree

MemoryScope = Literal["none", "simple", "ancestral", "sibling"]
Complexity = Literal["simple", "normal", "complex"]


def remembered(tree: Tree, scope: MemoryScope, parents: tuple[int, ...]) -> list[int]:
    """Returns the nodes that a prompt tells of.

    Args:
        tree: The search.
        scope: ``none``; ``simple``: every script that came out well; ``ancestral``: the failed repairs back to the last
            script that came out well, or to the draft; ``sibling``: what else came out well of the same parents.
        parents: The nodes that the next script is made from; their own code stands in the prompt anyway.
    """
    return _SCOPES[scope](tree, parents)


def complexity_of(tree: Tree, parents: tuple[int, ...]) -> Complexity:
    """Returns how ambitious a script should be: the more has been made from the same place, the more.

    Fewer than two children ask for something simple, fewer than four for the usual, then for something elaborate
    (AIRA, arXiv 2507.02554).
    """
    n_children = len(tree.children(parents[0]) if parents else tree.roots())
    return "simple" if n_children < 2 else "normal" if n_children < 4 else "complex"


def _simple(tree: Tree, parents: tuple[int, ...]) -> list[int]:
    del parents
    return tree.good()


def _ancestral(tree: Tree, parents: tuple[int, ...]) -> list[int]:
    """Returns the broken scripts before the one at hand, the earliest first."""
    line: list[int] = []
    above = parents
    while above and not tree.is_good(above[0]):
        line.append(above[0])
        above = tree.tried[above[0]].node.parents
    return line[:0:-1]


def _sibling(tree: Tree, parents: tuple[int, ...]) -> list[int]:
    same = tree.children(parents[0]) if parents else tree.roots()
    return [index for index in same if tree.is_good(index)]


_SCOPES: Mapping[MemoryScope, Callable[[Tree, tuple[int, ...]], list[int]]] = MappingProxyType(
    {"none": lambda tree, parents: [], "simple": _simple, "ancestral": _ancestral, "sibling": _sibling}
)
