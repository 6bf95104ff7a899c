"""The families of hidden sub-rules, by name."""

from sandmle.authoring.procedural.families import (
    cliffs,
    cloud,
    graded,
    graph,
    image,
    letters,
    plain,
    relations,
    sound,
    text,
    trace,
    video,
)
from sandmle.authoring.procedural.families.base import Context, Family, Insight, Medium, Rows, Sample, Web

_ALL: tuple[Family, ...] = (
    graded.SparseLinear(),
    graded.LogLinear(),
    graded.CategoryLevels(),
    graded.DecisionList(),
    relations.Geo(),
    cliffs.Ratio(),
    cliffs.Checker(),
    cliffs.Periodic(),
    cliffs.DateGap(),
    cliffs.StructuredCode(),
    relations.RelativeToGroup(),
    relations.Replicates(),
    relations.UnitMixUp(),
    relations.Interaction(),
    text.TopicWords(),
    text.NamedTeam(),
    text.NegatedPraise(),
    text.OrderOfEvents(),
    text.Quantity(),
    text.Emphasis(),
    text.RemarkCount(),
    trace.TraceLevel(),
    trace.TraceWindow(),
    trace.TraceWave(),
    trace.TracePitch(),
    trace.TraceSpikes(),
    trace.TraceGap(),
    image.Tint(),
    image.Patch(),
    image.Dots(),
    image.Shape(),
    image.Stripes(),
    image.PairDistance(),
    sound.SoundLevel(),
    sound.SoundHiss(),
    sound.SoundPitch(),
    sound.SoundBeeps(),
    sound.SoundSweep(),
    sound.SoundTremolo(),
    graph.NodeWeights(),
    graph.NodeKinds(),
    graph.Rings(),
    graph.Hub(),
    graph.Distance(),
    graph.MixedEdges(),
    letters.LetterShare(),
    letters.LetterPairs(),
    letters.LetterRun(),
    letters.LetterGap(),
    letters.LetterMirror(),
    cloud.CloudHeight(),
    cloud.CloudPlace(),
    cloud.CloudSpread(),
    cloud.CloudAxis(),
    cloud.CloudClumps(),
    cloud.CloudTilt(),
    video.VideoGlow(),
    video.VideoCorner(),
    video.VideoSpeed(),
    video.VideoTurn(),
    video.VideoFlashes(),
)
# Columns without meaning for the target; no plan names them as insights.
_PLAIN: tuple[Family, ...] = (plain.SingleNumber(), plain.SingleCategory(), plain.SingleDate())
FAMILIES: dict[str, Family] = {family.name: family for family in (*_ALL, *_PLAIN)}


def families_of(medium: Medium, *, graded: bool) -> tuple[Family, ...]:
    """Returns the families of a medium, graded ones or cliffs, in a fixed order."""
    return tuple(family for family in _ALL if family.medium == medium and family.graded == graded)


__all__ = ["FAMILIES", "Context", "Family", "Insight", "Medium", "Rows", "Sample", "Web", "families_of"]
