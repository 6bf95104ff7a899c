"""Metrics, submission checks, thresholds, medals, grade reports."""

from sandmle.grading.answers import AnswerKey, Predictions
from sandmle.grading.grader import GradeLine, Grader, grade, grade_many
from sandmle.grading.metrics import Metric, MetricUndefined, get_metric, metric_names
from sandmle.grading.rule import ScoringRule
from sandmle.grading.submission import SubmissionProblem, read_submission
from sandmle.grading.table import Table, TableError, read_table, write_table
from sandmle.grading.thresholds import calibrated, medal_of, paper, threshold_problems

__all__ = [
    "AnswerKey",
    "GradeLine",
    "Grader",
    "Metric",
    "MetricUndefined",
    "Predictions",
    "ScoringRule",
    "SubmissionProblem",
    "Table",
    "TableError",
    "calibrated",
    "get_metric",
    "grade",
    "grade_many",
    "medal_of",
    "metric_names",
    "paper",
    "read_submission",
    "read_table",
    "threshold_problems",
    "write_table",
]
