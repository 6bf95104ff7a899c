"""Evolutionary search with islands (AIRA, arXiv 2507.02554)."""

import math
from dataclasses import dataclass

import numpy as np

from sandmle.scaffolds.search.base import Dice, Move, normalised, pick_softly
from sandmle.scaffolds.search.tree import Chain, Tree, chains_of, unfinished

Islands = list[list[int]]


@dataclass(frozen=True)
class EvolutionarySearch:
    """Drafts fill the islands; then each generation improves or crosses members, the fitter the more often.

    A broken script is repaired at once. One that comes out well joins its island if it is at least as good as the
    island's mean. All of this is worked out anew from the tree at each move.

    Attributes:
        num_islands: Populations apart from each other.
        num_drafts: Drafts of each island, its generation 0.
        individuals_per_generation: Attempts of a generation, over all islands.
        crossover_prob: Probability of a crossover, once there may be any.
        num_generations_till_crossover: Generations without crossovers.
        max_island_size: Members of an island; the weakest leaves.
        migration_prob: Probability that at a migration the best member of each island also joins the next island.
        num_generations_till_migration: Generations between migrations.
        temperature: Of the softmax that draws islands and members.
        max_debug_depth: Repairs in a row of one script.
    """

    num_islands: int = 1
    num_drafts: int = 5
    individuals_per_generation: int = 5
    crossover_prob: float = 0.5
    num_generations_till_crossover: int = 2
    max_island_size: int = 500
    migration_prob: float = 0.0
    num_generations_till_migration: int = 999
    temperature: float = 1.0
    max_debug_depth: int = 10

    def choose(self, tree: Tree, dice: Dice) -> Move:
        """Returns the next move."""
        chains = chains_of(tree)
        broken = unfinished(tree, chains, self.max_debug_depth)
        if broken is not None:
            return Move("debug", (broken,))
        islands: Islands = [[] for _ in range(self.num_islands)]
        scored: list[int] = []
        for number, chain in enumerate(chains):
            island, _ = self._plan(tree, islands, scored, number, dice(number))
            self._settle(tree, islands[island], chain, is_draft=self._generation(number) == 0)
            if tree.is_good(chain.end):
                scored.append(chain.end)
        _, move = self._plan(tree, islands, scored, len(chains), dice(len(chains)))
        return move

    def _generation(self, number: int) -> int:
        n_first = self.num_islands * self.num_drafts
        return 0 if number < n_first else 1 + (number - n_first) // self.individuals_per_generation

    def _plan(
        self, tree: Tree, islands: Islands, scored: list[int], number: int, rng: np.random.Generator
    ) -> tuple[int, Move]:
        """Returns the island of an attempt and its move, and lets members migrate when it is time."""
        generation = self._generation(number)
        filled = [place for place, members in enumerate(islands) if members]
        if generation == 0 or not filled:
            return number % self.num_islands, Move("draft")
        if number and self._generation(number - 1) != generation:
            self._migrate(tree, islands, generation, rng)
        fitness = dict(zip(scored, normalised([tree.value(index) for index in scored]), strict=True))
        means = [math.fsum(fitness[index] for index in islands[place]) / len(islands[place]) for place in filled]
        island = filled[pick_softly(means, self.temperature, 1, rng)[0]]
        members = islands[island]
        may_cross = generation > self.num_generations_till_crossover and len(members) > 1
        count = 2 if may_cross and rng.random() < self.crossover_prob else 1
        places = pick_softly([fitness[index] for index in members], self.temperature, count, rng)
        parents = tuple(members[place] for place in places)
        return island, Move("crossover" if count == 2 else "improve", parents)

    def _settle(self, tree: Tree, members: list[int], chain: Chain, *, is_draft: bool) -> None:
        if not tree.is_good(chain.end):
            return
        values = [tree.value(index) for index in members]
        if is_draft or not values or tree.value(chain.end) >= math.fsum(values) / len(values):
            members.append(chain.end)
        if len(members) > self.max_island_size:
            members.remove(min(members, key=tree.value))

    def _migrate(self, tree: Tree, islands: Islands, generation: int, rng: np.random.Generator) -> None:
        if generation % self.num_generations_till_migration or len(islands) < 2 or rng.random() >= self.migration_prob:
            return
        travellers = [max(members, key=tree.value, default=None) for members in islands]
        for place, traveller in enumerate(travellers):
            target = islands[(place + 1) % len(islands)]
            if traveller is not None and traveller not in target:
                target.append(traveller)
