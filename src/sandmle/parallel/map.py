"""``map_items``: one outcome an item, as they finish; a failing item, or a dying worker, never stops the others."""

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Generic, TypeVar

from sandmle.errors import ConfigError, SandmleError

Item = TypeVar("Item")
Result = TypeVar("Result")
Resource = TypeVar("Resource")

_CLOSE_WAIT_S = 10.0


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
    function: Callable[[Item], Result], items: Sequence[Item], *, workers: int = 1, ray: str | None = None
) -> Iterator[Outcome[Item, Result]]:
    """Applies a function to every item and yields outcomes as they finish.

    Args:
        function: Picklable when ``workers`` is above 1.
        items: The items; each carries its own ``rng_seed``, so that results do not depend on order or worker count.
        workers: Processes; 1 runs everything in this process.
        ray: Address of a Ray cluster to run on instead.

    Raises:
        ConfigError: ``workers`` is below 1, or the cluster cannot be reached.
    """
    return map_with(_WithoutResource(function), items, resource=nullcontext, workers=workers, ray=ray)


def map_with(
    function: Callable[[Resource, Item], Result],
    items: Sequence[Item],
    *,
    resource: Callable[[], AbstractContextManager[Resource]],
    workers: int = 1,
    ray: str | None = None,
) -> Iterator[Outcome[Item, Result]]:
    """Like ``map_items``, with something that every worker opens once and closes at its end: a sandbox, a connection.

    Args:
        function: Called with the worker's resource and an item; picklable when ``workers`` is above 1.
        items: The items.
        resource: Returns a context manager; called once in each worker, and picklable when ``workers`` is above 1.
        workers: Processes; 1 runs everything in this process, where an item that kills it kills all.
        ray: Address of a Ray cluster to run on instead, where ``workers`` is the number of actors; see ``on_ray``.

    Raises:
        ConfigError: ``workers`` is below 1, or the cluster cannot be reached.
        SandmleError: A worker could not open its resource.
    """
    if workers < 1:
        raise ConfigError(f"workers is {workers}; give 1 or more")
    if ray is not None and items:
        from sandmle.parallel.on_ray import map_on_ray  # ray is an extra

        return map_on_ray(function, items, resource, min(workers, len(items)), ray)
    if workers == 1 or not items:
        return _map_here(function, items, resource)
    return _map_in_processes(function, items, resource, min(workers, len(items)))


@dataclass(frozen=True)
class _WithoutResource(Generic[Item, Result]):
    function: Callable[[Item], Result]

    def __call__(self, resource: None, item: Item) -> Result:
        return self.function(item)


def _map_here(
    function: Callable[[Resource, Item], Result],
    items: Sequence[Item],
    resource: Callable[[], AbstractContextManager[Resource]],
) -> Iterator[Outcome[Item, Result]]:
    if not items:
        return
    with resource() as opened:
        for index, item in enumerate(items):
            yield run_one(function, opened, index, item)


@dataclass
class _Worker:
    """A process, our end of its pipe, and the index of the item it has in hand."""

    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    index: int | None = None


@dataclass(frozen=True)
class _Ready:
    """Sent by a worker that has opened its resource."""


@dataclass(frozen=True)
class _Broken:
    """Sent by a worker that could not open its resource."""

    error: str


def _map_in_processes(
    function: Callable[[Resource, Item], Result],
    items: Sequence[Item],
    resource: Callable[[], AbstractContextManager[Resource]],
    n_workers: int,
) -> Iterator[Outcome[Item, Result]]:
    # Forked children would copy threads' locks and BLAS state: start clean interpreters.
    context = multiprocessing.get_context("spawn")
    waiting = deque(range(len(items)))
    workers = [_start(context, function, resource) for _ in range(n_workers)]
    n_left = len(items)
    try:
        while n_left:
            for pipe in wait([worker.pipe for worker in workers]):
                worker = next(each for each in workers if each.pipe is pipe)
                try:
                    message = worker.pipe.recv()
                except (EOFError, OSError):
                    message = None
                if isinstance(message, _Broken):
                    raise SandmleError(message.error)
                if message is None:
                    workers.remove(worker)
                    outcome = _of_dead(worker, items)
                    if waiting:
                        workers.append(_start(context, function, resource))
                else:
                    outcome = message if isinstance(message, Outcome) else None
                    _hand_out(worker, waiting, items)
                if outcome is not None:
                    n_left -= 1
                    yield outcome
    finally:
        _stop(workers)


def _start(context: SpawnContext, function: Callable[..., Any], resource: Callable[[], Any]) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, function, resource), name="sandmle-worker")
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _hand_out(worker: _Worker, waiting: deque[int], items: Sequence[Any]) -> None:
    worker.ready = True
    worker.index = waiting.popleft() if waiting else None
    if worker.index is not None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it just died: the end of its pipe will say so
            worker.pipe.send((worker.index, items[worker.index]))


def _of_dead(worker: _Worker, items: Sequence[Item]) -> Outcome[Item, Any] | None:
    worker.process.join(_CLOSE_WAIT_S)
    code = worker.process.exitcode
    worker.pipe.close()
    if not worker.ready:
        raise SandmleError(f"a worker process could not start (exit code {code}); try with one worker to see why")
    if worker.index is None:
        return None
    return Outcome(worker.index, items[worker.index], error=f"the worker process died (exit code {code})")


def _stop(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        busy = worker.index is not None
        worker.pipe.close()  # the worker reads the end of its pipe and closes its resource
        if busy:
            worker.process.terminate()
    for worker in workers:
        worker.process.join(_CLOSE_WAIT_S)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


def _serve(pipe: Connection, function: Callable[[Any, Any], Any], resource: Callable[[], Any]) -> None:
    """The life of a worker: until its pipe ends, or its parent does."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    signal.signal(signal.SIGTERM, _leave)
    try:
        with resource() as opened:
            _work(pipe, function, opened)
    except SandmleError as error:
        pipe.send(_Broken(str(error)))


def _work(pipe: Connection, function: Callable[[Any, Any], Any], opened: Any) -> None:
    try:
        pipe.send(_Ready())
        while True:
            index, item = pipe.recv()
            pipe.send(run_one(function, opened, index, item))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # nobody waits for the item in hand, and a resumed run may be at it already


def _leave(signum: int, frame: object) -> None:
    raise SystemExit(128 + signum)


def run_one(
    function: Callable[[Resource, Item], Result], resource: Resource, index: int, item: Item
) -> Outcome[Item, Result]:
    """Returns what became of one item; whatever it raises is its outcome."""
    try:
        return Outcome(index, item, result=function(resource, item))
    except SandmleError as error:
        return Outcome(index, item, error=str(error))
    except Exception as error:  # a bug in one item must not lose the others; the trace goes into the record
        return Outcome(index, item, error=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
