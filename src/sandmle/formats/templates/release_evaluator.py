"""Scores a submission and prints one JSON object: the score, the direction and the four thresholds.

Use: python evaluator.py --submission_path submission.csv. Exit code 1: the submission is invalid.
"""

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "grader.zip"))

from sandmle.grading import AnswerKey, ScoringRule, SubmissionProblem, read_submission  # noqa: E402


def main():
    """Reads, scores, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--submission_path", type=Path, required=True)
    path = parser.parse_args().submission_path
    task = json.loads((HERE / "evaluator.json").read_bytes())
    key = AnswerKey.parse(ScoringRule.model_validate(task["rule"]), (HERE / "answer.csv").read_bytes())
    key = key.subset("private")
    outcome = read_submission(key, path.read_bytes() if path.is_file() else None)
    if isinstance(outcome, SubmissionProblem):
        print(outcome.message, file=sys.stderr)
        sys.exit(1)
    print(json.dumps({"score": float(key.score(outcome)), **task["lines"]}))


if __name__ == "__main__":
    main()
