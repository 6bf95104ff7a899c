"""The map on a Ray cluster that is there already: one actor a worker, items handed out one at a time.

An item in hand when its node or process dies is handed to another actor, so nothing is lost; each item has exactly one
outcome, so nothing counts twice. An item that kills its actor again and again becomes an outcome with an error.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from sandmle.errors import ConfigError, SandmleError
from sandmle.parallel.map import Item, Outcome, Resource, Result, run_one

MOST_DEATHS = 3
"""Actors that may die with one item in hand before the item is given up."""
_CLOSE_WAIT_S = 10.0


class _Host:
    """What an actor is: a resource, opened once, and the function that items are put through."""

    def __init__(
        self, function: Callable[[Any, Any], Any], resource: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        self._function, self._resource = function, resource
        self._stack = ExitStack()
        self._opened: Any = None

    def open(self) -> str:
        """Opens the resource; returns why it cannot be, or nothing."""
        try:
            self._opened = self._stack.enter_context(self._resource())
        except SandmleError as error:
            return str(error) or type(error).__name__
        return ""

    def run(self, index: int, item: Any) -> Outcome[Any, Any]:
        """Puts one item through the function."""
        return run_one(self._function, self._opened, index, item)

    def close(self) -> None:
        """Closes the resource."""
        self._stack.close()


def map_on_ray(
    function: Callable[[Resource, Item], Result],
    items: Sequence[Item],
    resource: Callable[[], AbstractContextManager[Resource]],
    n_workers: int,
    address: str,
) -> Iterator[Outcome[Item, Result]]:
    """Applies a function to every item on a cluster and yields outcomes as they finish.

    The nodes need this package, in the same version, and whatever the function reads and writes under the same paths.

    Args:
        function: Called with an actor's resource and an item; picklable, as are items and results.
        items: The items.
        resource: Returns a context manager; called once in each actor.
        n_workers: Actors; each takes one CPU, and those that the cluster has no CPU for wait for one.
        address: ``auto``, ``host:port`` or ``ray://host:port``; a connection that is open already is used as it is.

    Raises:
        ConfigError: ray is not installed, or there is no cluster at the address.
        SandmleError: An actor could not open its resource.
    """
    with _connected(address) as ray:
        pool = _Pool(ray, ray.remote(num_cpus=1, max_restarts=0)(_Host), function, resource)
        try:
            for _ in range(n_workers):
                pool.start()
            yield from pool.outcomes(items)
        finally:
            pool.close()


class _Pool:
    """The actors, and what each of them was last asked."""

    def __init__(self, ray: Any, host: Any, function: Any, resource: Any) -> None:
        self._ray, self._host, self._made_of = ray, host, (function, resource)
        self._asked: dict[Any, tuple[Any, int | None]] = {}
        """By reference of the answer: the actor, and the index of the item; None while it opens its resource."""
        self._idle: list[Any] = []

    def start(self) -> None:
        """Starts an actor, on another node than the others where there is one."""
        actor = self._host.options(scheduling_strategy="SPREAD").remote(*self._made_of)
        self._asked[actor.open.remote()] = (actor, None)

    def outcomes(self, items: Sequence[Any]) -> Iterator[Outcome[Any, Any]]:
        """Yields one outcome an item."""
        waiting, deaths = deque(range(len(items))), Counter[int]()
        n_left = len(items)
        while n_left:
            (done,), _ = self._ray.wait(list(self._asked), num_returns=1)
            actor, index = self._asked.pop(done)
            try:
                answer = self._ray.get(done)
            except self._ray.exceptions.RayError as error:
                self.start()
                if index is None:
                    deaths[-1] += 1
                    if deaths[-1] > MOST_DEATHS + len(self._asked):
                        raise SandmleError(f"actors cannot start on the cluster: {_line(error)}") from error
                    continue
                deaths[index] += 1
                if deaths[index] < MOST_DEATHS:
                    waiting.appendleft(index)
                    continue
                n_left -= 1
                yield Outcome(index, items[index], error=f"{MOST_DEATHS} actors died at it: {_line(error)}")
                continue
            if index is None and answer:
                raise SandmleError(answer)
            self._idle.append(actor)
            while waiting and self._idle:
                self._ask(self._idle.pop(), waiting.popleft(), items)
            if index is not None:
                n_left -= 1
                yield answer

    def _ask(self, actor: Any, index: int, items: Sequence[Any]) -> None:
        self._asked[actor.run.remote(index, items[index])] = (actor, index)

    def close(self) -> None:
        """Closes the resources of idle actors and ends all."""
        actors = [*self._idle, *(actor for actor, _ in self._asked.values())]
        closing = [actor.close.remote() for actor in self._idle]
        if closing:
            self._ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_WAIT_S)
        for actor in actors:
            self._ray.kill(actor)
        self._idle.clear()
        self._asked.clear()


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ConfigError("ray is not installed; install it with: pip install 'sandmle[ray]'") from error
    if ray.is_initialized():
        yield ray
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise ConfigError(
            f"no Ray cluster at {address!r} ({_line(error)}); start one with: ray start --head"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
