"""The MLOps Engineer: scoring, baselines, thresholds and the sample submission."""

import math

from sandmle.authoring.plan import Evaluation
from sandmle.authoring.procedural.dataset import Dataset
from sandmle.authoring.procedural.ladder import best_constant_option, best_oracle_option, climb
from sandmle.authoring.procedural.publish import Published, oracle_submission, sample_submission
from sandmle.grading import calibrated, paper, threshold_problems
from sandmle.records import Ladder, ThresholdPreset, Thresholds, Tier

LEAST_LEAD = 0.15
"""Part of the way from the median to gold that the tuned solver on raw columns goes, at least."""


def evaluate(dataset: Dataset, order: Published, preset: ThresholdPreset) -> Evaluation:
    """Runs the baselines on the calibration rows and returns what the task is scored by.

    Raises:
        AuthoringError: The ladder gives no thresholds.
    """
    constant_option, oracle_option = best_constant_option(dataset), best_oracle_option(dataset)
    ladder = climb(dataset, constant_option, oracle_option)
    return Evaluation(
        ladder=ladder,
        thresholds=calibrated(ladder) if preset == "calibrated" else paper(ladder),
        sample_submission=sample_submission(dataset, order, constant_option),
        oracle_submission=oracle_submission(dataset, order, oracle_option),
    )


def lead_of(thresholds: Thresholds, ladder: Ladder) -> float:
    """Returns how far a careful solver that knows nothing of the rule gets from the median (0) to gold (1).

    Minus infinity where the milestones do not lie apart.
    """
    if threshold_problems(thresholds, ladder, ladder.direction):
        return -math.inf
    median, gold = thresholds.median.score, thresholds.gold.score
    tuned = ladder.best(Tier.TUNED).score
    return ladder.direction.gain(tuned, median) / ladder.direction.gain(gold, median)
