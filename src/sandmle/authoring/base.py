"""The contract of an author: a seed and an ``rng_seed`` in, a task that is not yet on disk out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from sandmle.authoring.funnel import Proposal
from sandmle.records import SeedRecord
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.bundle import BundleDraft


@runtime_checkable
class Author(Protocol):
    """Makes tasks. Same author version, seed and ``rng_seed``: the same bytes, in any process and in any order."""

    name: str
    version: str

    def propose(self, seed: SeedRecord, rng_seed: int) -> BundleDraft:
        """Returns a whole task with its thresholds; whether it is a good one is the gate's to say.

        Raises:
            AuthoringError: No task came of it; one sentence says why.
        """
        ...

    def regenerate(self, seed: SeedRecord, rng_seed: int) -> Mapping[str, bytes]:
        """Returns the data files of the same task again, by their path in the bundle, without fitting any baseline.

        The gate compares them with the bundle's files to see that the author is deterministic.

        Raises:
            AuthoringError: As in ``propose``.
        """
        ...


@runtime_checkable
class PreparingAuthor(Author, Protocol):
    """An author whose work is mostly waiting: it makes many drafts at once, before the first is judged."""

    def bind(self, sandbox: Sandbox) -> None:
        """Gives the author the sandbox that foreign scripts run in."""
        ...

    def prepare(self, proposals: Sequence[Proposal], on_progress: Callable[[Any], None] | None = None) -> None:
        """Makes the drafts that ``propose`` returns later; what cannot be ended can be taken up again.

        Raises:
            UserError: It cannot work at all: no key, no such model.
        """
        ...

    def spending(self) -> dict[str, Any]:
        """Returns what it took, as plain JSON types."""
        ...
