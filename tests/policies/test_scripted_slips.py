from pathlib import Path

import pytest

from sandmle.policies.scripted.brief import Brief
from sandmle.policies.scripted.moves import Desk
from sandmle.policies.scripted.slips import draw_slip
from tests.bundles import draft, saved
from tests.policies.workbench import Played, play


def desk(rng_seed: int) -> Desk:
    return Desk(Brief("", "rmse", "rmse", False), rng_seed)


def test_dice_depend_on_seed_and_purpose():
    assert desk(1).dice("a").random() == desk(1).dice("a").random()
    assert desk(1).dice("a").random() != desk(1).dice("b").random()
    assert desk(1).dice("a").random() != desk(2).dice("a").random()


def test_slips_come_at_their_rate():
    code = 'np.zeros(3)\nto_csv("submission.csv", index=False)'
    drawn = [draw_slip(desk(seed), "x", 0.3, code, None) for seed in range(400)]
    assert 80 < sum(slip is not None for slip in drawn) < 160
    assert {slip.name for slip in drawn if slip} == {"typo", "index column"}
    assert all(slip.code != code for slip in drawn if slip)


def test_code_without_a_place_for_a_slip():
    assert draw_slip(desk(0), "x", 1.0, "pass", None) is None


def _game(tmp_path: Path, name: str, sign: str, kind: str = "binary") -> Played:
    """Plays seeds until one in which an observation shows the sign of a slip."""
    bundle = saved(draft(kind), tmp_path / "tasks")
    for seed in range(60):
        game = play(bundle, name, tmp_path / f"work{seed}", rng_seed=seed)
        if any(sign in observation for observation in game.observations):
            return game
    raise AssertionError(f"no attempt of {name} shows {sign!r}")


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("sample", "saved index"),
        ("linear", "KeyError"),
        ("linear", "AttributeError"),
        ("linear", "NaN"),
        ("boosted", "too slow"),
        ("average", "Nothing was run"),
    ],
)
def test_each_mistake_is_made_and_mended(tmp_path: Path, name: str, sign: str):
    game = _game(tmp_path, name, sign)
    at = next(i for i, observation in enumerate(game.observations) if sign in observation)
    assert game.grade is not None
    assert game.grade.is_valid
    assert len(game.observations) > at + 1
