"""Milestones rise, far enough apart to be more than luck (case N13)."""

from itertools import pairwise

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.grading import threshold_problems
from sandmle.records import MILESTONES, Ladder, Rung, Thresholds, Tier

_LEAST_MARGIN = 2.0
"""Standard errors between neighbours."""


def run(context: GateContext) -> Finding:
    """Holds the thresholds against the preset's rule.

    The ladder's dummy and oracle bound them; a bundle without a ladder is bounded by its sample submission and by its
    oracle, or the answers themselves.
    """
    spec = context.spec
    ladder = context.ladder or _stand_in(context)
    if (ladder.metric, ladder.direction) != (spec.metric, spec.direction):
        return Finding(False, f"the ladder is of {ladder.metric} to {ladder.direction.value}, the task is not")
    thresholds = spec.thresholds.replace(preset=context.preset)
    problems = threshold_problems(thresholds, ladder, spec.direction)
    message = problems[0] if problems else ""
    if context.preset == "paper":
        return Finding(not problems, message, float(len(problems)), 0.0)
    return Finding(not problems, message, _least_margin(thresholds, ladder), _LEAST_MARGIN)


def _least_margin(thresholds: Thresholds, ladder: Ladder) -> float | None:
    dummy, oracle = (ladder.best(tier) if ladder.of(tier) else None for tier in (Tier.DUMMY, Tier.ORACLE))
    if dummy is None or oracle is None:
        return None
    chain = [
        (dummy.score, dummy.standard_error),
        *((getattr(thresholds, name).score, getattr(thresholds, name).standard_error) for name in MILESTONES),
        (oracle.score, oracle.standard_error),
    ]
    margins = []
    for (lower, lower_error), (upper, upper_error) in pairwise(chain):
        error = max(lower_error or 0.0, upper_error or 0.0)
        if error > 0:
            margins.append(ladder.direction.gain(upper, lower) / error)
    return min(margins, default=None)


def _stand_in(context: GateContext) -> Ladder:
    spec = context.spec
    key = context.private_key
    rungs = []
    for name, tier, predictions in (
        ("sample submission", Tier.DUMMY, context.sample),
        ("oracle", Tier.ORACLE, context.oracle or context.perfect),
    ):
        error = key.standard_error(predictions, n_rows=spec.n_private, rng_seed=0)
        rungs.append(Rung(name=name, tier=tier, score=key.score(predictions), standard_error=error))
    return Ladder(metric=spec.metric, direction=spec.direction, n_rows=spec.n_private, rungs=tuple(rungs))


CHECK = Check("thresholds", run)
