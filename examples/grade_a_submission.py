"""Grade a submission file without any episode: the report says what is wrong, or what was reached.

Run: python examples/grade_a_submission.py TASK SUBMISSION.csv
"""

import sys
from pathlib import Path

from sandmle.grading import grade
from sandmle.tasks import load_bundle


def main(task: Path, submission: Path) -> None:
    """Grades one file."""
    bundle = load_bundle(task)
    report = grade(bundle, submission.read_bytes())
    print(f"{report.status}: {report.message}")
    if report.is_valid:
        print(f"{report.metric} {report.score:.4f}, medal {report.medal}, above median: {report.above_median}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
