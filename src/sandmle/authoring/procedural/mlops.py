"""The MLOps Engineer: scoring, baselines, thresholds and the sample submission."""

from sandmle.authoring.plan import Evaluation
from sandmle.authoring.procedural.dataset import Dataset
from sandmle.authoring.procedural.ladder import best_constant_option, best_oracle_option, climb
from sandmle.authoring.procedural.publish import Published, oracle_submission, sample_submission
from sandmle.grading import calibrated, paper
from sandmle.records import ThresholdPreset


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
