"""The MLOps Engineer: scoring, baselines, thresholds and the sample submission."""

from sandmle.authoring.plan import Evaluation
from sandmle.authoring.procedural.dataset import Dataset
from sandmle.authoring.procedural.ladder import climb
from sandmle.authoring.procedural.publish import Published, sample_submission
from sandmle.grading import calibrated, paper
from sandmle.records import ThresholdPreset


def evaluate(dataset: Dataset, order: Published, preset: ThresholdPreset) -> Evaluation:
    """Runs the baselines on the calibration rows and returns what the task is scored by.

    Raises:
        AuthoringError: The ladder gives no thresholds.
    """
    ladder = climb(dataset)
    thresholds = calibrated(ladder) if preset == "calibrated" else paper(ladder)
    return Evaluation(ladder=ladder, thresholds=thresholds, sample_submission=sample_submission(dataset, order))
