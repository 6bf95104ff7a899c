"""The size of a column's numbers must not tell whether it matters (case N19)."""

import numpy as np
from scipy.stats import spearmanr

from sandmle.gate.base import Check, Finding, GateContext

FEWEST_COLUMNS = 8
MOST_CORRELATION = 0.9
SUREST_CHANCE = 5e-4
"""Eight columns reach the correlation by luck in one of two hundred sound tasks."""


def run(context: GateContext) -> Finding:
    """Correlates the spread of number columns with how strongly each goes with the target, by ranks."""
    numbers = [column for column in context.inputs if column.is_number and np.nanstd(column.train) > 0]
    if len(numbers) < FEWEST_COLUMNS or not context.answer_views:
        return Finding(True, f"{len(numbers)} number columns are too few to tell")
    spreads = [float(np.nanstd(column.train)) for column in numbers]
    strengths = [max(_strength(column.test, view) for view in context.answer_views.values()) for column in numbers]
    found = spearmanr(spreads, strengths)
    value = abs(float(found.statistic))
    is_sure = found.pvalue < SUREST_CHANCE
    message = "the spread of a number column tells how much it matters" if value > MOST_CORRELATION and is_sure else ""
    return Finding(not message, message, round(value, 6), MOST_CORRELATION)


def _strength(column: np.ndarray, view: np.ndarray) -> float:
    there = np.isfinite(column)
    if there.sum() < 10 or np.ptp(column[there]) == 0 or np.ptp(view[there]) == 0:
        return 0.0
    return abs(float(spearmanr(column[there], view[there]).statistic))


CHECK = Check("informative_scale", run)
