from pathlib import Path

import pytest

from sandmle.evaluation.taskset import Retrained, retrain, summarize_retraining
from sandmle.evaluation.taskset.retraining import SOLVERS
from sandmle.records import Direction
from tests import bundles


def result(task: str, family: str, order: str, *, levels: tuple[str, str] = ("gold", "gold")) -> Retrained:
    """A result whose solvers come in an order of letters, a the best, with both fits alike."""
    scores = {name: (float(-ord(letter)),) * 2 for name, letter in zip(SOLVERS, order, strict=True)}
    return Retrained(
        task_id=task,
        family=family,
        direction=Direction.MAXIMIZE,
        scores=scores,
        levels=dict.fromkeys(SOLVERS, levels),
    )


def test_solvers_are_trained_twice_and_scored_on_the_same_rows(tmp_path: Path) -> None:
    folders = [
        bundles.saved(bundles.draft(kind), tmp_path).root for kind in ("binary", "regression", "multiclass", "image")
    ]
    results = list(retrain(folders, families={"hand-binary-0": "ratio"}))
    assert results[3] is None
    for found in results[:3]:
        assert found is not None
        assert set(found.scores) == set(SOLVERS)
        for first, second in found.scores.values():
            assert first != second
            assert abs(first - second) < 0.5 * max(abs(first), abs(second))
    assert results[0] is not None
    assert results[0].family == "ratio"
    assert list(retrain(folders[:1], families={"hand-binary-0": "ratio"})) == results[:1]


def test_ranks_within_a_family_and_between_families() -> None:
    summary = summarize_retraining(
        [result("a", "x", "abcdef"), result("b", "x", "abcdef"), result("c", "y", "fedcba"), None]
    )
    assert (summary.n_tasks, summary.n_left_out) == (3, 1)
    assert summary.rank_same_task == 1.0
    assert summary.rank_same_family == 1.0
    assert summary.rank_other_family == -1.0


def test_levels_are_held_against_chance() -> None:
    summary = summarize_retraining([result("a", "x", "abcdef"), result("b", "x", "abcdef", levels=("none", "median"))])
    assert summary.same_level == 0.5
    assert summary.same_medal == 1.0
    assert summary.same_level_by_chance == pytest.approx(0.25)


def test_solvers_that_change_places_are_seen() -> None:
    kept = result("a", "x", "abcdef", levels=("median", "gold"))
    turned = kept.replace(levels={**kept.levels, "linear": ("gold", "bronze")})
    tied = kept.replace(levels={**kept.levels, "linear": ("median", "bronze")})
    assert summarize_retraining([kept, turned, tied]).same_order == pytest.approx(2 / 3, abs=1e-4)


def test_nothing_measured_is_no_number() -> None:
    summary = summarize_retraining([None])
    assert summary.same_medal is None
    assert summary.same_level_by_chance is None
    assert summary.rank_same_task is None
    assert summary.same_order is None
