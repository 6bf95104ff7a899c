"""Micro-scale for training, enough rows for a grade that is not luck."""

from sandmle.gate.base import Check, Finding, GateContext

TRAIN_ROWS = (50, 200)
"""Fewest and most training rows (paper, abstract)."""
FEWEST_PRIVATE_ROWS = 1000
"""Below this, milestones lie closer together than a score's standard error in too many tasks."""
MOST_PUBLIC_BYTES = 64 * 2**20


def run(context: GateContext) -> Finding:
    """Holds row counts and bytes against their limits."""
    spec = context.spec
    low, high = TRAIN_ROWS
    if not low <= spec.n_train <= high:
        limit = low if spec.n_train < low else high
        return Finding(
            False, f"{spec.n_train} training rows; a task has {low} to {high}", float(spec.n_train), float(limit)
        )
    if spec.n_private < FEWEST_PRIVATE_ROWS:
        message = f"{spec.n_private} private rows; a grade needs {FEWEST_PRIVATE_ROWS}"
        return Finding(False, message, float(spec.n_private), float(FEWEST_PRIVATE_ROWS))
    size = sum(path.stat().st_size for path in context.bundle.public_dir.rglob("*") if path.is_file())
    if size > MOST_PUBLIC_BYTES:
        return Finding(False, f"public/ holds {size} bytes", float(size), float(MOST_PUBLIC_BYTES))
    return Finding(True, "", float(spec.n_private), float(FEWEST_PRIVATE_ROWS))


CHECK = Check("sizes", run)
