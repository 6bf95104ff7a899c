"""Greedy search: some drafts, then mend what is broken or improve what is best (AIDE, arXiv 2502.13138)."""

from dataclasses import dataclass

from sandmle.scaffolds.search.base import Dice, Move
from sandmle.scaffolds.search.tree import Tree


@dataclass(frozen=True)
class GreedySearch:
    """Drafts first, then with some probability a repair, else an improvement of the best script.

    Attributes:
        num_drafts: Drafts before anything else.
        debug_prob: Probability that a broken script is mended while there is one.
        max_debug_depth: Repairs in a row of one script.
    """

    num_drafts: int = 5
    debug_prob: float = 0.5
    max_debug_depth: int = 3

    def choose(self, tree: Tree, dice: Dice) -> Move:
        """Returns the next move."""
        if len(tree.roots()) < self.num_drafts:
            return Move("draft")
        rng = dice(len(tree))
        if rng.random() < self.debug_prob:
            broken = [node.index for node in tree.nodes if self._is_to_mend(tree, node.index)]
            if broken:
                return Move("debug", (broken[int(rng.integers(len(broken)))],))
        best = tree.best()
        return Move("draft") if best is None else Move("improve", (best,))

    def _is_to_mend(self, tree: Tree, index: int) -> bool:
        is_leaf = not tree.children(index)
        return is_leaf and tree.can_be_debugged(index) and tree.debug_depth(index) < self.max_debug_depth
