"""Advantages and weights: the cases of public trainers, and TRL's own numbers (see test_trl.py)."""

import math

import numpy as np
import pytest

from sandmle.errors import ConfigError
from sandmle.training.advantages import group_advantages, row_weights

ONE = ["a"] * 8


@pytest.mark.parametrize("reward", [0.35, 0.0])
def test_t01_equal_rewards_give_exactly_nothing(reward: float) -> None:
    result = group_advantages([reward] * 8, ONE)
    assert result.values == (0.0,) * 8
    assert (result.n_groups, result.n_equal, result.n_small) == (1, 1, 0)
    assert result.has_signal == (False,) * 8
    assert result.group_std == 0.0


def test_t02_rounding_residue_never_blows_up() -> None:
    rewards = [float(np.float32(0.35))] * 7 + [float(np.float32(-0.25))]
    result = group_advantages(rewards, ONE)
    assert max(abs(value) for value in result.values) <= math.sqrt(7)
    assert result.values[7] < -2
    # Equal up to rounding is equal.
    nearly = [0.1 + 0.2, 0.3] * 4
    assert len(set(nearly)) == 2
    assert group_advantages(nearly, ONE).values == (0.0,) * 8


def test_t11_groups_are_normalised_each_by_itself_also_interleaved() -> None:
    assert group_advantages([0, 0, 1, 1], ["a", "a", "b", "b"]).values == (0.0,) * 4
    assert group_advantages([0, 1, 0, 1], ["a", "b", "a", "b"]).values == (0.0,) * 4
    mixed = group_advantages([0.0, 5.0, 1.0, 7.0], ["a", "b", "a", "b"])
    assert mixed.values[0] == pytest.approx(-mixed.values[2])
    assert mixed.values[1] == pytest.approx(-mixed.values[3])


def test_t17_faults_of_the_machine_are_no_zeros() -> None:
    result = group_advantages([0.0, 1.0, None, None], ["a"] * 4)
    alone = group_advantages([0.0, 1.0], ["a"] * 2)
    assert result.values[:2] == alone.values
    assert result.values[2:] == (0.0, 0.0)
    assert result.is_compared == (True, True, False, False)
    small = group_advantages([0.7, None, None, 0.1, 0.2], ["a", "a", "a", "b", "b"])
    assert (small.n_groups, small.n_small) == (2, 1)
    assert small.is_compared == (False, False, False, True, True)


def test_no_reward_at_all() -> None:
    result = group_advantages([None, None], ["a", "a"])
    assert result.values == (0.0, 0.0)
    assert result.group_std is None


def test_what_is_no_reward_is_refused() -> None:
    with pytest.raises(ConfigError, match="finite"):
        group_advantages([math.nan, 1.0], ["a", "a"])
    with pytest.raises(ConfigError, match="2 rewards for 1"):
        group_advantages([1.0, 1.0], ["a"])


def test_t05_a_masked_row_leaves_numerator_and_denominator() -> None:
    assert row_weights([4, 0]) == (1.0, 0.0)
    assert row_weights([4, 0], by_token=True) == (1.0, 0.0)
    assert row_weights([1, 3]) == (0.5, 0.5)
    assert row_weights([1, 3], by_token=True) == (0.25, 0.75)
    assert row_weights([0, 0]) == (0.0, 0.0)
