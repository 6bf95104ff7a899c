import numpy as np
import pytest

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.families.base import CALIBRATION, TRAIN, Rows
from sandmle.authoring.procedural.heads import Head, Realised, Scene, head_for
from sandmle.authoring.procedural.media import Board
from sandmle.authoring.procedural.strategist import make_plan
from sandmle.records import PredictionKind
from sandmle.seeds import load_seed, seed_ids


def plan_of(seed: str) -> TaskPlan:
    return make_plan(load_seed(seed), 0, version="test", difficulty="medium", attempt=0)


def realised(plan: TaskPlan, n: int = 4000) -> tuple[Head, Realised]:
    rng = np.random.default_rng(0)
    head = head_for(plan)
    rows = Rows(part=np.where(np.arange(n) < 200, TRAIN, CALIBRATION), entity=np.full(n, -1), day=np.zeros(n))
    rows = rows.split(plan.n_pieces)
    signal = rng.normal(size=(rows.n, head.n_outputs))
    return head, head.realise(signal, rng.normal(size=signal.shape), rng, rows)


def scene_of(plan: TaskPlan, n_rows: int) -> Scene:
    names = np.array([[f"{row}.{at}" for at in range(plan.n_pieces)] for row in range(n_rows)], dtype=object)
    board = Board.draw(np.random.default_rng(1), n_rows, plan.grid, (12, 12), is_round=plan.is_round)
    return Scene(n_rows, names, board)


@pytest.mark.parametrize("seed", [*seed_ids()[::4], "hubmap-kidney-segmentation", "kuzushiji-recognition"])
def test_oracle_predicts_better_than_the_dummy(seed: str) -> None:
    plan = plan_of(seed)
    head, found = realised(plan)
    if plan.target.kind is PredictionKind.PERMUTATION:
        assert np.corrcoef(found.oracle[:, 0], found.y[:, 0])[0, 1] > 0.8
        return
    targets = np.eye(head.n_levels())[found.y] if head.mode == "classes" else found.y
    dummy = targets.mean(axis=0, keepdims=True) if plan.n_pieces > 1 else head.dummy(found.y)
    assert np.mean(np.square(found.oracle - targets)) < 0.7 * np.mean(np.square(dummy - targets))


@pytest.mark.parametrize("seed", [*seed_ids()[::4], "hubmap-kidney-segmentation", "kuzushiji-recognition"])
def test_cells_stand_in_the_columns_of_the_submission(seed: str) -> None:
    plan = plan_of(seed)
    head, found = realised(plan, 400)
    scene = scene_of(plan, 400)
    for option in head.options(found.y):
        assert tuple(head.decode_rows(found.oracle, option, scene)) == plan.target.columns
    for option in head.constant_options(found.y):
        assert {len(cells) for cells in head.constant_rows(found.y, option, scene).values()} == {400}
    assert tuple(head.answer_rows(found.y, scene)) == plan.target.columns


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


def test_orders_name_every_piece_once() -> None:
    plan = plan_of("AI4Code")
    head, found = realised(plan, 50)
    scene = scene_of(plan, 50)
    for row, cell in enumerate(head.answer_rows(found.y, scene)[plan.target.columns[0]]):
        assert sorted(cell.split()) == sorted(scene.names[row])  # type: ignore[index]


def test_a_span_is_one_piece_or_none() -> None:
    plan = plan_of("tensorflow2-question-answering")
    head, found = realised(plan, 2000)
    cells = head.answer_rows(found.y, scene_of(plan, 2000))[plan.target.columns[0]]
    assert 0.15 < np.mean([cell == "" for cell in cells]) < 0.5
    assert found.y.reshape(-1, plan.n_pieces).sum(axis=1).max() == 1
