"""Submissions without any work in them win no medal."""

from sandmle.errors import BundleError
from sandmle.gate.base import Check, Finding, GateContext
from sandmle.gate.submissions import constant_submissions, shuffled
from sandmle.grading import Predictions

_SHUFFLES = 5


def run(context: GateContext) -> Finding:
    """Scores the sample submission, constants and shuffled answers; the best of them may not reach bronze."""
    spec = context.spec
    entries = {"the sample submission": context.sample}
    for name, data in constant_submissions(context).items():
        try:
            entries[name] = context.predictions(data, name)
        except BundleError:
            continue  # a constant that the task does not allow
    for number in range(_SHUFFLES):
        entries[f"shuffled answers {number}"] = Predictions(shuffled(context.perfect.values, number))
    scores = {name: context.private_key.score(predictions) for name, predictions in entries.items()}
    name, best = max(scores.items(), key=lambda pair: spec.direction.gain(pair[1], 0.0))
    bronze = spec.thresholds.bronze.score
    message = f"{name} scores {best:.6g}; bronze is {bronze:.6g}" if spec.direction.at_least(best, bronze) else ""
    return Finding(not message, message, best, bronze)


CHECK = Check("trivial_submissions", run, needs=frozenset({"calibrated"}))
