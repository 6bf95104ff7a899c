"""Training rows must not come back in the test."""

import hashlib

import pandas as pd

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.gate.tables import joined_rows

MOST_EXCESS = 0.02
"""Share of training rows found in the test beyond what equal rows within the test lead to expect."""


def run(context: GateContext) -> Finding:
    """Compares rows by all that an agent predicts from; pictures and sounds by their bytes."""
    columns = [name for name in context.test.columns if name != context.spec.id_column]
    if not columns:
        return Finding(True, "there are no columns to compare", 0.0, MOST_EXCESS)
    train, test = (_rows(context, frame[columns]) for frame in (context.train, context.test))
    repeated = train.isin(set(test))
    share = float(repeated.mean())
    expected = float(test.duplicated(keep=False).mean())
    # Rows of few-valued columns meet by chance, in the test as between train and test.
    tolerance = MOST_EXCESS + 4 * (expected * (1 - expected) / len(train)) ** 0.5
    excess = share - expected
    if excess <= tolerance:
        return Finding(True, "", round(excess, 6), round(tolerance, 6))
    first = context.train[context.spec.id_column][repeated].iloc[0]
    message = f"{int(repeated.sum())} rows of train.csv are in test.csv too, {first!r} for one"
    return Finding(False, message, round(excess, 6), round(tolerance, 6))


def _rows(context: GateContext, frame: pd.DataFrame) -> pd.Series:
    frame = frame.copy()
    for name in context.media_columns:
        frame[name] = [_digest(context, cell) for cell in frame[name]]
    return joined_rows(frame)


def _digest(context: GateContext, cell: str) -> str:
    path = context.media.get(cell)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path else cell


CHECK = Check("duplicates", run)
