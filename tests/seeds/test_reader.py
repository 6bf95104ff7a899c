import re

import pytest

from sandmle.errors import SeedError
from sandmle.grading.metrics import get_metric
from sandmle.records import Modality, PredictionKind, SeedRecord, StructuralDNA, TaskKind
from sandmle.seeds import catalogue, load_record, load_seed, seed_ids


def test_counts():
    records = catalogue()
    assert len(records) == 82
    assert sum(record.is_lite for record in records) == 22
    assert sum(record.split == "dev" for record in records) == 7
    assert len(seed_ids()) == 60
    assert len(set(seed_ids())) == 60


def test_lite_is_the_low_split():
    assert {record.id for record in catalogue() if record.is_lite} == {
        record.id for record in catalogue() if record.split == "low"
    }


def test_every_seed_loads():
    for seed_id in seed_ids():
        assert load_seed(seed_id).id == seed_id


@pytest.mark.parametrize("record", [record for record in catalogue() if record.is_lite], ids=lambda record: record.id)
def test_lite_is_refused_as_a_seed(record: SeedRecord):
    assert load_record(record.id) is record
    with pytest.raises(SeedError, match=r"MLE-bench-Lite.*seeds list") as caught:
        load_seed(record.id)
    assert record.id in str(caught.value)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("champs-scalar-couplin", "champs-scalar-coupling"),
        ("ai4code", "AI4Code"),
        ("leaf", "leaf-classification"),
        ("Petfinder-Pawpularity", "petfinder-pawpularity-score"),
    ],
)
def test_unknown_id_names_the_nearest(given: str, meant: str):
    for load in (load_record, load_seed):
        with pytest.raises(SeedError, match=f"did you mean '{meant}'"):
            load(given)


def test_unknown_id_without_a_near_one_points_to_the_list():
    with pytest.raises(SeedError, match="seeds list"):
        load_record("zzzzzzzz")


# Words of the shape of data and tasks, which competitions' names and columns use too.
_STRUCTURAL_WORDS = {
    word for kind in (Modality, TaskKind, PredictionKind) for value in kind for word in value.value.split("_")
} | {
    "maximize",
    "minimize",
    "none",
    "mild",
    "strong",
    "classification",
    "probability",
    "label",
    "score",
    "target",
    "global",
}


def _words(text: str) -> set[str]:
    return {word for word in re.split(r"[^a-z0-9]+", text.lower()) if len(word) > 2} - _STRUCTURAL_WORDS


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _strings(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("record", catalogue(), ids=lambda record: record.id)
def test_dna_holds_no_word_of_the_domain(record: SeedRecord):
    domain = _words(record.id)
    for column in (*record.submission_columns, record.id_column or ""):
        domain |= _words(column)
    dna = {word for text in _strings(record.dna.to_dict()) for word in _words(text.replace("_", " "))}
    assert not domain & dna


def test_dna_metrics_exist_with_the_same_direction():
    for record in catalogue():
        metric = get_metric(record.dna.metric)
        assert metric.direction is record.dna.direction, record.id


@pytest.mark.parametrize("record", catalogue(), ids=lambda record: record.id)
def test_dna_agrees_with_the_facts(record: SeedRecord):
    dna: StructuralDNA = record.dna
    if record.task_kind.startswith("binary classification"):
        assert dna.task_kind is TaskKind.BINARY
        assert dna.n_classes == 2
    if found := re.fullmatch(r"multi(?:class|label) classification[^(]*\((\d+)(\+?)[^)]*\)", record.task_kind):
        least, is_bound = int(found[1]), bool(found[2])
        assert dna.n_classes is not None
        assert dna.n_classes >= least if is_bound else dna.n_classes == least
    if found := re.search(r"multi-target regression \((\d+)\)", record.task_kind):
        assert dna.n_targets == int(found[1])
    if "ordinal" in record.task_kind:
        assert dna.task_kind is TaskKind.ORDINAL
    if dna.prediction_kind in (PredictionKind.CLASS_PROBABILITIES, PredictionKind.LABEL_PROBABILITIES):
        assert dna.n_targets == dna.n_classes
    facts = " ".join(record.structure)
    assert dna.groups or "groups: patient" not in facts
    assert (dna.hierarchy is True) or "hierarchical" not in facts
    assert dna.imbalance != "none" or not re.search(r"imbalance|long tail", facts)
    assert dna.missing_values != "none" or not re.search(r"missing (values|sensors|time)", facts)
    assert (dna.direction == "minimize") == ((dna.leaderboard.gold or 0) < (dna.leaderboard.median or 0)), (
        "the leaderboard tells the same direction"
    )


def test_records_survive_a_round_trip():
    for record in catalogue():
        assert SeedRecord.model_validate_json(record.to_json()) == record
