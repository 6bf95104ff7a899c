import pytest

from sandmle.authoring.procedural.families import families_of
from sandmle.authoring.procedural.substitution import MEDIA, drawable, media_of
from sandmle.grading import get_metric
from sandmle.records import Modality
from sandmle.seeds import load_seed, seed_ids


@pytest.mark.parametrize("seed", seed_ids())
def test_every_seed_is_drawn_in_its_own_modality_kind_and_metric(seed: str) -> None:
    dna = load_seed(seed).dna
    drawn, notes = drawable(dna)
    assert drawn.modalities == dna.modalities
    assert (drawn.prediction_kind, drawn.metric, drawn.direction) == (dna.prediction_kind, dna.metric, dna.direction)
    assert drawn.prediction_kind in get_metric(drawn.metric).kinds
    if drawn.task_kind is not dna.task_kind:
        assert seed == "rsna-2022-cervical-spine-fracture-detection"
        assert notes


@pytest.mark.parametrize("modality", list(Modality))
def test_every_modality_has_graded_families_and_cliffs(modality: Modality) -> None:
    assert len(families_of(MEDIA[modality], graded=True)) >= 2
    assert len(families_of(MEDIA[modality], graded=False)) >= 3


def test_no_two_modalities_are_drawn_alike() -> None:
    assert len(set(MEDIA.values())) == len(Modality)
    assert media_of(load_seed("multi-modal-gesture-recognition").dna) == ("video", "letters", "sound")


def test_what_can_be_drawn_stays() -> None:
    dna = load_seed("spaceship-titanic").dna
    assert drawable(dna) == (dna, ())


def test_too_many_labels_are_cut_and_told() -> None:
    drawn, notes = drawable(load_seed("cdiscount-image-classification-challenge").dna)
    assert drawn.n_classes == 6
    assert notes == ("5270 labels are drawn as 6, the most that 200 training rows can carry",)
