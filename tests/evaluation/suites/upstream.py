"""Grades the submissions of ``lite.py`` by MLE-bench's own code and prints ``lite_expected.json``.

    PYTHONPATH=/path/to/mle-bench python -m tests.evaluation.suites.upstream > lite_expected.json

Only its results are kept here. It needs what mlebench imports: pandas, scikit-learn, py7zr, tqdm, PyYAML.
"""

import json
import logging
import math
import sys
import warnings
from importlib import import_module
from typing import Any

from tests.evaluation.suites.lite import COMPETITIONS, Made, frame_of, many_classes, submissions


def main() -> None:
    """Prints the grade of every submission; null where mlebench refuses it, "nan" where it accepts a NaN."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    helpers: Any = import_module("mlebench.grade_helpers")
    classes = many_classes()
    result: dict[str, dict[str, float | str | None]] = {}
    for competition in COMPETITIONS:
        module: Any = import_module(f"mlebench.competitions.{competition}.grade")
        for name in ("CLASSES", "DOGS_LIST"):
            if competition in classes and hasattr(module, name):
                setattr(module, name, list(classes[competition]))
        made = Made(competition, classes)
        answers_csv = made.answers.to_csv(index=False).encode()
        result[competition] = {}
        for name, data in submissions(made).items():
            try:
                score = float(module.grade(frame_of(data), frame_of(answers_csv)))
            except helpers.InvalidSubmissionError:
                score = None
            except Exception:  # mlebench counts every other error as an invalid submission too
                score = None
            result[competition][name] = "nan" if score is not None and math.isnan(score) else score
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
