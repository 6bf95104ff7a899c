"""Grades a submission with the task's own grader and writes Harbor's reward file.

The reward is 0 for a submission that is missing or invalid; otherwise 0.2, and 0.2 more for each of median, bronze,
silver and gold that it reaches. A grader that fails writes no reward: that is not the agent's fault.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "grader.zip"))

from sandmle.grading import grade  # noqa: E402
from sandmle.records import GradeStatus, Medal  # noqa: E402
from sandmle.tasks import load_bundle  # noqa: E402

MEDALS = (Medal.BRONZE, Medal.SILVER, Medal.GOLD)


def main():
    """Reads the submission, grades it, writes the reward."""
    submission, out = map(Path, sys.argv[1:])
    report = grade(
        load_bundle(HERE / "bundle", verify=False), submission.read_bytes() if submission.is_file() else None
    )
    print(report.message)
    if report.status in (GradeStatus.GRADER_ERROR, GradeStatus.METRIC_UNDEFINED):
        sys.exit(1)
    reached = [report.score is not None, bool(report.above_median)]
    reached += [report.medal in MEDALS[at:] for at in range(len(MEDALS))]
    names = ("graded", "above_median", "bronze", "silver", "gold")
    rewards = {"reward": round(0.2 * sum(reached), 1), **dict(zip(names, map(float, reached), strict=True))}
    if report.score is not None:
        rewards["score"] = report.score
    out.write_text(json.dumps(rewards))


if __name__ == "__main__":
    main()
