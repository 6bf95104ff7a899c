import numpy as np
import pytest

from sandmle.authoring.procedural.author import Draw, ProceduralAuthor
from sandmle.authoring.procedural.dataset import CALIBRATION, TEST, TRAIN
from sandmle.authoring.procedural.encoding import encode_raw
from sandmle.authoring.procedural.ladder import climb
from sandmle.records import Tier
from sandmle.seeds import load_seed


@pytest.fixture(scope="module")
def draw() -> Draw:
    return ProceduralAuthor().draw(load_seed("spaceship-titanic"), 11)


def test_nobody_is_graded_on_the_calibration_rows(draw: Draw) -> None:
    dataset = draw.dataset
    parts = [set(dataset.where(part).tolist()) for part in (TRAIN, TEST, CALIBRATION)]
    assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]
    assert len(parts[2]) >= 3000
    assert set(draw.order.test.tolist()) == parts[1]


def test_rungs_rise_with_knowledge(draw: Draw) -> None:
    ladder = climb(draw.dataset, 0.5, 0.5)
    best = [ladder.best(tier).score for tier in (Tier.DUMMY, Tier.TUNED, Tier.RULE_AWARE, Tier.ORACLE)]
    assert best == sorted(best)
    assert ladder.best(Tier.DUMMY).standard_error is not None
    assert ladder.best(Tier.ORACLE).standard_error is not None


def test_ladder_is_the_same_twice(draw: Draw) -> None:
    assert climb(draw.dataset, 0.5, 0.5) == climb(draw.dataset, 0.5, 0.5)


def test_no_duplicates_between_train_and_test(draw: Draw) -> None:
    names = [spec.name for spec in draw.dataset.specs]
    cells = np.column_stack([draw.dataset.columns[name].astype(str) for name in names])
    assert len({tuple(row) for row in cells.tolist()}) == len(cells)


def test_n02_no_single_column_comes_near_the_hidden_rule(draw: Draw) -> None:
    dataset = draw.dataset
    train, other = dataset.where(TRAIN), dataset.where(CALIBRATION)
    _, columns = encode_raw(dataset, train, other)
    oracle = dataset.oracle[other][:, 1]
    strength = [abs(np.corrcoef(column, oracle)[0, 1]) for column in columns.T if column.std() > 0]
    assert max(strength) < 0.9


def test_n19_columns_that_count_do_not_stand_out_by_scale(draw: Draw) -> None:
    ranks = []
    author = ProceduralAuthor()
    for number in range(12):
        dataset = author.draw(load_seed("spaceship-titanic"), number).dataset
        counts = {spec.name for insight in dataset.insights for spec in insight.columns}
        numbers = [spec.name for spec in dataset.specs if spec.type == "number"]
        spread = [np.log(np.nanstd(dataset.columns[name].astype(float))) for name in numbers]
        ranks += list(zip(np.argsort(np.argsort(spread)) / len(spread), [n in counts for n in numbers], strict=True))
    rank, telling = np.array(ranks, dtype=float).T
    assert abs(np.corrcoef(rank, telling)[0, 1]) < 0.25
