"""Measures the gate: fresh proposals of an author, nobody's choice, with and without faults."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandmle.authoring.funnel import Proposal
from sandmle.authoring.pipeline import GenerateRequest, make_author, proposals_of
from sandmle.gate.faults import STRENGTHS, Trial, try_faults
from sandmle.gate.faults.catalogue import FAULTS
from sandmle.parallel import map_items
from sandmle.seeds import load_seed
from sandmle.tasks import write_bundle


@dataclass(frozen=True)
class FaultRun:
    """What became of one proposal: its trials, or why there are none."""

    seed_id: str
    trials: tuple[Trial, ...] = ()
    error: str = ""


def measure_gate(
    request: GenerateRequest,
    *,
    faults: Sequence[str] = tuple(FAULTS),
    strengths: Sequence[float] = STRENGTHS,
    workers: int = 1,
) -> Iterator[FaultRun]:
    """Draws the proposals of a run and puts faults into each; proposals are not chosen by the gate first.

    Args:
        request: Seeds, count, author, preset and ``rng_seed``.
        faults: Names of ``sandmle.gate.faults.FAULTS``.
        strengths: From 0 to 1.
        workers: Processes.

    Yields:
        One result a proposal, as they finish.

    Raises:
        ConfigError: The author is unknown.
    """
    make_author(request.author, request.preset)
    work = _Work(request, tuple(faults), tuple(strengths))
    for outcome in map_items(work, proposals_of(request), workers=workers):
        yield outcome.result or FaultRun(outcome.item.seed_id, error=outcome.error)


@dataclass(frozen=True)
class _Work:
    request: GenerateRequest
    faults: tuple[str, ...]
    strengths: tuple[float, ...]

    def __call__(self, proposal: Proposal) -> FaultRun:
        author = make_author(self.request.author, self.request.preset)
        draft = author.propose(load_seed(proposal.seed_id), proposal.rng_seed)
        with tempfile.TemporaryDirectory(prefix="sandmle-faults-") as folder:
            bundle = write_bundle(draft, Path(folder))
            trials = try_faults(bundle, faults=self.faults, strengths=self.strengths, rng_seed=proposal.rng_seed)
        return FaultRun(proposal.seed_id, tuple(trials))
