import pytest

from sandmle.authoring.procedural.substitution import drawable
from sandmle.grading import get_metric
from sandmle.records import PredictionKind, TaskKind
from sandmle.seeds import load_seed, seed_ids

UNDRAWN_KINDS = {
    TaskKind.SEGMENTATION,
    TaskKind.DETECTION,
    TaskKind.ORDERING,
    TaskKind.SEQ2SEQ,
    TaskKind.SPAN_EXTRACTION,
    TaskKind.SEQUENCE_REGRESSION,
    TaskKind.RECONSTRUCTION,
}


@pytest.mark.parametrize("seed", seed_ids())
def test_every_seed_becomes_drawable(seed: str) -> None:
    dna = load_seed(seed).dna
    drawn, notes = drawable(dna)
    assert drawn.task_kind not in UNDRAWN_KINDS
    metric = get_metric(drawn.metric)
    assert metric.direction is drawn.direction
    assert drawn.prediction_kind in metric.kinds
    changed = (drawn.task_kind, drawn.prediction_kind, drawn.metric, drawn.n_classes) != (
        dna.task_kind,
        dna.prediction_kind,
        dna.metric,
        dna.n_classes,
    )
    assert bool(notes) or not changed


def test_what_can_be_drawn_stays() -> None:
    dna = load_seed("spaceship-titanic").dna
    assert drawable(dna) == (dna, ())


def test_masks_become_sets_of_regions() -> None:
    drawn, notes = drawable(load_seed("hubmap-kidney-segmentation").dna)
    assert drawn.prediction_kind is PredictionKind.LABEL_SET
    assert any("masks" in note for note in notes)
