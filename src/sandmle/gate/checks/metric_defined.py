"""The metric gives a number on both leaderboards, and would on other rows of the same kind (case N07)."""

import numpy as np

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.grading import MetricUndefined

_DRAWS = 20
_RNG_SEED = 20


def run(context: GateContext) -> Finding:
    """Scores the sample submission on each leaderboard, and asks for a value on bootstrap draws of the private rows."""
    key = context.grader.key
    predicted = context.sample.values
    for leaderboard in ("private", "public") if context.spec.n_public else ("private",):
        rows = np.flatnonzero(key.leaderboard == leaderboard)
        try:
            key.metric.score(key.truth.take(rows), predicted[rows], key.params)
        except MetricUndefined as error:
            return Finding(False, f"on the {leaderboard} rows: {error}", 1.0, 0.0)
    private = np.flatnonzero(key.leaderboard == "private")
    rng = np.random.default_rng(_RNG_SEED)
    n_undefined = 0
    for _ in range(_DRAWS):
        rows = rng.choice(private, len(private))
        try:
            key.metric.check(key.truth.take(rows), key.params)
        except MetricUndefined:
            n_undefined += 1
    share = n_undefined / _DRAWS
    message = f"the metric is undefined on {share:.0%} of bootstrap draws of the private rows" if share else ""
    return Finding(not message, message, share, 0.0)


CHECK = Check("metric_defined", run)
