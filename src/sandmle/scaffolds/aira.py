"""The ``aira`` scaffolds: five operators under greedy, Monte Carlo or evolutionary search (arXiv 2507.02554)."""

import time
from collections.abc import Callable
from typing import ClassVar

from pydantic import Field

from sandmle.env import Episode
from sandmle.policies.base import Policy, SamplingParams
from sandmle.records import Record, Trajectory
from sandmle.scaffolds.search.base import SearchPolicy
from sandmle.scaffolds.search.evolutionary import EvolutionarySearch
from sandmle.scaffolds.search.greedy import GreedySearch
from sandmle.scaffolds.search.loop import SearchRules, run_search
from sandmle.scaffolds.search.mcts import MonteCarloSearch
from sandmle.scaffolds.search.memory import MemoryScope


class AiraOptions(Record):
    """What all ``aira`` scaffolds share, with the published defaults; the steps are the episode's ``max_turns``."""

    memory: MemoryScope = "simple"
    """What draft, improve and crossover are told of earlier scripts."""
    debug_memory: MemoryScope = "ancestral"
    """What debug is told: the repairs of the same script that did not help."""
    use_complexity: bool = False
    """Tell how ambitious a script should be, the more the more there is from the same place."""
    data_preview: bool = True
    """Begin with a look at the files."""
    k_fold: int | None = Field(default=5, gt=1)
    """Folds that scripts are asked to validate with; null leaves the choice to the model."""
    max_tries: int = Field(default=3, gt=0)
    """Replies to one request until one can be read."""


class GreedyOptions(AiraOptions):
    """The settings of ``aira``."""

    num_drafts: int = Field(default=5, gt=0)
    debug_prob: float = Field(default=1.0, ge=0, le=1)
    max_debug_depth: int = Field(default=20, ge=0)

    def search_policy(self) -> SearchPolicy:
        """Returns the policy with these settings."""
        return GreedySearch(self.num_drafts, self.debug_prob, self.max_debug_depth)


class MctsOptions(AiraOptions):
    """The settings of ``aira_mcts``."""

    num_children: int = Field(default=5, gt=0)
    uct_c: float = Field(default=0.25, ge=0)
    max_debug_depth: int = Field(default=20, ge=0)

    def search_policy(self) -> SearchPolicy:
        """Returns the policy with these settings."""
        return MonteCarloSearch(self.num_children, self.uct_c, self.max_debug_depth)


class EvolutionaryOptions(AiraOptions):
    """The settings of ``aira_evolutionary``."""

    num_islands: int = Field(default=1, gt=0)
    num_drafts: int = Field(default=5, gt=0)
    """Drafts of each island."""
    individuals_per_generation: int = Field(default=5, gt=0)
    crossover_prob: float = Field(default=0.5, ge=0, le=1)
    num_generations_till_crossover: int = Field(default=2, ge=0)
    max_island_size: int = Field(default=500, gt=0)
    migration_prob: float = Field(default=0.0, ge=0, le=1)
    num_generations_till_migration: int = Field(default=999, gt=0)
    temperature: float = Field(default=1.0, gt=0)
    max_debug_depth: int = Field(default=10, ge=0)

    def search_policy(self) -> SearchPolicy:
        """Returns the policy with these settings."""
        own = {name: getattr(self, name) for name in EvolutionarySearch.__dataclass_fields__}
        return EvolutionarySearch(**own)


AnyOptions = GreedyOptions | MctsOptions | EvolutionaryOptions


class AiraScaffold:
    """Greedy search with AIRA's operators; ``docs/guides/scaffolds-aira.md`` names what differs."""

    name = "aira"
    Options: ClassVar[type[AnyOptions]] = GreedyOptions

    def __init__(self, options: AnyOptions | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options or self.Options()
        self._clock = clock

    async def run(self, episode: Episode, policy: Policy, sampling: SamplingParams, *, attempt: int = 0) -> Trajectory:
        """Runs an episode to its end and grades it. Never raises; see :class:`sandmle.scaffolds.base.Scaffold`."""
        options = self.options
        rules = SearchRules(
            policy=options.search_policy(),
            memory=options.memory,
            debug_memory=options.debug_memory,
            uses_complexity=options.use_complexity,
            k_fold=options.k_fold,
            data_preview=options.data_preview,
            max_tries=options.max_tries,
            settings=options.digest(),
        )
        return await run_search(self.name, rules, episode, policy, sampling, attempt=attempt, clock=self._clock)


class AiraMctsScaffold(AiraScaffold):
    """The same operators under Monte Carlo tree search."""

    name = "aira_mcts"
    Options = MctsOptions


class AiraEvolutionaryScaffold(AiraScaffold):
    """The same operators under evolutionary search with islands."""

    name = "aira_evolutionary"
    Options = EvolutionaryOptions
