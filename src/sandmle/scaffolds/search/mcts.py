"""Monte Carlo tree search over scripts, with values instead of random playouts (AIRA, arXiv 2507.02554)."""

import math
from dataclasses import dataclass

from sandmle.scaffolds.search.base import Dice, Move, normalised
from sandmle.scaffolds.search.tree import Chain, Tree, chains_of, unfinished


@dataclass(frozen=True)
class MonteCarloSearch:
    """Goes down to a leaf by upper confidence bounds, expands it fully, repairs each broken child at once.

    Visits and values are those of the tree: a node counts every attempt of its subtree that came to a score, itself
    included. Scores are turned so that more is better before they are brought between 0 and 1.

    Attributes:
        num_children: Children of an expanded node.
        uct_c: Weight of exploring.
        max_debug_depth: Repairs in a row of one script.
    """

    num_children: int = 5
    uct_c: float = 0.25
    max_debug_depth: int = 20

    def choose(self, tree: Tree, dice: Dice) -> Move:
        """Returns the next move; there is nothing random in it."""
        del dice
        chains = chains_of(tree)
        broken = unfinished(tree, chains, self.max_debug_depth)
        if broken is not None:
            return Move("debug", (broken,))
        below = _Below(tree, chains)
        if chains:
            parent = chains[-1].parent(tree)
            if len(below.attempts(parent)) % self.num_children:
                return _expand(parent)
        return _expand(self._select(below))

    def _select(self, below: "_Below") -> int | None:
        """Returns the leaf to expand; None for the root, also when all leaves are dead ends."""
        position: int | None = None
        while live := [end for end in below.ends(position) if below.is_live(end)]:
            n_above = below.visits(position)
            position = max(live, key=lambda end: (self._bound(below, end, n_above), -end))
            if not below.attempts(position):
                break
        return position

    def _bound(self, below: "_Below", end: int, n_above: int) -> float:
        n_visits = below.visits(end)
        return below.mean(end) + self.uct_c * math.sqrt(math.log(n_above) / n_visits)


class _Below:
    """What lies below each node; None is the root."""

    def __init__(self, tree: Tree, chains: list[Chain]) -> None:
        self._attempts: dict[int | None, list[Chain]] = {}
        for chain in chains:
            self._attempts.setdefault(chain.parent(tree), []).append(chain)
        good = tree.good()
        self._value = dict(zip(good, normalised([tree.value(index) for index in good]), strict=True))

    def attempts(self, position: int | None) -> list[Chain]:
        """Returns all attempts that started from a node."""
        return self._attempts.get(position, [])

    def ends(self, position: int | None) -> list[int]:
        """Returns the scripts that came out well."""
        return [chain.end for chain in self.attempts(position) if chain.end in self._value]

    def is_live(self, position: int) -> bool:
        """Tells whether there is something to expand at or below a node."""
        return not self.attempts(position) or any(self.is_live(end) for end in self.ends(position))

    def mean(self, position: int) -> float:
        """Returns the mean value at and below a node."""
        values = self._values(position)
        return math.fsum(values) / len(values)

    def visits(self, position: int | None) -> int:
        """Returns how many attempts at and below a node came to a score."""
        return len(self._values(position))

    def _values(self, position: int | None) -> list[float]:
        own = [] if position is None else [self._value[position]]
        return own + [value for end in self.ends(position) for value in self._values(end)]


def _expand(position: int | None) -> Move:
    return Move("draft") if position is None else Move("improve", (position,))
