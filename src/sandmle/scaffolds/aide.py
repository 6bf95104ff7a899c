"""The ``aide`` scaffold: draft, debug and improve in a greedy tree search (arXiv 2502.13138)."""

import time
from collections.abc import Callable

from pydantic import Field

from sandmle.env import Episode
from sandmle.policies.base import Policy, SamplingParams
from sandmle.records import Record, Trajectory
from sandmle.scaffolds.search.greedy import GreedySearch
from sandmle.scaffolds.search.loop import SearchRules, run_search


class AideOptions(Record):
    """The settings of ``aide``, with the published defaults; the number of steps is the episode's ``max_turns``."""

    num_drafts: int = Field(default=5, gt=0)
    """Drafts before anything is mended or improved."""
    debug_prob: float = Field(default=0.5, ge=0, le=1)
    """Probability that a broken script is mended while there is one."""
    max_debug_depth: int = Field(default=3, ge=0)
    """Repairs in a row of one script."""
    k_fold: int | None = Field(default=5, gt=1)
    """Folds that scripts are asked to validate with."""
    data_preview: bool = True
    """Begin with a look at the files."""
    max_tries: int = Field(default=3, gt=0)
    """Replies to one request until one can be read."""


class AideScaffold:
    """Tree search as AIDE does it; ``docs/guides/scaffolds-aide.md`` names what differs."""

    name = "aide"
    Options = AideOptions

    def __init__(self, options: AideOptions | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options or AideOptions()
        self._clock = clock

    async def run(self, episode: Episode, policy: Policy, sampling: SamplingParams, *, attempt: int = 0) -> Trajectory:
        """Runs an episode to its end and grades it. Never raises; see :class:`sandmle.scaffolds.base.Scaffold`."""
        options = self.options
        rules = SearchRules(
            policy=GreedySearch(options.num_drafts, options.debug_prob, options.max_debug_depth),
            memory="simple",
            debug_memory="none",
            uses_complexity=False,
            k_fold=options.k_fold,
            data_preview=options.data_preview,
            max_tries=options.max_tries,
            settings=options.digest(),
        )
        return await run_search(self.name, rules, episode, policy, sampling, attempt=attempt, clock=self._clock)
