"""Thousands of executions of every kind in a row, and then a look at what they have left: nothing."""

import gc
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandmle.errors import ConfigError, SandboxError
from sandmle.records import ExecResult, ExecStatus, Limits, Record
from sandmle.sandbox.base import Capability, ExecRequest, Sandbox
from sandmle.sandbox.inner import tree
from sandmle.sandbox.settings import open_backend

_GRACE_S = 0.5
_GROWTH = 0.05
_MIN_FOR_MEMORY = 5000
"""The allocator takes some 500 executions to reach what it keeps, and a fifth of all must be past that."""
_EARLY = 5
_SETTLE_S = 3.0
_OK, _ERROR, _TIMEOUT, _OOM = ExecStatus.OK, ExecStatus.ERROR, ExecStatus.TIMEOUT, ExecStatus.OOM
_TOKEN = "TOKEN"
_ROOM = Limits(wall_s=20, memory_mb=1024)
_QUICK = Limits(wall_s=0.2, memory_mb=1024)
_KINDS: dict[str, tuple[str, Limits, tuple[ExecStatus, ...], int]] = {
    # name: code, limits, allowed statuses, how many in a hundred
    "good": ("print('fine')\nopen('submission.csv', 'w').write('id')", _ROOM, (_OK,), 50),
    "raises": ("1 / 0", _ROOM, (_ERROR,), 12),
    "exits": ("raise SystemExit(3)", _ROOM, (_ERROR,), 6),
    "crashes": ("import os; os.abort()", _ROOM, (_ERROR,), 4),
    "sleeps": ("import time; time.sleep(60)", _QUICK, (_TIMEOUT,), 5),
    "spins": ("while True: pass", _QUICK, (_TIMEOUT,), 3),
    "stubborn": (
        "import os, signal, time\nfor s in set(signal.Signals) - {9, 19}: signal.signal(s, signal.SIG_IGN)\n"
        "os.fork()\nos.fork()\ntime.sleep(60)",
        _QUICK,
        (_TIMEOUT,),
        3,
    ),
    "orphans": ("import os, time\nif os.fork() == 0:\n    os.setsid(); os.fork(); time.sleep(60)", _ROOM, (_OK,), 5),
    "litters": (
        "import os, tempfile\nopen(tempfile.gettempdir() + '/TOKEN', 'w').write('x')\nos.makedirs('a/b/TOKEN')\n"
        "try:\n    open('/dev/shm/TOKEN', 'w').write('x')\nexcept OSError:\n    pass",
        _ROOM,
        (_OK,),
        5,
    ),
    "floods": (
        "while True: print('x' * 1000)",
        Limits(wall_s=20, memory_mb=1024, output_bytes=100_000),
        (ExecStatus.OUTPUT_LIMIT,),
        4,
    ),
    "hoards": ("x = []\nwhile True: x.append(bytes(5_000_000))", Limits(wall_s=20, memory_mb=150), (_OOM, _ERROR), 3),
}


class SoakReport(Record):
    """What a soak has found; ``problems`` is empty when all is well."""

    backend: str
    n: int
    workers: int
    wall_s: float
    statuses: dict[str, int]
    """How many executions ended in which way, by kind and status."""
    latest_s: float
    """The longest that one went on beyond its deadline."""
    memory_mb_early: float
    """Memory of this process after a fifth of the executions."""
    memory_mb_late: float
    problems: tuple[str, ...]


def soak(backend: str, *, n: int, workers: int = 2, progress: Callable[[int], None] = lambda _: None) -> SoakReport:
    """Opens a sandbox, runs ``n`` executions on it, closes it, and looks for what is left.

    Args:
        backend: Its name.
        n: Executions.
        workers: Executions at the same time.
        progress: Is told the number of finished executions.

    Raises:
        ConfigError: ``n`` is below 1, or there is no such backend.
        SandboxUnavailableError: The backend does not start here.
    """
    if n < 1:
        raise ConfigError(f"the number of executions is {n}; give 1 or more")
    outside = _Traces.now()
    token = f"soak{secrets.token_hex(6)}"
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        with open_backend(backend, workers=workers) as sandbox:
            run = _Run(sandbox, Path(name), token)
            run.some(min(n, 4 * workers))  # what is made once is made now
            inside = _Traces.now()
            done, early_mb = min(n, 4 * workers), _own_mb()
            while done < n:
                step = min(max(workers, n // 20), n - done)
                run.some(step)
                done += step
                if done - step < n // _EARLY:
                    early_mb = _own_mb()
                progress(done)
            late_mb = _own_mb()
            problems = [*run.problems, *inside.problems("between executions")]
        problems += outside.problems("after closing")
    problems += [f"{path} is left" for path in Path("/dev/shm").glob(f"*{token}*")]
    if n >= _MIN_FOR_MEMORY and late_mb > early_mb * (1 + _GROWTH):
        problems.append(f"the caller's memory grew from {early_mb:.1f} to {late_mb:.1f} MB")
    return SoakReport(
        backend=backend,
        n=n,
        workers=workers,
        wall_s=time.monotonic() - start_s,
        statuses=dict(sorted(run.statuses.items())),
        latest_s=run.latest_s,
        memory_mb_early=early_mb,
        memory_mb_late=late_mb,
        problems=tuple(problems),
    )


class _Run:
    def __init__(self, sandbox: Sandbox, folder: Path, token: str) -> None:
        self._sandbox, self._folder, self._token = sandbox, folder, token
        self._kinds = [name for name, (*_, share) in _KINDS.items() for _ in range(share)]
        self._next = 0
        self.problems: list[str] = []
        self.statuses: dict[str, int] = {}
        self.latest_s = 0.0

    def some(self, count: int) -> None:
        """Runs the next ones, as many at a time as there are workers."""
        with ThreadPoolExecutor(self._sandbox.workers) as pool:
            # A stride that shares no factor with 100 mixes the kinds, the same way every time.
            kinds = [self._kinds[(index * 37) % len(self._kinds)] for index in range(self._next, self._next + count)]
            for kind, result in zip(kinds, pool.map(self._one, kinds), strict=True):
                self._note(kind, result)
        self._next += count

    def _one(self, kind: str) -> ExecResult | str:
        code, limits, _, _ = _KINDS[kind]
        with tempfile.TemporaryDirectory(dir=self._folder) as workspace:
            request = ExecRequest(code.replace(_TOKEN, self._token), Path(workspace), limits=limits)
            try:
                return self._sandbox.execute(request)
            except SandboxError as error:
                return str(error)

    def _note(self, kind: str, result: ExecResult | str) -> None:
        if isinstance(result, str):
            self.problems.append(f"{kind}: {result}")
            return
        _, limits, allowed, _ = _KINDS[kind]
        if kind == "hoards" and Capability.MEMORY in self._sandbox.capabilities:
            allowed = (_OOM,)
        name = f"{kind} {result.status.value}"
        self.statuses[name] = self.statuses.get(name, 0) + 1
        self.latest_s = max(self.latest_s, result.wall_s - limits.wall_s)
        if result.status not in allowed:
            self.problems.append(f"{kind} has the status {result.status}: {result.detail} {result.stderr[-200:]}")
        if result.wall_s > limits.wall_s + _GRACE_S:
            self.problems.append(f"{kind} ended {result.wall_s - limits.wall_s:.2f} s after its deadline")


class _Traces(Record):
    """What a sandbox of this process could leave on the machine."""

    processes: tuple[int, ...]
    mounts: int
    groups: tuple[str, ...]
    descriptors: int
    folders: tuple[str, ...]

    @classmethod
    def now(cls) -> "_Traces":
        """Looks."""
        own = f"sandmle-{os.getpid()}-"
        scratch = [path for path in Path(tempfile.gettempdir()).glob(f"{own}*") if path.is_dir()]
        return cls(
            processes=tuple(process.pid for process in tree.below(os.getpid())),
            mounts=len(Path("/proc/self/mountinfo").read_text().splitlines()),
            groups=tuple(sorted(map(str, Path("/sys/fs/cgroup").glob(f"**/{own}*")))),
            descriptors=len(os.listdir("/proc/self/fd")),  # noqa: PTH208
            folders=tuple(sorted(str(path) for folder in scratch for path in (folder, *folder.iterdir()))),
        )

    def problems(self, when: str) -> list[str]:
        """Says what there is now that was not there; what is ending gets a moment."""
        deadline_s = time.monotonic() + _SETTLE_S
        while (found := self._more(_Traces.now(), when)) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        return found

    def _more(self, now: "_Traces", when: str) -> list[str]:
        found = []
        for name in ("processes", "groups", "folders"):
            more = sorted(set(getattr(now, name)) - set(getattr(self, name)))
            if more:
                found.append(f"{name} left {when}: {', '.join(map(str, more[:5]))}")
        for name in ("mounts", "descriptors"):
            more_count = getattr(now, name) - getattr(self, name)
            if more_count > 0:
                found.append(f"{more_count} {name} left {when}")
        return found


def _own_mb() -> float:
    gc.collect()  # what waits for the collector is no leak
    own = tree.look(os.getpid())
    return tree.memory_mb([own] if own else [], exact=False)
