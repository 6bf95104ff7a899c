"""The same conversations through a client library alone and through the whole author, in turns, in one run."""

import asyncio
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandmle.authoring.funnel import Proposal
from sandmle.authoring.roles.author import LLMAuthor
from sandmle.authoring.roles.dry_run import recordings_dir
from sandmle.authoring.roles.journal import read_recording
from sandmle.authoring.roles.options import LLMOptions, SpendLimits
from sandmle.authoring.roles.talking import Answer, Said
from sandmle.errors import ConfigError
from sandmle.policies.endpoint import NO_KEY, Endpoint
from sandmle.policies.replies import Fault
from sandmle.records import ExecResult, Record
from sandmle.sandbox.base import Capability, ExecRequest

_SEED = "spaceship-titanic"
_SERVER = "sandmle.authoring.roles.bench.slow_server"
_MAX_TOKENS = 12_000
LIBRARY, CLIENT, AUTHOR = "openai client", "our endpoint alone", "whole author"


class BenchRow(Record):
    """One way to hold the conversations; medians over the rounds."""

    entrant: str
    wall_s: float
    cpu_s: float
    """CPU of this process, without the server's."""
    cpu_ms_a_reply: float
    above_ideal_s: float
    """Wall time beyond what the server alone takes."""


class BenchReport(Record):
    """Everything that one run found."""

    machine: str
    load_before: float
    """Load average over one minute; above 0.5 a core, wall times are not to be trusted."""
    load_after: float
    n_tasks: int
    n_turns: int
    delay_s: float
    n_rounds: int
    ideal_s: float
    """What it takes at least: the turns of a task one after the other, all tasks at once."""
    rows: tuple[BenchRow, ...]
    own_s: float
    """Wall time of the whole author beyond our endpoint's alone; median over the rounds. Below zero by chance only."""
    own_share: float
    """``own_s`` as a share of the whole author's wall time."""
    above_ideal_share: float
    """All wall time that is not the server's, the client's work included, as a share of the whole author's."""


class _NoSandbox:
    """Stands where no script runs."""

    name = "none"
    capabilities: frozenset[Capability] = frozenset()
    workers = 1

    def start(self) -> "_NoSandbox":
        return self

    def execute(self, request: ExecRequest) -> ExecResult:
        raise AssertionError("no conversation of the bench gets as far as a script")

    def close(self) -> None:
        return None

    def __enter__(self) -> "_NoSandbox":
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


class _Listener:
    """Gives the same reply at once, and keeps the longest conversation that it was asked with."""

    def __init__(self, reply: str) -> None:
        self._reply = reply
        self.heard: Sequence[Said] = ()

    async def ask(self, conversation: Sequence[Said]) -> Answer:
        self.heard = tuple(conversation)
        return Answer(self._reply)


def run_bench(
    *,
    n_tasks: int = 50,
    n_turns: int = 10,
    delay_s: float = 0.2,
    n_rounds: int = 3,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> BenchReport:
    """Holds the same conversations each way, in turns, with a server that answers after a fixed time.

    Every task is a conversation with the strategist whose replies are all refused, each turn sent whole with its
    history, as chat endpoints want it; so nothing but asking, reading, judging and keeping replies is measured.

    Args:
        n_tasks: Tasks in flight at once.
        n_turns: Replies of each task.
        delay_s: What the server takes for a reply.
        n_rounds: How often each way is measured.
        progress: Is told the number of finished steps, of all steps, and what comes next.

    Raises:
        ConfigError: A number is out of range, or the llm extra is missing.
    """
    if min(n_tasks, n_turns, n_rounds) < 1 or not 0 <= delay_s < 60 or not math.isfinite(delay_s):
        raise ConfigError("tasks, turns and rounds are 1 or more, and the delay is from 0 to 60 s")
    load_before = os.getloadavg()[0]
    reply = _refused_reply()
    found: dict[str, list[tuple[float, float]]] = {LIBRARY: [], CLIENT: [], AUTHOR: []}
    # Removing what the author wrote is no part of its work.
    with _server(reply, delay_s) as url, tempfile.TemporaryDirectory(prefix="sandmle-bench-") as scratch:
        folders = (Path(scratch) / f"run-{at}" for at in itertools.count())
        talk = _conversation(reply, n_turns)
        entrants: dict[str, Callable[[int], None]] = {
            LIBRARY: lambda n: asyncio.run(_ask_library(url, talk, n)),
            CLIENT: lambda n: asyncio.run(_ask_endpoint(url, talk, n)),
            AUTHOR: lambda n: _ask_as_author(url, n_turns, n, next(folders)),
        }
        for entrant in entrants.values():  # imports and first uses are paid once a run, not once a reply
            entrant(1)
        for done in range(n_rounds):
            for name, entrant in entrants.items():
                progress(done, n_rounds, name)
                start_s, start_cpu_s = time.monotonic(), time.process_time()
                entrant(n_tasks)
                found[name].append((time.monotonic() - start_s, time.process_time() - start_cpu_s))
    progress(n_rounds, n_rounds, "")
    ideal_s = n_turns * delay_s
    rows = tuple(_row(name, spent, n_tasks * n_turns, ideal_s) for name, spent in found.items())
    gaps = [author[0] - client[0] for client, author in zip(found[CLIENT], found[AUTHOR], strict=True)]
    shares = [gap / author[0] for gap, author in zip(gaps, found[AUTHOR], strict=True)]
    author_s = statistics.median(wall_s for wall_s, _ in found[AUTHOR])
    return BenchReport(
        machine=f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, {platform.machine()}",
        load_before=round(load_before, 2),
        load_after=round(os.getloadavg()[0], 2),
        n_tasks=n_tasks,
        n_turns=n_turns,
        delay_s=delay_s,
        n_rounds=n_rounds,
        ideal_s=round(ideal_s, 3),
        rows=rows,
        own_s=round(statistics.median(gaps), 3),
        own_share=round(statistics.median(shares), 4),
        above_ideal_share=round((author_s - ideal_s) / author_s, 4),
    )


def _row(name: str, spent: list[tuple[float, float]], n_replies: int, ideal_s: float) -> BenchRow:
    wall_s, cpu_s = (statistics.median(column) for column in zip(*spent, strict=True))
    return BenchRow(
        entrant=name,
        wall_s=round(wall_s, 3),
        cpu_s=round(cpu_s, 3),
        cpu_ms_a_reply=round(1000 * cpu_s / n_replies, 3),
        above_ideal_s=round(wall_s - ideal_s, 3),
    )


def _refused_reply() -> str:
    """Returns a whole plan of a shipped recording with too many rows, which is read, judged and sent back."""
    _, lines, _ = read_recording(recordings_dir() / f"{_SEED}--0.jsonl")
    return json.dumps({**json.loads(lines[0].text), "n_train": 500})


def _conversation(reply: str, n_turns: int) -> list[dict[str, str]]:
    """Returns what the author says in a task's last turn, the turns before it included."""
    listener = _Listener(reply)
    with tempfile.TemporaryDirectory(prefix="sandmle-bench-") as folder:
        author = LLMAuthor(Path(folder), LLMOptions(max_repairs=n_turns - 1), responder=listener)
        _prepare(author, 1)
    return [{"role": said.speaker, "content": said.text} for said in listener.heard]


def _ask_as_author(url: str, n_turns: int, n_tasks: int, folder: Path) -> None:
    options = LLMOptions(model="openai:m", base_url=url, max_repairs=n_turns - 1, max_tokens=_MAX_TOKENS)
    limits = SpendLimits(requests=n_tasks, tasks=n_tasks)
    author = LLMAuthor(folder, options, limits=limits)
    _prepare(author, n_tasks)
    n_replies = author.spending()["n_replies"]
    if n_replies != n_tasks * n_turns:
        raise ConfigError(f"the bench got {n_replies} replies instead of {n_tasks * n_turns}; run it again")


def _prepare(author: LLMAuthor, n_tasks: int) -> None:
    author.bind(_NoSandbox())
    author.prepare([Proposal(index=at, seed_id=_SEED, k=at, rng_seed=at) for at in range(n_tasks)])


async def _ask_library(url: str, talk: list[dict[str, str]], n_tasks: int) -> None:
    """Sends the same requests with the ``openai`` client as it comes, and throws the replies away."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key=NO_KEY, max_retries=0) as client:

        async def ask(messages: Any) -> None:
            await client.chat.completions.create(model="m", messages=messages, max_tokens=_MAX_TOKENS)

        await _hold(ask, talk, n_tasks)


async def _ask_endpoint(url: str, talk: list[dict[str, str]], n_tasks: int) -> None:
    """Sends the same requests with our endpoint alone, and throws the replies away."""
    endpoint = Endpoint(url, NO_KEY)

    async def ask(messages: Any) -> None:
        body = {"model": "m", "messages": messages, "max_tokens": _MAX_TOKENS}
        reply = await endpoint.post("chat/completions", body, timeout_s=60.0)
        if isinstance(reply, Fault):
            raise ConfigError(f"the bench's server failed: {reply.message}; run it again")

    try:
        await _hold(ask, talk, n_tasks)
    finally:
        await endpoint.aclose()


async def _hold(ask: Callable[[Any], Awaitable[None]], talk: list[dict[str, str]], n_tasks: int) -> None:
    """Holds the conversation with every task at once, each turn sent whole with its history."""
    turns = [talk[: 2 + 2 * turn] for turn in range(len(talk) // 2)]

    async def task() -> None:
        for messages in turns:
            await ask(messages)

    async with asyncio.TaskGroup() as group:
        for _ in range(n_tasks):
            group.create_task(task())


@contextmanager
def _server(reply: str, delay_s: float) -> Iterator[str]:
    """Starts the slow server; yields its address."""
    command = [sys.executable, "-m", _SERVER, str(delay_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(reply) + "\n")
        process.stdin.flush()
        port = process.stdout.readline().strip()
        if not port:
            raise ConfigError("the bench's server did not start; run it again")
        yield f"http://127.0.0.1:{port}/v1"
        process.stdin.close()
