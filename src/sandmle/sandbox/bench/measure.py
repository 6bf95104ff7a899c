"""Runs all entrants on all scripts, in turns, and puts the figures next to each other."""

import contextlib
import datetime
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandmle.errors import ConfigError, SandboxError
from sandmle.records import Record
from sandmle.registry import resolve
from sandmle.sandbox.bench.clock import family_clock
from sandmle.sandbox.bench.entrants import Backend, ColdPython, Entrant, JupyterKernel, Spent
from sandmle.sandbox.bench.workloads import workloads, write_inputs
from sandmle.sandbox.config import BACKENDS, PLUGIN_GROUP
from sandmle.sandbox.forkserver import ForkserverSandbox
from sandmle.sandbox.inner import tree

_WORKERS = 2
COLD_EVERY = 4
"""Warm executions for each cold one."""
_MIN_COLD = 3
_WITH_PYTHON = ("forkserver", "bwrap", "restricted")


class BenchRow(Record):
    """One way to run one script."""

    entrant: str
    workload: str
    n: int
    cpu_median_s: float
    cpu_min_s: float
    wall_median_s: float
    wall_min_s: float
    per_s_one_worker: float
    """Executions a second, one after the other."""
    per_s_two_workers: float
    cpu_ratio: float
    """How many times as much CPU cold Python takes (medians)."""


class BenchReport(Record):
    """Everything that one run found."""

    date: str
    machine: str
    python: str
    load_before: float
    """Load average over one minute; above 0.5 a core, wall times are not to be trusted."""
    load_after: float
    rows: tuple[BenchRow, ...]
    server_mb: dict[str, float]
    """Memory of what stays between executions, by entrant."""
    missing: dict[str, str]
    """Entrants that do not run on this machine, and why."""


def run_bench(
    *, n: int = 20, python: str | None = None, progress: Callable[[int, int, str], None] = lambda *_: None
) -> BenchReport:
    """Measures every way to run a script that this machine has.

    Args:
        n: Runs of each script by each warm entrant; a quarter of it, and at least three, for the cold ones.
        python: The interpreter for the scripts; this one by default.
        progress: Is told the number of finished steps, of all steps, and what comes next.

    Raises:
        ConfigError: ``n`` is below 1.
        SandboxError: A script failed where it should not have.
    """
    if n < 1:
        raise ConfigError(f"the number of runs is {n}; give 1 or more")
    load_before = os.getloadavg()[0]
    with _entrants(python) as (entrants, modules, missing), tempfile.TemporaryDirectory(prefix="bench-") as name:
        inputs = Path(name)
        inputs.chmod(0o755)
        write_inputs(inputs)
        scripts = workloads(modules)
        rows: list[BenchRow] = []
        for index, (workload, code) in enumerate(scripts.items()):
            progress(index, len(scripts), workload)
            rows += _measure(entrants, workload, code, inputs, n)
        server_mb = {entrant.name: round(mb, 1) for entrant in entrants if (mb := entrant.server_mb()) is not None}
    progress(len(scripts), len(scripts), "")
    return BenchReport(
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, {platform.machine()}",
        python=platform.python_version() if python is None else python,
        load_before=round(load_before, 2),
        load_after=round(os.getloadavg()[0], 2),
        rows=tuple(rows),
        server_mb=server_mb,
        missing=missing,
    )


@contextlib.contextmanager
def _entrants(python: str | None) -> Iterator[tuple[list[Entrant], tuple[str, ...], dict[str, str]]]:
    """Starts all that run here; also returns what the libraries' server could import."""
    missing: dict[str, str] = {}
    entrants: list[Entrant] = [ColdPython(python)]
    modules: tuple[str, ...] = ("numpy", "pandas", "sklearn", "lightgbm")
    try:
        entrants.append(JupyterKernel())
    except ImportError as error:
        missing[JupyterKernel.name] = f"{error.name} is not installed"
    with contextlib.ExitStack() as stack:
        clock = stack.enter_context(family_clock())
        for name in BACKENDS:
            before = {process.pid for process in tree.below(os.getpid())}
            options = {"python": python} if name in _WITH_PYTHON else {}
            try:
                sandbox = resolve("sandbox", name, BACKENDS, PLUGIN_GROUP)(workers=_WORKERS, **options)
                stack.enter_context(sandbox)
            except (SandboxError, ConfigError) as error:
                missing[name] = str(error)
                continue
            servers = [process.pid for process in tree.below(os.getpid()) if process.pid not in before]
            entrants.append(Backend(sandbox, servers, clock))
            if isinstance(sandbox, ForkserverSandbox):
                modules = sandbox.loaded
        yield entrants, modules, missing


def _measure(entrants: list[Entrant], workload: str, code: str, inputs: Path, n: int) -> list[BenchRow]:
    n_cold = min(n, max(_MIN_COLD, n // COLD_EVERY))
    counts = {entrant.name: n_cold if entrant.is_cold else n for entrant in entrants}
    spent: dict[str, list[Spent]] = {entrant.name: [] for entrant in entrants}
    other_s = {entrant.name: -entrant.other_cpu_s() for entrant in entrants}
    # In turns, so that what else the machine does falls on all of them alike. Within its turn each runs its share one
    # after the other, as they come in use: a cold start in between would throw the warm server out of all caches.
    for turn in range(n_cold):
        for entrant in entrants:
            share = counts[entrant.name] * (turn + 1) // n_cold - counts[entrant.name] * turn // n_cold
            spent[entrant.name] += [entrant.run(code, inputs) for _ in range(share)]
    for entrant in entrants:
        other_s[entrant.name] += entrant.other_cpu_s()
    rates = {entrant.name: _rate(entrant, code, inputs, counts[entrant.name]) for entrant in entrants}
    cold_s = statistics.median(one.cpu_s for one in spent[entrants[0].name])
    rows = []
    for name, runs in spent.items():
        shared_s = max(0.0, other_s[name]) / len(runs)
        cpus, walls = [one.cpu_s + shared_s for one in runs], [one.wall_s for one in runs]
        rows.append(
            BenchRow(
                entrant=name,
                workload=workload,
                n=len(runs),
                cpu_median_s=statistics.median(cpus),
                cpu_min_s=min(cpus),
                wall_median_s=statistics.median(walls),
                wall_min_s=min(walls),
                per_s_one_worker=len(runs) / sum(walls),
                per_s_two_workers=rates[name],
                cpu_ratio=cold_s / statistics.median(cpus),
            )
        )
    return rows


def _rate(entrant: Entrant, code: str, inputs: Path, count: int) -> float:
    count = max(count, _WORKERS)
    with ThreadPoolExecutor(_WORKERS) as pool:
        start_s = time.perf_counter()
        for _ in pool.map(lambda _: entrant.run(code, inputs), range(count)):
            pass
        return count / (time.perf_counter() - start_s)


def describe(report: BenchReport) -> str:
    """Returns where and when, in one line."""
    load = f"load {report.load_before:g} before and {report.load_after:g} after"
    return f"{report.date}; {report.machine}; Python {report.python.removeprefix(sys.prefix)}; {load}"
