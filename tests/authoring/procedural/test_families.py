import numpy as np
import pytest

from sandmle.authoring.procedural.families import FAMILIES, Context, Rows
from sandmle.authoring.procedural.families.base import CALIBRATION, TEST, TRAIN, Insight
from sandmle.authoring.procedural.words import Pool, vocabularies, vocabulary_of

NAMES = sorted(FAMILIES)
REAL = [name for name in NAMES if not name.startswith("single_")]


def rows(n: int = 600) -> Rows:
    rng = np.random.default_rng(0)
    part = np.repeat([TRAIN, TEST, CALIBRATION], n // 3)
    return Rows(part=part, entity=rng.integers(40, size=n), day=np.floor(rng.uniform(0, 700, n)))


def drawn(name: str, domain: str = "retail") -> tuple[Insight, Context]:
    rng = np.random.default_rng(1)
    pool = Pool(vocabulary_of(domain), rng)
    context = Context(pool=pool, n_groups=12, entity_column="", image_shape=(16, 16, 3), trace_length=32)
    return FAMILIES[name].draw(rng, context), context


@pytest.mark.parametrize("domain", [vocabulary.domain for vocabulary in vocabularies()])
@pytest.mark.parametrize("name", NAMES)
def test_every_family_can_be_drawn_in_every_domain(name: str, domain: str) -> None:
    insight, _ = drawn(name, domain)
    assert insight.family == name
    assert insight.words.endswith(".")


@pytest.mark.parametrize("name", REAL)
def test_features_are_of_about_unit_scale(name: str) -> None:
    insight, _ = drawn(name)
    sample = FAMILIES[name].sample(insight, np.random.default_rng(2), rows())
    features = FAMILIES[name].features(insight, {**sample.columns, **sample.latents})
    assert features.shape[0] == 600
    assert np.isfinite(features).all()
    assert (np.abs(features.mean(axis=0)) < 0.6).all()
    assert ((features.std(axis=0) > 0.4) & (features.std(axis=0) < 2.0)).all()


@pytest.mark.parametrize("name", [n for n in REAL if FAMILIES[n].medium == "tabular"])
def test_missing_cells_give_missing_features_not_wrong_ones(name: str) -> None:
    insight, _ = drawn(name)
    sample = FAMILIES[name].sample(insight, np.random.default_rng(2), rows())
    before = FAMILIES[name].features(insight, sample.columns)
    spoilt = dict(sample.columns)
    for spec in insight.columns:
        column = spoilt[spec.name].astype(float) if spec.type == "number" else spoilt[spec.name].copy()
        column[:30] = np.nan if spec.type == "number" else np.datetime64("NaT") if spec.type == "datetime" else ""
        spoilt[spec.name] = column
    after = FAMILIES[name].features(insight, spoilt)
    assert np.isnan(after[:30]).any(axis=1).all()
    if name != "relative_to_group":  # its groups lose members
        np.testing.assert_array_equal(after[30:], before[30:])


@pytest.mark.parametrize("name", REAL)
def test_samples_follow_from_the_generator_alone(name: str) -> None:
    insight, _ = drawn(name)
    first = FAMILIES[name].sample(insight, np.random.default_rng(3), rows())
    second = FAMILIES[name].sample(insight, np.random.default_rng(3), rows())
    for key, values in first.columns.items():
        np.testing.assert_array_equal(values, second.columns[key])
    assert first.sentences == second.sentences


def test_ratio_is_hidden_from_its_columns() -> None:
    insight, _ = drawn("ratio")
    sample = FAMILIES["ratio"].sample(insight, np.random.default_rng(2), rows(3000))
    ratio = FAMILIES["ratio"].features(insight, sample.columns)[:, 0]
    for values in sample.columns.values():
        assert abs(np.corrcoef(np.log(values), ratio)[0, 1]) < 0.5


@pytest.mark.parametrize("domain", [vocabulary.domain for vocabulary in vocabularies()])
def test_vocabularies_hold_no_word_twice(domain: str) -> None:
    words = vocabulary_of(domain)
    kinds = ("numbers", "dates", "categories", "codes", "groups", "places_columns", "traces")
    names = [entry[0] for kind in kinds for entry in getattr(words, kind)]
    targets = words.targets
    names += [
        entry[0] for kind in ("binary", "value", "ordinal", "classes", "labels") for entry in getattr(targets, kind)
    ]
    names += [entity.id for entity in words.entities]
    assert len(set(names)) == len(names)
    labels = {label for kind in (targets.classes, targets.labels) for _, _, values in kind for label in values}
    assert not labels & set(names)
    assert not any(" " in label for label in labels)
