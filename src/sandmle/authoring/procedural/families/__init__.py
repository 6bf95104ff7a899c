"""The families of hidden sub-rules, by name."""

from sandmle.authoring.procedural.families import cliffs, graded, plain
from sandmle.authoring.procedural.families.base import Context, Family, Insight, Medium, Rows, Sample

_ALL: tuple[Family, ...] = (
    graded.SparseLinear(),
    graded.LogLinear(),
    graded.CategoryLevels(),
    graded.DecisionList(),
    cliffs.Ratio(),
    cliffs.Checker(),
    cliffs.Periodic(),
    cliffs.DateGap(),
    cliffs.StructuredCode(),
)
_PLAIN: tuple[Family, ...] = (plain.SingleNumber(), plain.SingleCategory(), plain.SingleDate())
FAMILIES: dict[str, Family] = {family.name: family for family in (*_ALL, *_PLAIN)}


def families_of(medium: Medium, *, graded: bool) -> tuple[Family, ...]:
    """Returns the families of a medium, graded ones or cliffs, in a fixed order."""
    return tuple(family for family in _ALL if family.medium == medium and family.graded == graded)


__all__ = ["FAMILIES", "Context", "Family", "Insight", "Medium", "Rows", "Sample", "families_of"]
