"""All faults, with the checks that are there for them."""

from sandmle.gate.faults import defects, leaks
from sandmle.gate.faults.base import Fault, Inject

_FAULTS: tuple[tuple[str, Inject, tuple[str, ...], str], ...] = (
    ("label_column", leaks.label_column, ("single_column",), "an input column is the answer in another unit"),
    (
        "oracle_column",
        leaks.single_column_oracle,
        ("single_column",),
        "an input column is the hidden rule's prediction",
    ),
    (
        "sample_of_answers",
        leaks.sample_submission,
        ("trivial_submissions", "disclosure"),
        "the sample is made of answers",
    ),
    ("id_order", leaks.id_order, ("order_leaks",), "ids are numbered in the order of the answers"),
    ("id_parity", leaks.id_parity, ("order_leaks",), "ids are odd where the answer is high"),
    ("row_order", leaks.row_order, ("order_leaks",), "rows stand in the order of the answers"),
    ("file_names", leaks.file_names, ("order_leaks",), "file names hold a letter of the answer"),
    ("file_times", leaks.file_times, ("order_leaks",), "files are dated by the answer"),
    (
        "file_sizes",
        leaks.MEDIA_CHANGES["file_sizes"],
        ("order_leaks",),
        "pictures of equal pixels are longer files by the answer",
    ),
    ("png_text", leaks.MEDIA_CHANGES["png_text"], ("media_metadata",), "a text chunk in pictures"),
    ("exif", leaks.MEDIA_CHANGES["exif"], ("media_metadata",), "EXIF in pictures"),
    ("wav_metadata", leaks.MEDIA_CHANGES["wav_metadata"], ("media_metadata",), "a comment in sounds"),
    ("duplicate_rows", defects.duplicate_rows, ("duplicates",), "training rows stand in the test again"),
    ("shared_entities", defects.shared_entities, ("groups_disjoint",), "entities of the test are in the training rows"),
    ("target_in_test", defects.target_in_test, ("bundle_integrity",), "test.csv has the target's column"),
    ("answers_in_text", defects.answers_in_text, ("disclosure",), "a public text lists the answers"),
    ("milestone_told", defects.milestone_in_description, ("disclosure",), "the description tells gold's score"),
    ("rule_told", defects.rule_in_description, ("rule_revealed",), "the description quotes the rule"),
    ("thresholds_close", defects.thresholds_close, ("thresholds",), "milestones lie too close together"),
    ("thresholds_reversed", defects.thresholds_reversed, ("thresholds",), "milestones are in the wrong order"),
    (
        "bronze_for_nothing",
        defects.bronze_without_work,
        ("trivial_submissions", "thresholds"),
        "a constant wins bronze",
    ),
    ("wrong_direction", defects.wrong_direction, ("evaluator_agrees",), "the direction is not the metric's"),
    ("another_metric", defects.another_metric, ("thresholds", "evaluator_agrees"), "the evaluator has another metric"),
    ("one_class", defects.one_class, ("degenerate_labels",), "answers are of one class"),
    ("unlearnt_label", defects.unlearnt_label, ("label_coverage",), "no training row has one of the labels"),
    ("shifted_test", defects.shifted_test, ("train_test_shift",), "test rows come from elsewhere"),
    ("other_bytes", defects.other_bytes_again, ("determinism",), "made again, the data differ"),
    ("slow_reference", defects.slow_reference, ("running_time",), "the solver is too slow"),
)
FAULTS: dict[str, Fault] = {name: Fault(name, words, checks, inject) for name, inject, checks, words in _FAULTS}
"""By name, in the order of tables."""
