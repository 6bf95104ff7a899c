"""What a run would ask and cost, before anything is asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandmle.authoring.roles.facts import shape_of
from sandmle.authoring.roles.models import list_prices
from sandmle.authoring.roles.options import LLMOptions, SpendLimits
from sandmle.authoring.roles.prompts import render
from sandmle.seeds import load_seed

TOKENS_OF_A_TASK = (13_000, 7_500)
"""Prompt and completion tokens of a task: twice what the shipped recordings take with one script sent back.

Counted at four characters a token, conversations sent whole at each turn; the rest is for models that think aloud.
"""


@dataclass(frozen=True)
class Estimate:
    """What a run would take.

    Attributes:
        n_tasks: Tasks.
        prompt_tokens, completion_tokens: Of all of them.
        usd: None where no price is known.
    """

    n_tasks: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None


def estimate(n_tasks: int, options: LLMOptions, limits: SpendLimits) -> Estimate:
    """Returns what a run would take.

    Raises:
        ConfigError: ``max_cost_usd`` is given but no price is known.
    """
    spoken, heard = (n_tasks * tokens for tokens in TOKENS_OF_A_TASK)
    prices = list_prices(options, limits)
    usd = None if prices is None else (spoken * prices[0] + heard * prices[1]) / 1e6
    return Estimate(n_tasks, spoken, heard, usd)


def first_prompts(seed_ids: Sequence[str]) -> dict[str, str]:
    """Returns the prompt that each seed's strategist would get; the other roles' need its answer."""
    found = {}
    for seed_id in seed_ids:
        system, user = render("strategist", **shape_of(load_seed(seed_id)), taken=())
        found[seed_id] = f"{system}\n\n{user}"
    return found
