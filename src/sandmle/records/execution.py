"""The outcome of running code in a sandbox."""

from enum import StrEnum

from pydantic import Field

from sandmle.records.base import Record


class ExecStatus(StrEnum):
    """How an execution ended, told by the kernel or the supervisor, never by the code that ran."""

    OK = "ok"
    """Exit code 0."""
    ERROR = "error"
    """Any other exit code, or killed by a signal of its own."""
    TIMEOUT = "timeout"
    """Killed at the wall or CPU limit."""
    OOM = "oom"
    """Killed for memory."""
    OUTPUT_LIMIT = "output_limit"
    """Killed for writing more output than allowed."""
    LIMIT = "limit"
    """Failed at another limit: processes, file size, disk space."""


class Limits(Record):
    """What one execution may use."""

    wall_s: float = Field(default=90.0, gt=0)
    """Wall-clock seconds from the code's first line."""
    cpu_s: float | None = Field(default=None, gt=0)
    """CPU seconds of all processes together; None for as many as ``wall_s``."""
    memory_mb: int = Field(default=2048, gt=0)
    """Memory of all processes together, files in memory included."""
    processes: int = Field(default=64, gt=0)
    """Processes and threads together."""
    file_mb: int = Field(default=64, gt=0)
    """Size of the largest file, and of the whole workspace."""
    output_bytes: int = Field(default=16_000_000, gt=0)
    """Bytes of stdout and of stderr that may be written before the code is stopped."""


class CollectedFile(Record):
    """A file that was to be collected from the workspace after the run."""

    name: str
    data: bytes | None = None
    """The contents; None when there was no such regular file, or it was refused."""
    reason: str = ""
    """Why there are no contents: missing, a link, not a regular file, too large."""


class ExecResult(Record):
    """What an execution did. Output is data for the model only; nothing in it is ever believed."""

    status: ExecStatus
    exit_code: int | None = None
    """None when the code was killed; negative numbers are signals."""
    stdout: str = ""
    """Head and tail, decoded with replacement, cut in the middle with a visible mark."""
    stderr: str = ""
    stdout_bytes: int = 0
    """Bytes written in all, before any cut."""
    stderr_bytes: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_mb: float | None = None
    """None where the machine cannot tell."""
    detail: str = ""
    """One sentence on the limit that was hit, for the agent; empty when none was."""
    files: tuple[CollectedFile, ...] = ()

    def file(self, name: str) -> bytes | None:
        """Returns the contents of a collected file, or None."""
        return next((file.data for file in self.files if file.name == name), None)
