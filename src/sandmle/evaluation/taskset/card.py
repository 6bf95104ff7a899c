"""Counts what is in a task set. Everything comes from files that ``sandmle generate`` wrote."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from sandmle.authoring.funnel import ProposalRecord, latest, summarize
from sandmle.authoring.pipeline import FUNNEL_FILE
from sandmle.errors import BundleError
from sandmle.evaluation.statistics import Spread, spread
from sandmle.evaluation.taskset.descriptions import Similarity, similarity_of
from sandmle.evaluation.taskset.retraining import RetrainingSummary
from sandmle.gate.base import LADDER_FILE
from sandmle.grading.thresholds import medal_of
from sandmle.records import Ladder, Medal, Record, Tier
from sandmle.tasks import Bundle, find_bundles, load_bundle

PLAN_FILE = "provenance/plan.json"
UNKNOWN = "unknown"


class Distribution(Record):
    """How often each value occurs."""

    counts: dict[str, int]
    """Commonest first."""
    entropy_bits: float
    highest_bits: float
    """What equal counts of the same values would have."""


class TierReach(Record):
    """How far baselines of one tier come, over all tasks: shares of baselines by their medal."""

    tier: Tier
    n_baselines: int
    shares: dict[str, float]
    """By none, bronze, silver and gold; they add up to 1."""


class TaskLine(Record):
    """One task of the set."""

    task_id: str
    task_hash: str
    seed_id: str | None
    title: str
    domain: str
    modality: str
    task_kind: str
    metric: str
    family: str
    """The sub-rule with the largest share of the signal."""
    n_train: int
    size_kb: float


class Funnel(Record):
    """What became of the proposals."""

    stages: dict[str, int]
    losses: dict[str, int]
    n_proposed: int
    n_accepted: int
    n_faults: int


class TaskSetCard(Record):
    """The data card."""

    schema_version: Literal[1] = 1
    name: str
    funnel: Funnel | None
    """None for a folder of tasks that ``generate`` did not make."""
    n_tasks: int
    distributions: dict[str, Distribution]
    """Of modality, task kind, metric, domain, family and seed."""
    reach: tuple[TierReach, ...]
    solver_wall_s: Spread
    """Of the gate's independent solver in the sandbox."""
    solver_cpu_s: Spread
    making_cpu_s: Spread
    """Author, gate and sandbox, a proposal."""
    size_kb: Spread
    descriptions: Similarity
    retraining: RetrainingSummary | None = None
    tasks: tuple[TaskLine, ...]
    problems: tuple[str, ...] = ()
    """Tasks and lines that could not be read."""


def build_card(path: Path, *, retraining: RetrainingSummary | None = None) -> TaskSetCard:
    """Reads a task set.

    Args:
        path: What ``sandmle generate`` made, or any folder of tasks.
        retraining: What retraining solvers told, see :mod:`sandmle.evaluation.taskset.retraining`.

    Raises:
        BundleError: There are no tasks.
    """
    problems: list[str] = []
    records = _records(path / FUNNEL_FILE, problems)
    bundles: list[Bundle] = []
    for folder in find_bundles(path):
        try:
            bundles.append(load_bundle(folder, verify=False))
        except BundleError as error:
            problems.append(str(error))
    lines = [_line(bundle) for bundle in bundles]
    accepted = [record for record in records if record.accepted]
    columns: dict[str, Callable[[TaskLine], str]] = {
        "modality": lambda line: line.modality,
        "task kind": lambda line: line.task_kind,
        "metric": lambda line: line.metric,
        "domain": lambda line: line.domain,
        "family": lambda line: line.family,
        "seed": lambda line: line.seed_id or UNKNOWN,
    }
    return TaskSetCard(
        name=path.resolve().name,
        funnel=_funnel(records),
        n_tasks=len(lines),
        distributions={name: distribution(map(value, lines)) for name, value in columns.items()},
        reach=_reach(bundles, problems),
        solver_wall_s=spread([record.solver_wall_s for record in accepted if record.solver_wall_s]),
        solver_cpu_s=spread([record.solver_cpu_s for record in accepted if record.solver_cpu_s]),
        making_cpu_s=spread([record.cpu_s for record in records if record.cpu_s]),
        size_kb=spread([line.size_kb for line in lines]),
        descriptions=similarity_of({bundle.task_id: bundle.description() for bundle in bundles}),
        retraining=retraining,
        tasks=tuple(lines),
        problems=tuple(problems),
    )


def distribution(values: Iterable[str]) -> Distribution:
    """Counts values and tells their entropy."""
    counts = Counter(values)
    total = sum(counts.values())
    entropy = -sum(count / total * math.log2(count / total) for count in counts.values())
    return Distribution(
        counts=dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))),
        entropy_bits=round(abs(entropy), 4),
        highest_bits=round(math.log2(len(counts)), 4) if counts else 0.0,
    )


def family_of(bundle: Bundle) -> str:
    """Returns the sub-rule with the largest share, where the author's plan is there."""
    try:
        insights = json.loads((bundle.root / PLAN_FILE).read_bytes())["insights"]
        return str(max(insights, key=lambda insight: insight["share"])["family"])
    except (OSError, ValueError, KeyError, TypeError):
        return UNKNOWN


def _records(path: Path, problems: list[str]) -> list[ProposalRecord]:
    if not path.is_file():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            found.append(ProposalRecord.model_validate_json(line))
        except ValidationError:
            problems.append(f"{path}, line {number} is no record of a proposal")
    return latest(found)


def _funnel(records: Sequence[ProposalRecord]) -> Funnel | None:
    if not records:
        return None
    summary = summarize(records)
    return Funnel(
        stages=summary["funnel"],
        losses=summary["losses"],
        n_proposed=summary["n_proposed"],
        n_accepted=summary["n_accepted"],
        n_faults=summary["n_faults"],
    )


def _line(bundle: Bundle) -> TaskLine:
    spec = bundle.spec
    size = sum((bundle.root / path).stat().st_size for path in bundle.paths())
    return TaskLine(
        task_id=spec.task_id,
        task_hash=spec.task_hash,
        seed_id=spec.provenance.seed_id,
        title=spec.title,
        domain=spec.domain,
        modality="+".join(modality.value for modality in spec.modalities),
        task_kind=spec.task_kind.value,
        metric=spec.metric,
        family=family_of(bundle),
        n_train=spec.n_train,
        size_kb=round(size / 1024, 1),
    )


def _reach(bundles: Sequence[Bundle], problems: list[str]) -> tuple[TierReach, ...]:
    medals: dict[Tier, Counter[Medal]] = {tier: Counter() for tier in Tier}
    for bundle in bundles:
        if LADDER_FILE not in bundle.spec.files:
            continue
        try:
            ladder = Ladder.model_validate_json(bundle.read(LADDER_FILE))
        except (ValidationError, BundleError):
            problems.append(f"task {bundle.task_id}: {LADDER_FILE} is not a ladder")
            continue
        for rung in ladder.rungs:
            medals[rung.tier][medal_of(rung.score, bundle.spec.thresholds, bundle.spec.direction)] += 1
    return tuple(
        TierReach(
            tier=tier,
            n_baselines=counts.total(),
            shares={medal.value: round(counts[medal] / counts.total(), 4) for medal in Medal},
        )
        for tier, counts in medals.items()
        if counts
    )
