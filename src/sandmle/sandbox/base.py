"""The contract of a sandbox: run hostile code, say what it did, let nothing out.

A backend is any class with the members of :class:`Sandbox`. ``sandmle.sandbox.testing`` holds the tests that every
backend must pass; third parties run them over their own.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from sandmle.records import ExecResult, Limits

INPUT_DIR = "input"
"""Where the read-only inputs appear inside the workspace."""


class Capability(StrEnum):
    """Something that a backend holds against hostile code, or enforces."""

    FILESYSTEM = "filesystem"
    """Only the workspace, the inputs and the libraries are visible; implies ``file_contents``."""
    FILE_CONTENTS = "file_contents"
    """No other file can be read or changed, though names, sizes and times of others may be seen."""
    PROCESS = "process"
    """Other processes are neither visible nor reachable; implies ``process_contents``."""
    PROCESS_CONTENTS = "process_contents"
    """No other process can be read, traced, signalled or slowed, though the number of one may be seen to exist."""
    NETWORK = "network"
    """There is no network of any family."""
    PRIVILEGE = "privilege"
    """An unprivileged user, no capabilities, none to be gained."""
    SYSCALLS = "syscalls"
    """A filter denies system calls that ML code has no use for."""
    MEMORY = "memory"
    """The kernel bounds the memory of all processes together."""
    PROCESS_COUNT = "process_count"
    """The kernel bounds the number of processes and threads."""
    DISK = "disk"
    """The size of the workspace is bounded."""
    LIFETIME = "lifetime"
    """Nothing that was started outlives the call."""


@dataclass(frozen=True)
class ExecRequest:
    """One execution.

    Attributes:
        code: Python source; runs as ``__main__``, fresh, with the workspace as its working directory.
        workspace: Host folder whose files are there before and after the run. It must exist and be no link.
        inputs: Host folder that appears read-only as ``./input``; None for none.
        limits: What the run may use.
        rng_seed: Seeds numpy's global state and PYTHONHASHSEED where the backend can.
        collect: Names of files to return from the workspace after everything is dead.
    """

    code: str
    workspace: Path
    inputs: Path | None = None
    limits: Limits = field(default_factory=Limits)
    rng_seed: int = 0
    collect: tuple[str, ...] = ()


@runtime_checkable
class Sandbox(Protocol):
    """Runs code. Thread-safe: several threads may call ``execute`` at once; calls beyond ``workers`` wait their turn.

    Waiting for a turn never counts against a request's limits.
    """

    name: str
    capabilities: frozenset[Capability]
    """What this backend holds, on this machine."""
    workers: int
    """Executions that run at the same time."""

    def start(self) -> Self:
        """Makes the sandbox ready and proves that it holds what it claims. Idempotent.

        Raises:
            SandboxUnavailableError: This machine lacks something; the message names it and how to get it.
        """
        ...

    def execute(self, request: ExecRequest) -> ExecResult:
        """Runs code to its end or its limits; it is dead at most ``limits.wall_s`` + 0.5 s after its first line.

        Returns:
            What the code did. Code that fails, is killed or exceeds a limit is a result.

        Raises:
            SandboxError: The sandbox itself failed, so that nothing is known about the code.
            ConfigError: The request cannot be run (the workspace is missing or is a link, inputs cannot be read).
        """
        ...

    def close(self) -> None:
        """Ends everything that was started. Idempotent."""
        ...

    def __enter__(self) -> Self:
        """Starts the sandbox."""
        ...

    def __exit__(self, *exc_info: object) -> None:
        """Closes the sandbox."""
        ...
