"""The author makes the same bytes again (cases N08, N14)."""

import hashlib

from sandmle.gate.base import Check, Finding, GateContext

_EXPECTED = ("public/train.csv", "public/test.csv", "private/answers.csv")


def run(context: GateContext) -> Finding:
    """Makes the data files again and counts those with another SHA-256 than the spec names."""
    assert context.regenerate is not None  # the check's needs say so
    again = context.regenerate()
    wanted = context.spec.files
    different = sorted(path for path, data in again.items() if hashlib.sha256(data).hexdigest() != wanted.get(path))
    different += sorted(path for path in _EXPECTED if path not in again)
    message = f"made again, {different[0]} is another file" if different else ""
    return Finding(not different, message, float(len(different)), 0.0)


CHECK = Check("determinism", run, needs=frozenset({"regenerate"}))
