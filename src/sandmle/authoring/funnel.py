"""The funnel: how far each proposal came, and what it was lost to (paper, section 3: 1200 proposed, 912 kept)."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sandmle.records import Record


class Stage(StrEnum):
    """How far a proposal came; each stage includes those before it."""

    PROPOSED = "proposed"
    DATA_RAN = "data_ran"
    """The author wrote a bundle."""
    EVALUATOR_RAN = "evaluator_ran"
    """The bundle is whole, and grader and metric agree on it."""
    GATE_PASSED = "gate_passed"
    """The task is in the task set."""


class Proposal(Record):
    """One task to be made. It depends on nothing but its seed and numbers, so it is the same alone or among others."""

    index: int
    """Place in the run."""
    seed_id: str
    k: int
    """Number among the proposals of this seed, from 0."""
    rng_seed: int


class ProposalRecord(Record):
    """What became of a proposal: one line of ``funnel.jsonl``."""

    proposal: Proposal
    stage: Stage
    task_id: str | None = None
    task_hash: str | None = None
    metric: str | None = None
    modality: str | None = None
    lost_to: str = ""
    """The author, or the first check that was not passed; empty when accepted."""
    reason: str = ""
    """One sentence."""
    is_fault: bool = False
    """Lost to our machinery, not to the proposal; a resumed run tries again."""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    """Of author, gate and sandboxed code together."""
    solver_wall_s: float = 0.0
    """Of the gate's independent solver, in the sandbox."""
    solver_cpu_s: float = 0.0

    @property
    def accepted(self) -> bool:
        """True when the task is in the set."""
        return self.stage is Stage.GATE_PASSED


def latest(records: Iterable[ProposalRecord]) -> list[ProposalRecord]:
    """Returns the last record of each proposal, in the order of proposals."""
    by_index = {record.proposal.index: record for record in records}
    return [by_index[index] for index in sorted(by_index)]


def summarize(records: Iterable[ProposalRecord]) -> dict[str, Any]:
    """Returns the funnel in numbers, as plain JSON types."""
    final = latest(records)
    order = list(Stage)
    reached = {stage.value: sum(order.index(record.stage) >= at for record in final) for at, stage in enumerate(order)}
    losses = Counter(record.lost_to for record in final if not record.accepted)
    accepted = [record for record in final if record.accepted]
    return {
        "funnel": reached,
        "n_proposed": len(final),
        "n_accepted": len(accepted),
        "acceptance": round(len(accepted) / len(final), 6) if final else None,
        "losses": dict(sorted(losses.items(), key=lambda pair: (-pair[1], pair[0]))),
        "n_faults": sum(record.is_fault for record in final),
        "accepted_by_modality": _counts(record.modality for record in accepted),
        "accepted_by_metric": _counts(record.metric for record in accepted),
        "mean_cpu_s": round(sum(record.cpu_s for record in final) / len(final), 3) if final else None,
        "mean_wall_s": round(sum(record.wall_s for record in final) / len(final), 3) if final else None,
    }


def _counts(values: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(value for value in values if value is not None).items()))
