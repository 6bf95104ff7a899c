"""What can go wrong, by the boundary at which it went wrong.

Every error that this package raises on purpose is a :class:`SandmleError`. Its message is one sentence that names the
thing and the fix; the command line prints it as it is. Each class blames one boundary, so that a caller can tell the
user's fault from ours, and ours from the agent's:

* :class:`UserError` and its children: the input is wrong (exit code 2).
* :class:`SandboxError`, :class:`GraderError`: our machinery broke; never the agent's fault, never a reward of 0.
* :class:`PolicyError`: the model or its server failed.

What the agent's code does wrong is not an error but a result (``ExecResult``, ``GradeReport``).
"""

import difflib
from collections.abc import Iterable


class SandmleError(Exception):
    """Root of all errors raised on purpose by this package."""


class UserError(SandmleError):
    """The caller gave something that cannot be used; the message says what and how to mend it."""


class ConfigError(UserError):
    """A configuration, option or name is wrong."""


class BundleError(UserError):
    """A task bundle is missing, foreign, broken or was changed after it was made."""


class SeedError(UserError):
    """A seed is unknown, or may not be used as a seed."""


class AuthoringError(SandmleError):
    """An author could not make a task from a seed; the reason becomes a line of the funnel.

    Attributes:
        lost_to: One word for what it was lost to, as the funnel counts it.
    """

    def __init__(self, message: str, *, lost_to: str = "author") -> None:
        super().__init__(message)
        self.lost_to = lost_to


class SandboxError(SandmleError):
    """The sandbox itself failed. Code that fails inside a working sandbox is a result, not this."""


class SandboxUnavailableError(SandboxError, UserError):
    """The wanted sandbox backend cannot run on this machine; the message says what is missing."""


class GraderError(SandmleError):
    """The grader itself failed on a submission that may have been good."""


class PolicyError(SandmleError):
    """The model or its server failed after all allowed retries.

    Attributes:
        n_tries: Requests that were sent.
        retry_wait_s: Pauses between them.
        lost_s: All the time in which no model was at work; see ``Usage.lost_s``.
    """

    def __init__(self, message: str, *, n_tries: int = 0, retry_wait_s: float = 0.0, lost_s: float = 0.0) -> None:
        super().__init__(message)
        self.n_tries, self.retry_wait_s, self.lost_s = n_tries, retry_wait_s, lost_s


class ContextOverflowError(PolicyError):
    """The transcript no longer fits into the model's context."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """Builds the error for a name that is not registered, with the nearest known name.

    Args:
        kind: What the name should have named, for example ``metric``.
        name: The name that was given.
        known: The names that exist.
    """
    options = sorted(known)
    close = difflib.get_close_matches(name, options, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(options)}"
    return ConfigError(f"unknown {kind} {name!r}; {hint}")
