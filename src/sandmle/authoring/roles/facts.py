"""What the roles are told: the seed's shape for all, public facts of the finished data for the writer."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sandmle.authoring.roles.draws import Draw
from sandmle.authoring.roles.outputs import TaskIdea
from sandmle.authoring.roles.scoring import Scoring
from sandmle.grading import metric_names
from sandmle.grading.metrics import get_metric
from sandmle.records import PredictionKind, SeedRecord

MOST_LABELS = 8
"""Most labels that 200 training rows can carry."""


def shape_of(seed: SeedRecord) -> dict[str, object]:
    """Returns the Structural DNA as the strategist reads it: the shape, without a word of the seed's domain."""
    dna = seed.dna.to_dict()
    dna.pop("leaderboard")
    dna.pop("schema_version")
    metric = get_metric(seed.dna.metric)
    return {"dna": dna, "metric": metric, "most_labels": MOST_LABELS, "n_labels": seed.dna.n_classes}


def fitting_metrics(idea: TaskIdea) -> list[tuple[str, str, str]]:
    """Returns name, direction and title of the registered metrics that take this kind of target."""
    metrics = [get_metric(name) for name in metric_names()]
    return [
        (metric.name, metric.direction.value, metric.title)
        for metric in metrics
        if idea.target.kind in metric.kinds and not any(role.required for role in metric.roles)
    ]


@dataclass(frozen=True)
class PublicFacts:
    """All that the writer may know: nothing that an agent could not count itself.

    Attributes:
        idea: Only its public parts are named in the prompt.
        metric: Name, title, words, formula and direction of the metric, with its parameters.
        label_shares: Share of each label in the training rows.
        ranges: Smallest and largest training value of each number target.
        sample_head: First lines of the sample submission.
        media: Kind of the files of each path column.
    """

    idea: TaskIdea
    metric: Mapping[str, object]
    label_shares: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    sample_head: str
    media: Mapping[str, str]


def public_facts(idea: TaskIdea, draw: Draw, scoring: Scoring, files: Mapping[str, bytes]) -> PublicFacts:
    """Returns the facts of a task's data."""
    metric = scoring.metric or get_metric(scoring.name)
    target = idea.target
    shares: dict[str, float] = {}
    ranges: dict[str, tuple[float, float]] = {}
    if target.kind is PredictionKind.VALUES:
        for name in target.columns:
            values = np.array([float(cell) for cell in draw.train[name]])
            ranges[name] = (float(values.min()), float(values.max()))
    elif target.kind in (PredictionKind.CLASS_PROBABILITIES, PredictionKind.LABEL_PROBABILITIES):
        shares = {name: float(np.mean([float(cell) for cell in draw.train[name]])) for name in target.columns}
    elif target.labels:
        cells = [set(cell.split()) | {cell} for cell in draw.train[target.columns[0]]]
        shares = {label: float(np.mean([label in found for found in cells])) for label in target.labels}
    return PublicFacts(
        idea=idea,
        metric={
            "name": scoring.name,
            "title": metric.title,
            "words": metric.words,
            "formula": metric.formula,
            "better": "higher is better" if scoring.direction.value == "maximize" else "lower is better",
            "params": {} if scoring.metric else dict(scoring.params),
        },
        label_shares=shares,
        ranges=ranges,
        sample_head="\n".join(files["public/sample_submission.csv"].decode().splitlines()[:4]),
        media={
            name: {".png": "a PNG picture", ".wav": "a WAV sound of 8000 samples a second", ".txt": "a text file"}[
                draw.media[int(draw.train[name][0])].suffix
            ]
            for name in idea.path_columns
        },
    )
