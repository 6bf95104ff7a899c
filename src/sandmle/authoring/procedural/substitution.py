"""What of a seed's DNA this author cannot draw, and the nearest that it can.

``MEDIA`` says where the data of each modality goes. Every modality and kind of task is drawn as what it is; what is
left to replace is sizes (thousands of labels, dozens of targets) and what one cell cannot hold.
Every replacement is recorded in the task's plan and rule.md.
"""

from sandmle.authoring.procedural.families.base import Medium
from sandmle.records import Modality, PredictionKind, StructuralDNA, TaskKind

MEDIA: dict[Modality, Medium] = {
    Modality.TABULAR: "tabular",
    Modality.TEXT: "text",
    Modality.IMAGE: "image",
    Modality.TIME_SERIES: "trace",
    Modality.SEQUENCE: "letters",
    Modality.AUDIO: "sound",
    Modality.GRAPH: "graph",
    Modality.VIDEO: "video",
    Modality.POINT_CLOUD: "cloud",
}
"""Where the data of each modality goes."""

PIECEWISE = frozenset(
    {
        TaskKind.SEGMENTATION,
        TaskKind.DETECTION,
        TaskKind.ORDERING,
        TaskKind.SEQ2SEQ,
        TaskKind.SPAN_EXTRACTION,
    }
)
"""Kinds whose rows are made of pieces."""

_MOST_LABELS: dict[PredictionKind, int] = {
    PredictionKind.LABEL: 6,
    PredictionKind.CLASS_PROBABILITIES: 6,
    PredictionKind.LABEL_PROBABILITIES: 5,
    PredictionKind.LABEL_SET: 6,
    PredictionKind.RANKED_LABELS: 8,
    PredictionKind.BOXES: 3,
}
"""Most labels that 200 training rows can carry."""
_MOST_TARGETS = 4
_WORDS = 4


def drawable(dna: StructuralDNA) -> tuple[StructuralDNA, tuple[str, ...]]:
    """Returns the nearest DNA that can be drawn, and what was replaced, one sentence each."""
    notes: list[str] = []
    if dna.task_kind is TaskKind.MULTILABEL and dna.prediction_kind is PredictionKind.PROBABILITY:
        notes.append("one row for each pair of example and label")
        dna = dna.replace(task_kind=TaskKind.BINARY, n_classes=2)
    if dna.prediction_kind is PredictionKind.MASK and dna.n_classes is not None:
        notes.append(f"masks of {dna.n_classes} kinds are drawn as masks of one")
        dna = dna.replace(n_classes=None)
    if dna.task_kind is TaskKind.SEQ2SEQ:
        dna = dna.replace(n_classes=_WORDS)
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


def media_of(dna: StructuralDNA) -> tuple[Medium, ...]:
    """Returns where the data of a task is, the leading medium first."""
    return tuple(dict.fromkeys(MEDIA[modality] for modality in dna.modalities))
