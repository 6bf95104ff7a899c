"""A target that hardly varies cannot be learnt."""

import pandas as pd

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.gate.tables import joined_rows

MOST_OF_ONE_VALUE = 0.985


def run(context: GateContext) -> Finding:
    """Finds the largest share of one value of the whole target, in training rows and on both leaderboards."""
    shares = {"train.csv": _largest_share(context.train[context.train_targets])}
    answers = context.answers[context.answer_targets]
    shares["the private rows of answers.csv"] = _largest_share(answers[context.is_private])
    if (~context.is_private).any():
        shares["the public rows of answers.csv"] = _largest_share(answers[~context.is_private])
    where, worst = max(shares.items(), key=lambda pair: pair[1])
    message = f"in {where}, {worst:.1%} of the rows have the same answer" if worst > MOST_OF_ONE_VALUE else ""
    return Finding(not message, message, round(worst, 6), MOST_OF_ONE_VALUE)


def _largest_share(frame: pd.DataFrame) -> float:
    return float(joined_rows(frame).value_counts(normalize=True).iloc[0]) if len(frame) else 1.0


CHECK = Check("degenerate_labels", run)
