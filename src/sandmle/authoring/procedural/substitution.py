"""What of a seed's DNA this author cannot draw yet, and the nearest that it can.

One table for data (``MEDIA``), one for targets (``STAND_INS``). Every use is recorded in the task's plan and rule.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sandmle.authoring.procedural.families.base import Medium
from sandmle.records import Direction, Modality, PredictionKind, StructuralDNA, TaskKind

MEDIA: dict[Modality, tuple[Medium, str]] = {
    Modality.TABULAR: ("tabular", ""),
    Modality.TEXT: ("text", ""),
    Modality.IMAGE: ("image", ""),
    Modality.TIME_SERIES: ("trace", ""),
    Modality.SEQUENCE: ("trace", "sequences are drawn as sensor traces in columns"),
    Modality.AUDIO: ("trace", "audio is drawn as sensor traces in columns"),
    Modality.GRAPH: ("tabular", "graphs are drawn as tables of their node properties"),
    Modality.VIDEO: ("image", "videos are drawn as single frames"),
    Modality.POINT_CLOUD: ("trace", "point clouds are drawn as sensor traces in columns"),
}
"""Where the data of each modality goes, and what that replaces; an empty text means nothing is replaced."""


@dataclass(frozen=True)
class StandIn:
    """A target that can be drawn, in place of one that cannot. ``None`` keeps what the seed has."""

    task_kind: TaskKind
    prediction_kind: PredictionKind
    metric: str | None
    n_classes: int | None
    words: str


STAND_INS: tuple[tuple[Callable[[StructuralDNA], bool], StandIn], ...] = (
    (
        lambda dna: dna.task_kind is TaskKind.SEGMENTATION,
        StandIn(
            TaskKind.MULTILABEL,
            PredictionKind.LABEL_SET,
            "micro_f1",
            6,
            "masks are drawn as the set of regions that are marked; micro F1 over sets is what Dice is over masks",
        ),
    ),
    (
        lambda dna: dna.task_kind is TaskKind.DETECTION,
        StandIn(
            TaskKind.MULTILABEL,
            PredictionKind.LABEL_SET,
            "micro_f1",
            None,
            "boxes are drawn as the set of kinds of object that are present, scored by micro F1",
        ),
    ),
    (
        lambda dna: dna.task_kind is TaskKind.ORDERING,
        StandIn(
            TaskKind.RANKING,
            PredictionKind.RANKED_LABELS,
            "map_at_k",
            8,
            "orders of items are drawn as rankings of labels, scored by MAP",
        ),
    ),
    (
        lambda dna: dna.task_kind is TaskKind.SEQ2SEQ,
        StandIn(
            TaskKind.MULTICLASS,
            PredictionKind.LABEL,
            "accuracy",
            6,
            "output sequences are drawn as one label out of a closed set, scored by accuracy",
        ),
    ),
    (
        lambda dna: dna.task_kind is TaskKind.SPAN_EXTRACTION,
        StandIn(
            TaskKind.MULTICLASS,
            PredictionKind.LABEL,
            "macro_f1",
            5,
            "text spans are drawn as one label out of a closed set, scored by macro F1",
        ),
    ),
    (
        lambda dna: dna.task_kind is TaskKind.SEQUENCE_REGRESSION and dna.n_targets == 1,
        StandIn(TaskKind.REGRESSION, PredictionKind.VALUES, None, None, "one value a row instead of one a step"),
    ),
    (
        lambda dna: dna.task_kind in (TaskKind.SEQUENCE_REGRESSION, TaskKind.RECONSTRUCTION),
        StandIn(TaskKind.MULTI_TARGET_REGRESSION, PredictionKind.VALUES, None, None, "values a row instead of a step"),
    ),
    (
        lambda dna: dna.task_kind is TaskKind.MULTILABEL and dna.prediction_kind is PredictionKind.PROBABILITY,
        StandIn(TaskKind.BINARY, PredictionKind.PROBABILITY, None, 2, "one row for each pair of example and label"),
    ),
)

_MOST_LABELS: dict[PredictionKind, int] = {
    PredictionKind.LABEL: 6,
    PredictionKind.CLASS_PROBABILITIES: 6,
    PredictionKind.LABEL_PROBABILITIES: 5,
    PredictionKind.LABEL_SET: 6,
    PredictionKind.RANKED_LABELS: 8,
}
"""Most labels that 200 training rows can carry."""
_MOST_TARGETS = 4


def drawable(dna: StructuralDNA) -> tuple[StructuralDNA, tuple[str, ...]]:
    """Returns the nearest DNA that can be drawn, and what was replaced, one sentence each."""
    notes = [MEDIA[modality][1] for modality in dna.modalities if MEDIA[modality][1]]
    changes: dict[str, object] = {}
    for applies, stand_in in STAND_INS:
        if applies(dna):
            notes.append(stand_in.words)
            changes |= {"task_kind": stand_in.task_kind, "prediction_kind": stand_in.prediction_kind}
            changes |= {"n_targets": 1} if stand_in.metric else {}
            changes |= {"metric": stand_in.metric, "direction": Direction.MAXIMIZE} if stand_in.metric else {}
            changes |= {"n_classes": stand_in.n_classes or dna.n_classes}
            break
    drawn = dna.replace(**changes)
    return _capped(drawn, notes)


def _capped(dna: StructuralDNA, notes: list[str]) -> tuple[StructuralDNA, tuple[str, ...]]:
    most = _MOST_LABELS.get(dna.prediction_kind)
    if dna.n_classes is not None and most is not None and dna.n_classes > most:
        notes.append(f"{dna.n_classes} labels are drawn as {most}, the most that 200 training rows can carry")
        dna = dna.replace(n_classes=most)
    if dna.prediction_kind is PredictionKind.VALUES and dna.n_targets > _MOST_TARGETS:
        notes.append(f"{dna.n_targets} targets are drawn as {_MOST_TARGETS}")
        dna = dna.replace(n_targets=_MOST_TARGETS)
    if dna.prediction_kind in (PredictionKind.CLASS_PROBABILITIES, PredictionKind.LABEL_PROBABILITIES):
        dna = dna.replace(n_targets=dna.n_classes)
    return dna, tuple(notes)
