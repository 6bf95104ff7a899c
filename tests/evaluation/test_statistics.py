import math

import numpy as np
import pytest

from sandmle.evaluation.statistics import (
    Estimate,
    estimate_any_of,
    estimate_attempts,
    estimate_mean,
    estimate_share,
    paired_difference,
    ranks,
    spread,
)


def test_mean_is_over_tasks_of_the_mean_over_attempts() -> None:
    estimate = estimate_mean({"a": [0.0, 1.0], "b": [1.0]})
    assert estimate.mean == 0.75
    assert (estimate.n, estimate.n_tasks) == (3, 2)


def test_standard_error_is_that_of_the_task_means() -> None:
    values = {"a": [0.2, 0.4], "b": [0.5, 0.7], "c": [0.9, 0.9]}
    means = [0.3, 0.6, 0.9]
    assert estimate_mean(values).standard_error == pytest.approx(np.std(means, ddof=1) / math.sqrt(3))


def test_interval_is_seeded_and_independent_of_task_names() -> None:
    values = {str(index): [index / 10] for index in range(8)}
    assert estimate_mean(values, rng_seed=1) == estimate_mean(values, rng_seed=1)
    assert estimate_mean(values, rng_seed=1) != estimate_mean(values, rng_seed=2)
    renamed = {f"task-{key}": value for key, value in values.items()}
    assert estimate_mean(renamed) == estimate_mean(values)


def test_interval_does_not_shrink_when_attempts_repeat_themselves() -> None:
    once = {str(index): [index / 10] for index in range(10)}
    often = {key: value * 50 for key, value in once.items()}
    assert estimate_mean(often).low == estimate_mean(once).low
    assert estimate_mean(often).n == 500


def test_interval_is_close_to_the_t_interval_on_many_normal_tasks() -> None:
    rng = np.random.default_rng(5)
    values = {str(index): [value] for index, value in enumerate(rng.normal(0.5, 0.1, 30))}
    estimate = estimate_mean(values)
    assert estimate.mean is not None
    assert estimate.low is not None
    assert estimate.standard_error is not None
    assert estimate.mean - estimate.low == pytest.approx(2.045 * estimate.standard_error, rel=0.08)


@pytest.mark.parametrize("n_tasks", [6, 20])
def test_interval_covers_the_truth_in_about_95_percent_of_runs(n_tasks: int) -> None:
    rng = np.random.default_rng(n_tasks)
    hits = 0
    for repeat in range(200):
        skill = rng.beta(2, 2, n_tasks)
        values = {str(task): list(rng.normal(skill[task], 0.1, 2)) for task in range(n_tasks)}
        estimate = estimate_mean(values, rng_seed=repeat)
        assert estimate.low is not None
        assert estimate.high is not None
        hits += estimate.low <= 0.5 <= estimate.high
    assert 0.90 <= hits / 200 <= 0.99


def test_q04_one_value_has_no_error_and_no_interval() -> None:
    for estimate in (estimate_mean({"a": [0.7]}), estimate_mean({"a": [0.7, 0.9]}), estimate_attempts([0.7])):
        assert (estimate.standard_error, estimate.low, estimate.high) == (None, None, None)
        assert estimate.reason


def test_q04_three_repeats_have_mean_and_standard_error() -> None:
    estimate = estimate_attempts([0.1, 0.2, 0.3])
    assert estimate.mean == pytest.approx(0.2)
    assert estimate.standard_error == pytest.approx(0.1 / math.sqrt(3))
    assert estimate.n == 3


def test_q04_a_failed_repeat_counts_as_failure_and_not_as_absent() -> None:
    estimate = estimate_attempts([0.4, 0.4, 0.4, None])
    assert estimate.mean == pytest.approx(0.3)
    assert estimate.n == 4
    assert estimate.standard_error == pytest.approx(0.1)


def test_equal_tasks_have_no_interval_rather_than_one_of_width_zero() -> None:
    estimate = estimate_mean({"a": [0.5], "b": [0.5]})
    assert estimate.mean == 0.5
    assert estimate.low is None
    assert "same value" in estimate.reason


def test_a_share_of_zero_or_one_keeps_room_for_doubt() -> None:
    none = estimate_share({str(index): [False, False] for index in range(12)})
    every = estimate_share({str(index): [True, True] for index in range(12)})
    assert (none.mean, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 12))
    assert every.mean == every.high == 1.0
    assert every.low == pytest.approx(0.025 ** (1 / 12))


def test_nothing_gives_none_with_a_reason() -> None:
    assert estimate_mean({}) == Estimate(mean=None, n=0, n_tasks=0, reason="no value")
    assert estimate_mean({"a": []}).mean is None
    assert estimate_attempts([]).mean is None
    assert spread([]).mean is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_q01_a_value_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        estimate_mean({"a": [0.5], "b": [bad]})


def test_paired_difference_uses_common_tasks_only() -> None:
    first = {"a": [0.5], "b": [0.7], "c": [0.2], "only": [1.0]}
    second = {"a": [0.4], "b": [0.7], "c": [0.3], "other": [0.0]}
    difference = paired_difference(first, second)
    assert (difference.wins, difference.ties, difference.losses) == (1, 1, 1)
    assert difference.estimate.n_tasks == 3
    assert difference.estimate.mean == pytest.approx(0.0)


def test_paired_difference_sees_what_two_intervals_hide() -> None:
    hard = {str(index): [index / 12] for index in range(12)}
    better = {key: [value[0] + 0.05 + 0.01 * (int(key) % 2)] for key, value in hard.items()}
    low, high = estimate_mean(better).low, estimate_mean(hard).high
    assert low is not None
    assert high is not None
    assert low < high
    difference = paired_difference(better, hard).estimate
    assert difference.low is not None
    assert difference.low > 0.04


def test_paired_difference_without_common_tasks_is_unknown() -> None:
    difference = paired_difference({"a": [1.0]}, {"b": [1.0]})
    assert difference.estimate.mean is None


def test_q05_ties_share_a_rank_and_the_next_is_skipped() -> None:
    assert ranks([0.9, 0.8, 0.8, 0.7]) == [1, 2, 2, 4]
    assert ranks([0.7, None, 0.8, 0.8, 0.9]) == [4, None, 2, 2, 1]
    assert ranks([math.nan, 0.1]) == [None, 1]
    assert ranks([0.1 + 0.2, 0.3]) == [1, 1]


def test_spread_gives_mean_median_and_tail() -> None:
    summary = spread([float(value) for value in range(101)])
    assert (summary.n, summary.mean, summary.median, summary.p95, summary.total) == (101, 50.0, 50.0, 95.0, 5050.0)


def test_any_of_k_is_the_mean_over_all_choices_of_k() -> None:
    values = {"a": [True, False, False, False], "b": [False] * 4, "c": [True] * 4, "d": [True, True, False, False]}
    assert estimate_any_of(values, 1).mean == pytest.approx((0.25 + 0 + 1 + 0.5) / 4)
    assert estimate_any_of(values, 2).mean == pytest.approx((0.5 + 0 + 1 + (1 - 1 / 6)) / 4)
    assert estimate_any_of(values, 4).mean == pytest.approx(3 / 4)
    assert estimate_any_of(values, 4).low is not None


def test_any_of_k_needs_k_attempts_and_is_never_sure() -> None:
    assert estimate_any_of({"a": [True], "b": [True, False]}, 2).n_tasks == 1
    none = estimate_any_of({name: [False, False] for name in "abcd"}, 2)
    assert none.mean == 0.0
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 4))
    assert estimate_any_of({}, 1).mean is None
    with pytest.raises(ValueError, match="at least one attempt"):
        estimate_any_of({"a": [True]}, 0)
