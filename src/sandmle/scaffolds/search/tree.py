"""The tree of a search: scripts, what they printed, what they scored. Plain questions, no decisions."""

from dataclasses import dataclass

from sandmle.records import Direction, SearchNode


@dataclass(frozen=True)
class Tried:
    """A node with all that the search keeps of it.

    Attributes:
        node: The record.
        code: The script; empty when no reply held one.
        output: What came back, as an agent reads it.
        submission: The submission, if it has the right form.
    """

    node: SearchNode
    code: str
    output: str
    submission: bytes | None


class Tree:
    """All nodes so far, in the order in which they were made."""

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.tried: list[Tried] = []

    def __len__(self) -> int:
        return len(self.tried)

    @property
    def nodes(self) -> tuple[SearchNode, ...]:
        """The records."""
        return tuple(each.node for each in self.tried)

    def roots(self) -> list[int]:
        """Returns the drafts."""
        return [node.index for node in self.nodes if not node.parents]

    def children(self, index: int) -> list[int]:
        """Returns the nodes that were made from a node."""
        return [node.index for node in self.nodes if index in node.parents]

    def is_good(self, index: int) -> bool:
        """Tells whether a node can be built on."""
        return not self.tried[index].node.is_buggy

    def good(self) -> list[int]:
        """Returns the nodes that can be built on."""
        return [node.index for node in self.nodes if not node.is_buggy]

    def can_be_debugged(self, index: int) -> bool:
        """Tells whether a node is buggy and has a script to mend."""
        return not self.is_good(index) and bool(self.tried[index].code)

    def debug_depth(self, index: int) -> int:
        """Returns how many repairs in a row led to a node."""
        depth, node = 0, self.tried[index].node
        while node.operator == "debug":
            depth, node = depth + 1, self.tried[node.parents[0]].node
        return depth

    def value(self, index: int) -> float:
        """Returns the validation score of a good node, turned so that more is better.

        The direction is the task's, never what a model says of it (case G37).
        """
        score = self.tried[index].node.validation_score
        if score is None:
            raise ValueError(f"node {index} has no validation score")
        return score if self.direction is Direction.MAXIMIZE else -score

    def best(self) -> int | None:
        """Returns the good node with the best validation score, the earliest of equals; None when there is none."""
        return max(self.good(), key=lambda index: (self.value(index), -index), default=None)

    def to_submit(self) -> int | None:
        """Returns the node whose submission is handed in.

        It is the best one by validation score; without any, the last one whose submission at least has the right form.
        """
        best = self.best()
        if best is not None:
            return best
        usable = [each.node.index for each in self.tried if each.submission is not None]
        return usable[-1] if usable else None


@dataclass(frozen=True)
class Chain:
    """A script and the repairs that followed it, as one attempt.

    Attributes:
        nodes: Their indices, in order.
    """

    nodes: tuple[int, ...]

    @property
    def end(self) -> int:
        """The last node: good, or given up."""
        return self.nodes[-1]

    def parent(self, tree: Tree) -> int | None:
        """Returns the node that the attempt started from; None for a draft."""
        parents = tree.tried[self.nodes[0]].node.parents
        return parents[0] if parents else None


def chains_of(tree: Tree) -> list[Chain]:
    """Returns the attempts of a search whose policy repairs one script at a time, in order."""
    chains: list[Chain] = []
    place: dict[int, int] = {}
    for node in tree.nodes:
        if node.operator == "debug":
            at = place[node.parents[0]]
            chains[at] = Chain((*chains[at].nodes, node.index))
        else:
            at = len(chains)
            chains.append(Chain((node.index,)))
        place[node.index] = at
    return chains


def unfinished(tree: Tree, chains: list[Chain], max_debug_depth: int) -> int | None:
    """Returns the node that the last attempt has still to mend, or None."""
    if not chains:
        return None
    end = chains[-1].end
    return end if tree.can_be_debugged(end) and tree.debug_depth(end) < max_debug_depth else None
