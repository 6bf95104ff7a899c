"""What was spent, and what may still be: the budget is reserved before a request and never exceeded."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sandmle.authoring.roles.journal import ReplyLine
from sandmle.authoring.roles.options import SpendLimits
from sandmle.errors import SandmleError

_CHARS_PER_TOKEN = 3.0
"""Fewer characters than a token usually has, so that reservations are on the safe side."""


class BudgetSpentError(SandmleError):
    """The budget does not allow another request. What was paid for is kept."""


class Ledger:
    """Adds up tokens and dollars, and holds requests back that could go over the limits.

    Attributes:
        prompt_tokens, completion_tokens, cost_usd, n_replies: All that was paid for, resumed runs included.
        n_repairs: Replies that were sent back.
        is_priced: Every reply so far has a price, so that ``cost_usd`` is all of it.
    """

    def __init__(self, limits: SpendLimits, prices: tuple[float, float] | None) -> None:
        """Starts at nothing.

        Args:
            limits: What may be spent.
            prices: US dollars for a million prompt and completion tokens; None where unknown.
        """
        self.prompt_tokens = self.completion_tokens = self.n_replies = self.n_repairs = 0
        self.cost_usd = 0.0
        self.is_priced = True
        self._limits, self.prices = limits, prices
        self._held_usd, self._held_tokens = 0.0, 0
        self._changed = asyncio.Condition()

    def add(self, line: ReplyLine) -> None:
        """Books a reply."""
        self.n_replies += 1
        self.prompt_tokens += line.prompt_tokens
        self.completion_tokens += line.completion_tokens
        self.cost_usd += line.cost_usd or 0.0
        self.is_priced = self.is_priced and line.cost_usd is not None

    @property
    def total_tokens(self) -> int:
        """Tokens of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    def price_of(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Returns dollars, or None where no price is known."""
        if self.prices is None:
            return None
        return (prompt_tokens * self.prices[0] + completion_tokens * self.prices[1]) / 1e6

    @asynccontextmanager
    async def reserved(self, prompt_chars: int, max_tokens: int) -> AsyncIterator[None]:
        """Holds the most that a request can cost; waits while others hold what it would need.

        Raises:
            BudgetSpentError: It does not fit, even when nothing else is in flight.
        """
        prompt_tokens = tokens_of(prompt_chars) + 16
        tokens = prompt_tokens + max_tokens
        usd = self.price_of(prompt_tokens, max_tokens) or 0.0
        async with self._changed:
            while not self._fits(usd, tokens):
                if self._held_tokens == 0:
                    raise BudgetSpentError(self._why(usd, tokens))
                await self._changed.wait()
            self._held_usd += usd
            self._held_tokens += tokens
        try:
            yield
        finally:
            async with self._changed:
                self._held_usd -= usd
                self._held_tokens -= tokens
                self._changed.notify_all()

    def _fits(self, usd: float, tokens: int) -> bool:
        limits = self._limits
        fits_usd = limits.max_cost_usd is None or self.cost_usd + self._held_usd + usd <= limits.max_cost_usd + 1e-12
        fits_tokens = (
            limits.max_total_tokens is None or self.total_tokens + self._held_tokens + tokens <= limits.max_total_tokens
        )
        return fits_usd and fits_tokens

    def _why(self, usd: float, tokens: int) -> str:
        limits = self._limits
        if limits.max_cost_usd is not None and self.cost_usd + usd > limits.max_cost_usd:
            return (
                f"the budget of {limits.max_cost_usd:g} USD is spent to {self.cost_usd:.4f} USD and the next reply may "
                f"cost {usd:.4f} USD; go on with --resume and a larger --max-cost"
            )
        return (
            f"the budget of {limits.max_total_tokens} tokens is spent to {self.total_tokens} and the next reply may "
            f"take {tokens}; go on with --resume and a larger --max-total-tokens"
        )


def tokens_of(n_chars: int) -> int:
    """Returns about how many tokens a text has, rather more than fewer."""
    return math.ceil(n_chars / _CHARS_PER_TOKEN)
