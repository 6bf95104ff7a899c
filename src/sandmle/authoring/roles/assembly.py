"""The roles' work put together as a bundle that is not yet on disk."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version as version_of

import yaml

from sandmle.authoring.randomness import digest_of
from sandmle.authoring.roles.facts import PublicFacts
from sandmle.authoring.roles.outputs import Scripts, TaskIdea
from sandmle.authoring.roles.publish import N_PUBLIC
from sandmle.authoring.roles.scoring import Scoring
from sandmle.grading.custom import EVALUATOR_FILE
from sandmle.records import Ladder, Provenance, SeedRecord, StructuralDNA, TaskLimits, TaskSpec, Thresholds
from sandmle.tasks.bundle import DESCRIPTION_FILE, BundleDraft

AUTHOR = "llm"
"""Name in the provenance."""
AUTHOR_VERSION = "2"
_LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "lightgbm", "pillow")


@dataclass(frozen=True)
class Work:
    """All that is known of a task when only the description is missing."""

    idea: TaskIdea
    scripts: Scripts
    scoring: Scoring
    ladder: Ladder
    thresholds: Thresholds
    files: Mapping[str, bytes]
    facts: PublicFacts


def task_id_of(seed: SeedRecord, rng_seed: int, idea: TaskIdea) -> str:
    """Returns the task's id: domain, entity, and letters that tell it from others."""
    words = "-".join(re.findall(r"[a-z0-9]+", f"{idea.domain} {idea.entity}".lower()))[:60]
    return f"{words}-{digest_of('roles', AUTHOR_VERSION, seed.id, rng_seed, idea.digest()).hex()[:6]}"


def dna_of(seed: SeedRecord, idea: TaskIdea, scoring: Scoring) -> StructuralDNA:
    """Returns the DNA as it was drawn: the seed's, with the labels, columns and metric that the task really has."""
    return seed.dna.replace(
        modalities=idea.modalities,
        n_classes=len(idea.target.labels) or (seed.dna.n_classes and len(idea.target.columns)),
        n_targets=len(idea.target.columns),
        metric=scoring.name,
        direction=scoring.direction,
    )


def assemble(seed: SeedRecord, rng_seed: int, work: Work, description: str) -> BundleDraft:
    """Returns the whole task."""
    idea, scoring = work.idea, work.scoring
    dna = dna_of(seed, idea, scoring)
    files = dict(work.files)
    files[DESCRIPTION_FILE] = description.encode()
    files["provenance/dna.yaml"] = yaml.safe_dump(
        {"seed": seed.dna.to_dict(), "drawn": dna.to_dict()}, sort_keys=False
    ).encode()
    files["provenance/rule.md"] = _rule(idea).encode()
    files["provenance/plan.json"] = (idea.model_dump_json(indent=2) + "\n").encode()
    files["provenance/ladder.json"] = (work.ladder.model_dump_json(indent=2) + "\n").encode()
    files |= {f"provenance/{name}": source.encode() for name, source in work.scripts.files.items()}
    evaluator = scoring.source
    if evaluator:
        files[EVALUATOR_FILE] = evaluator.encode()
    spec = TaskSpec(
        task_id=task_id_of(seed, rng_seed, idea),
        title=idea.title,
        domain=idea.domain,
        modalities=idea.modalities,
        task_kind=seed.dna.task_kind,
        metric=scoring.name,
        metric_params=scoring.params,
        direction=scoring.direction,
        id_column=idea.id_column,
        target=idea.target,
        columns=idea.columns,
        n_train=idea.n_train,
        n_public=N_PUBLIC,
        n_private=idea.n_private,
        thresholds=work.thresholds,
        limits=TaskLimits(),
        dna=dna,
        provenance=Provenance(
            author=AUTHOR,
            author_version=AUTHOR_VERSION,
            rng_seed=rng_seed,
            seed_id=seed.id,
            versions={library: version_of(library) for library in _LIBRARIES},
        ),
    )
    return BundleDraft(spec=spec, files=files)


def _rule(idea: TaskIdea) -> str:
    baselines = "\n".join(f"- `{each.name}` ({each.tier}): {each.discovers}" for each in idea.baselines)
    return (
        f"# The hidden rule\n\n{idea.hidden_rule}\n\n    {idea.formula}\n\n"
        f"Noise: {idea.noise}\n\nWhat makes the data harder: {idea.mutation}\n\n## Baselines\n\n{baselines}\n"
    )
