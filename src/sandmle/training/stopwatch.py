"""How long each kind of work was going on, however many did it at once; and the memory that it took."""

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sandmle.env.feedback import Leaderboard, SubmissionGrader
from sandmle.grading.submission import SubmissionProblem
from sandmle.records import ExecResult, GradeReport
from sandmle.sandbox.base import ExecRequest, Sandbox


def peak_memory_mb() -> int:
    """Returns the most memory that this process has held at once; what agents' code takes is not part of it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


class Stopwatch:
    """Seconds in which at least one worker was at a kind of work. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._at_work: dict[str, int] = {}
        self._since_s: dict[str, float] = {}
        self._total_s: dict[str, float] = {}

    @contextmanager
    def at(self, kind: str) -> Iterator[None]:
        """Counts the time of a block."""
        with self._lock:
            if self._at_work.get(kind, 0) == 0:
                self._since_s[kind] = self._clock()
            self._at_work[kind] = self._at_work.get(kind, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self._at_work[kind] -= 1
                if self._at_work[kind] == 0:
                    self._total_s[kind] = self._total_s.get(kind, 0.0) + self._clock() - self._since_s[kind]

    def take(self) -> dict[str, float]:
        """Returns the seconds by kind, and begins anew."""
        with self._lock:
            taken, self._total_s = self._total_s, {}
        return taken


class TimedSandbox:
    """A sandbox whose executions are timed; all else is the sandbox's own."""

    def __init__(self, sandbox: Sandbox, watch: Stopwatch) -> None:
        self._sandbox, self._watch = sandbox, watch
        self.name, self.capabilities, self.workers = sandbox.name, sandbox.capabilities, sandbox.workers

    def start(self) -> "TimedSandbox":
        """Starts the sandbox."""
        self._sandbox.start()
        return self

    def execute(self, request: ExecRequest) -> ExecResult:
        """Runs code; see :class:`sandmle.sandbox.base.Sandbox`."""
        with self._watch.at("sandbox"):
            return self._sandbox.execute(request)

    def close(self) -> None:
        """Closes the sandbox."""
        self._sandbox.close()

    def __enter__(self) -> "TimedSandbox":
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class TimedGrader:
    """A grader whose work is timed."""

    def __init__(self, grader: SubmissionGrader, watch: Stopwatch) -> None:
        self._grader, self._watch = grader, watch

    def grade(self, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
        """Grades a submission on the rows of one leaderboard."""
        with self._watch.at("grading"):
            return self._grader.grade(submission, leaderboard=leaderboard)

    def check(self, submission: bytes | None) -> SubmissionProblem | None:
        """Returns what is wrong with the form of a submission."""
        with self._watch.at("grading"):
            return self._grader.check(submission)
