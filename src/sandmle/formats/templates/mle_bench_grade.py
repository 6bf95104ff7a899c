"""Scores a submission with the task's own grader; see task.json for the rule.

A sandmle that is installed is used; otherwise the grader.zip beside this file.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).with_name("grader.zip")))

from mlebench.grade_helpers import InvalidSubmissionError

from sandmle.grading import AnswerKey, ScoringRule, SubmissionProblem, read_submission, write_table

RULE = ScoringRule.model_validate_json(Path(__file__).with_name("task.json").read_bytes())


def grade(submission, answers):
    """Returns the score on the private rows; a submission that cannot be graded raises InvalidSubmissionError."""
    key = AnswerKey.parse(RULE, _csv(answers)).subset("private")
    outcome = read_submission(key, _csv(submission))
    if isinstance(outcome, SubmissionProblem):
        raise InvalidSubmissionError(outcome.message)
    return float(key.score(outcome))


def _csv(table):
    if isinstance(table, list):  # answers in JSON Lines
        return write_table({name: [row[name] for row in table] for name in table[0]})
    return table.to_csv(index=False).encode()
