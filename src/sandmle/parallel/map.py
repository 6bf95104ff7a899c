"""``map_items``: one outcome an item, as they finish; a failing item never stops the others."""

import multiprocessing
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Generic, TypeVar

from sandmle.errors import ConfigError, SandmleError

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Outcome(Generic[Item, Result]):
    """What became of one item: a result, or the reason why there is none."""

    index: int
    item: Item
    result: Result | None = None
    error: str = ""
    """One sentence; empty when there is a result."""
    trace: str = ""
    """Traceback of an unexpected error, for the log."""


def map_items(
    function: Callable[[Item], Result], items: Sequence[Item], *, workers: int = 1
) -> Iterator[Outcome[Item, Result]]:
    """Applies a function to every item and yields outcomes as they finish.

    Args:
        function: Picklable when ``workers`` is above 1.
        items: The items; each carries its own ``rng_seed``, so that results do not depend on order or worker count.
        workers: Processes; 1 runs everything in this process.

    Raises:
        ConfigError: ``workers`` is below 1.
    """
    if workers < 1:
        raise ConfigError(f"workers is {workers}; give 1 or more")
    if workers == 1 or len(items) <= 1:
        for index, item in enumerate(items):
            yield _run(function, index, item)
        return
    # Forked children would copy threads' locks and BLAS state: start clean interpreters.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(items)), mp_context=context) as pool:
        futures = {pool.submit(_run, function, index, item): index for index, item in enumerate(items)}
        for future in as_completed(futures):
            index = futures[future]
            try:
                yield future.result()
            except BrokenProcessPool as error:
                yield Outcome(index, items[index], error=f"the worker process died: {error}")


def _run(function: Callable[[Item], Result], index: int, item: Item) -> Outcome[Item, Result]:
    try:
        return Outcome(index, item, result=function(item))
    except SandmleError as error:
        return Outcome(index, item, error=str(error))
    except Exception as error:  # a bug in one item must not lose the others; the trace goes into the record
        return Outcome(index, item, error=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
