"""The contract of a search policy: the tree so far in, the next move out.

A policy keeps nothing: what it needs to know stands in the tree. So a search goes on after a kill from its journal
alone, and the same tree and dice give the same move.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sandmle.records import Operator
from sandmle.scaffolds.search.tree import Tree

Dice = Callable[[int], np.random.Generator]
"""Random numbers for a given move of a search."""


@dataclass(frozen=True)
class Move:
    """What to do next.

    Attributes:
        operator: How the next script is made.
        parents: From which nodes.
    """

    operator: Operator
    parents: tuple[int, ...] = ()


class SearchPolicy(Protocol):
    """Chooses where a search goes on. Stateless."""

    def choose(self, tree: Tree, dice: Dice) -> Move:
        """Returns the next move."""
        ...


def dice_of(rng_seed: int) -> Dice:
    """Returns the dice of a search: random numbers by seed and number of the move only."""
    return lambda number: np.random.default_rng([rng_seed % 2**63, number])


def normalised(values: list[float]) -> list[float]:
    """Returns values between 0 and 1, the worst and the best; all the same become 0.5.

    The values are turned before (more is better), so that also errors come out between 0 and 1.
    """
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) if high > low else 0.5 for value in values]


def pick_softly(scores: list[float], temperature: float, count: int, rng: np.random.Generator) -> list[int]:
    """Returns the places of ``count`` different items, drawn by the softmax of their scores."""
    weights = np.exp((np.asarray(scores) - max(scores)) / temperature)
    return [int(place) for place in rng.choice(len(scores), size=count, replace=False, p=weights / weights.sum())]
