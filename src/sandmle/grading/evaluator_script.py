"""Runs in the sandbox: calls a task's own ``grade(submission, answers)`` and writes the number that it returns.

With blocks it is also called without each block of rows in turn, for the standard error. It is no part of the
package's interface.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def main(task: dict[str, Any]) -> None:
    """Reads ``submission.csv`` and ``answers.csv``, row for row the same; writes ``score.json``."""
    sys.path.insert(0, ".")
    from evaluator import grade  # type: ignore[import-not-found]

    types = dict.fromkeys(task["text_columns"], str)
    submission, answers = (
        pd.read_csv(name, dtype=types, keep_default_na=not types, na_filter=not types)
        for name in ("submission.csv", "answers.csv")
    )
    scores = [float(grade(submission.copy(), answers.copy()))]
    block = np.arange(len(answers)) % max(task["n_blocks"], 1)
    for left_out in range(task["n_blocks"]):
        kept = block != left_out
        frames = (frame[kept].reset_index(drop=True) for frame in (submission, answers))
        scores.append(float(grade(*frames)))
    Path("score.json").write_text(json.dumps([score if np.isfinite(score) else None for score in scores]))


if __name__ == "__main__":
    main(TASK)  # type: ignore[name-defined]  # noqa: F821
