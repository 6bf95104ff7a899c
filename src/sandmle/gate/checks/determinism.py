"""The author makes the same bytes again (cases N08, N14)."""

import hashlib

from sandmle.gate.base import Check, Finding, GateContext


def run(context: GateContext) -> Finding:
    """Makes the data files again and counts those with another SHA-256 than the spec names."""
    assert context.regenerate is not None  # the check's needs say so
    again = context.regenerate()
    wanted = context.spec.files
    different = sorted(path for path, data in again.items() if hashlib.sha256(data).hexdigest() != wanted.get(path))
    data_files = {path for path in wanted if path.startswith(("public/", "private/"))} - {
        "public/sample_submission.csv"
    }
    different += sorted(data_files - set(again))
    message = f"made again, {different[0]} is another file" if different else ""
    return Finding(not different, message, float(len(different)), 0.0)


CHECK = Check("determinism", run, needs=frozenset({"regenerate"}))
