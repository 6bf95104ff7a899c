"""The grader and the metric agree, and perfect answers get the best there is (case N07)."""

import numpy as np

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.gate.submissions import perfect_submission
from sandmle.grading import Predictions, read_table, write_table
from sandmle.records import GradeReport, Medal, PredictionKind

_TOLERANCE = 1e-6


def run(context: GateContext) -> Finding:
    """Grades files of known worth on both leaderboards, and the same rows in another order."""
    problems: list[str] = []
    perfect = perfect_submission(context)
    for leaderboard in ("private", "public") if context.spec.n_public else ("private",):
        report = context.grader.grade(perfect, leaderboard=leaderboard)
        problems += _perfect_problems(context, report)
        sample = context.grader.grade(context.read("public/sample_submission.csv"), leaderboard=leaderboard)
        if not sample.is_valid:
            problems.append(f"the sample submission is not graded on the {leaderboard} rows: {sample.message}")
        elif not _same(sample.score, _by_hand(context, context.sample, leaderboard)):
            problems.append(f"the grader and the metric differ on the sample submission's {leaderboard} rows")
    turned = context.grader.grade(_reversed(perfect))
    if turned.score != context.grader.grade(perfect).score:
        problems.append("the score depends on the order of the rows")
    return Finding(not problems, problems[0] if problems else "", float(len(problems)), 0.0)


def _perfect_problems(context: GateContext, report: GradeReport) -> list[str]:
    where = f"{report.leaderboard} rows"
    if report.score is None:
        return [f"the answers themselves are not graded on the {where}: {report.message}"]
    problems = []
    metric = context.grader.key.metric
    if report.leaderboard == "private" and report.medal is not Medal.GOLD:
        problems.append(f"the answers themselves score {report.score:.6g} and win no gold")
    if (
        not _is_soft(context)
        and not set(context.spec.metric_params) & set(metric.defaults)
        and not _same(report.score, metric.best)
    ):
        problems.append(
            f"the answers themselves score {report.score:.6g} on the {where}, the best is {metric.best:.6g}"
        )
    return problems


def _is_soft(context: GateContext) -> bool:
    """Tells answers that are shares, not labels: even a perfect forecast of them has a loss above zero."""
    if context.spec.target.kind not in (PredictionKind.CLASS_PROBABILITIES, PredictionKind.LABEL_PROBABILITIES):
        return False
    values = context.grader.key.truth.values
    return bool(((values > 0) & (values < 1)).any())


def _by_hand(context: GateContext, predictions: Predictions, leaderboard: str) -> float:
    key = context.grader.key
    rows = np.flatnonzero(key.leaderboard == leaderboard)
    return float(key.metric.score(key.truth.take(rows), predictions.values[rows], key.params))


def _same(first: float | None, second: float) -> bool:
    return first is not None and abs(first - second) <= _TOLERANCE * max(1.0, abs(second))


def _reversed(submission: bytes) -> bytes:
    table = read_table(submission)
    return write_table({name: table.column(name)[::-1] for name in table.header})


CHECK = Check("evaluator_agrees", run, decides=True)
