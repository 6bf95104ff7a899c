"""Budgets are reserved before a request and never exceeded."""

import asyncio

import pytest

from sandmle.authoring.roles.journal import ReplyLine
from sandmle.authoring.roles.ledger import BudgetSpentError, Ledger
from sandmle.authoring.roles.options import SpendLimits

REPLY = ReplyLine(role="writer", text="x", prompt_tokens=100, completion_tokens=100, cost_usd=0.03)


async def _spend(ledger: Ledger, n_tasks: int) -> int:
    n_paid = 0

    async def one() -> None:
        nonlocal n_paid
        async with ledger.reserved(300, 100):
            await asyncio.sleep(0.001)
            ledger.add(REPLY)
            n_paid += 1

    results = await asyncio.gather(*(one() for _ in range(n_tasks)), return_exceptions=True)
    assert all(result is None or isinstance(result, BudgetSpentError) for result in results)
    return n_paid


async def test_many_at_once_never_go_over_the_budget():
    ledger = Ledger(SpendLimits(max_cost_usd=0.2), prices=(100.0, 200.0))
    assert 4 <= await _spend(ledger, 20) <= 6
    assert ledger.cost_usd <= 0.2


async def test_tokens_are_a_budget_too():
    ledger = Ledger(SpendLimits(max_total_tokens=1000), prices=None)
    assert await _spend(ledger, 20) == 4
    assert ledger.total_tokens <= 1000
    with pytest.raises(BudgetSpentError, match=r"the budget of 1000 tokens .* larger --max-total-tokens"):
        async with ledger.reserved(300, 100):
            pass


async def test_too_small_a_budget_names_the_fix():
    ledger = Ledger(SpendLimits(max_cost_usd=0.001), prices=(100.0, 200.0))
    with pytest.raises(BudgetSpentError, match=r"go on with --resume and a larger --max-cost"):
        async with ledger.reserved(300, 100):
            pass


async def test_no_limit_holds_nothing_back():
    ledger = Ledger(SpendLimits(), prices=None)
    assert await _spend(ledger, 20) == 20
