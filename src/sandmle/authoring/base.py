"""The contract of an author: a seed and an ``rng_seed`` in, a task that is not yet on disk out."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from sandmle.records import SeedRecord
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
