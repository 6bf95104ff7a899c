"""A task about unseen entities has other entities in the test (case N16)."""

from sandmle.gate.base import Check, Finding, GateContext


def run(context: GateContext) -> Finding:
    """Finds, among the columns that could be an entity's id, the one shared least between train and test."""
    if not context.spec.dna.groups:
        return Finding(True, "the DNA names no groups")
    if not context.group_columns:
        return Finding(False, "the DNA names groups, but no column says which entity a row belongs to")
    shared = {}
    for name in context.group_columns:
        entities = set(context.test[name])
        shared[name] = len(entities & set(context.train[name])) / max(1, len(entities))
    name, least = min(shared.items(), key=lambda pair: pair[1])
    message = "" if least == 0 else f"{least:.0%} of the entities in {name!r} of test.csv are in train.csv too"
    return Finding(not message, message, round(least, 6), 0.0)


CHECK = Check("groups_disjoint", run)
