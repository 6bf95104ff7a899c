"""Target heads, and which of them a plan needs."""

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.heads.base import Cells, Head, Mode, Realised, Scene
from sandmle.authoring.procedural.heads.labels import ClassHead, GradeHead, LabelsHead, LevelHead, ShareHead
from sandmle.authoring.procedural.heads.pieces import BoxHead, MaskHead, OrderHead, PhraseHead, SpanHead
from sandmle.authoring.procedural.heads.values import AngleHead, ConfidenceHead, PositionHead, ValueHead
from sandmle.records import PredictionKind, TaskKind

_PIECEWISE: dict[PredictionKind, type[Head]] = {
    PredictionKind.MASK: MaskHead,
    PredictionKind.BOXES: BoxHead,
    PredictionKind.PERMUTATION: OrderHead,
}


def head_for(plan: TaskPlan) -> Head:
    """Returns the head of a plan's target."""
    kind, form = plan.dna.task_kind, plan.target.kind
    if form in _PIECEWISE:
        return _PIECEWISE[form](plan)
    if form is PredictionKind.TEXT:
        return SpanHead(plan) if kind is TaskKind.SPAN_EXTRACTION else PhraseHead(plan)
    if plan.metric == "laplace_log_likelihood":
        return ConfidenceHead(plan)
    if plan.metric == "angular_error":
        return AngleHead(plan)
    if plan.metric == "distance_percentiles":
        return PositionHead(plan)
    if kind is TaskKind.ORDINAL and plan.metric in ("qwk", "pearson"):
        return GradeHead(plan)
    if kind is TaskKind.ORDINAL:
        return LevelHead(plan)
    if form is PredictionKind.VALUES:
        return ValueHead(plan)
    if kind is TaskKind.SOFT_LABEL:
        return ShareHead(plan)
    if form in (PredictionKind.LABEL_SET, PredictionKind.LABEL_PROBABILITIES):
        return LabelsHead(plan)
    return ClassHead(plan)


__all__ = ["Cells", "Head", "Mode", "Realised", "Scene", "head_for"]
