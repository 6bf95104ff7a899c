import numpy as np
import pytest

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import CALIBRATION, TRAIN, Rows
from sandmle.authoring.procedural.heads import head_for
from sandmle.authoring.procedural.strategist import make_plan
from sandmle.seeds import load_seed, seed_ids


def plan_of(seed: str) -> TaskPlan:
    return make_plan(load_seed(seed), 0, version="test", difficulty="medium", attempt=0)


def realised(plan: TaskPlan, n: int = 4000):
    rng = np.random.default_rng(0)
    head = head_for(plan)
    rows = Rows(part=np.where(np.arange(n) < 200, TRAIN, CALIBRATION), entity=np.full(n, -1), day=np.zeros(n))
    signal = rng.normal(size=(n, head.n_outputs))
    return head, head.realise(signal, rng.normal(size=signal.shape), rng, rows)


@pytest.mark.parametrize("seed", seed_ids()[::4])
def test_oracle_predicts_better_than_the_dummy(seed: str) -> None:
    head, found = realised(plan_of(seed))
    targets = np.eye(head.n_levels())[found.y] if head.mode == "classes" else found.y
    dummy = head.dummy(found.y)
    assert np.mean(np.square(found.oracle - targets)) < 0.6 * np.mean(np.square(dummy - targets))


@pytest.mark.parametrize("seed", seed_ids()[::4])
def test_cells_stand_in_the_columns_of_the_submission(seed: str) -> None:
    plan = plan_of(seed)
    head, found = realised(plan, 400)
    for option in head.options(found.y):
        assert tuple(head.decode(found.oracle, option)) == plan.target.columns
    assert tuple(head.answers(found.y)) == plan.target.columns


def test_labels_have_the_wanted_shares() -> None:
    plan = plan_of("rsna-breast-cancer-detection")
    _, found = realised(plan, 20000)
    assert np.mean(found.y == 1) == pytest.approx(plan.label_shares[1], abs=0.02)


def test_shares_sum_to_exactly_one() -> None:
    plan = plan_of("hms-harmful-brain-activity-classification")
    head, found = realised(plan, 500)
    cells = head.decode(found.oracle, 0.0)
    total = np.round(sum(cells.values()), 6)
    assert (total == 1.0).all()
