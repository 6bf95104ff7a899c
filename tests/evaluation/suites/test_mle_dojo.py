"""The MLE-Dojo suite on small data in MLE-Dojo's own layout."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sandmle.errors import ConfigError
from sandmle.evaluation.suites import SuiteOptions
from sandmle.evaluation.suites.mle_dojo import MleDojoSuite, default_ids
from sandmle.evaluation.suites.rules import builtin_rules
from sandmle.evaluation.suites.testing import check_suite
from sandmle.grading import get_metric
from sandmle.seeds import catalogue

BENZ, KOBE = "mercedes-benz-greener-manufacturing", "kobe-bryant-shot-selection"
TRUTH = np.round(np.random.default_rng(3).normal(100, 10, 40), 3)


def table(column: str, values: Any) -> str:
    return f"ID,{column}\n" + "".join(f"{row},{value}\n" for row, value in enumerate(values))


def prepare(root: Path, competition: str, column: str, truth: Any, private: list[float], public: list[float]) -> None:
    folder = root / competition / "data"
    for each in ("public", "private"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    (folder / "public/description.txt").write_text("Predict.\n")
    (folder / "public/sample_submission.csv").write_text(table(column, [0.5] * len(truth)))
    (folder / "private/test_answer.csv").write_text(table(column, truth))
    for name, scores in (("private", private), ("public", public)):
        text = "rank,score\n" + "".join(f"{place + 1},{score}\n" for place, score in enumerate(scores))
        (folder / f"private/{name}_leaderboard.csv").write_text(text)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    prepare(tmp_path, BENZ, "y", TRUTH, [0.9, 0.8, 0.8, 0.5], [0.95, 0.9])
    prepare(tmp_path, KOBE, "shot_made_flag", [0, 1] * 20, [0.1, 0.2, 0.3], [0.6931471805599453, 0.8])
    return tmp_path


def suite_of(data: Path, *competitions: str, **more: Any) -> MleDojoSuite:
    return MleDojoSuite(SuiteOptions(data=data, competitions=competitions, **more))


def test_the_suite_keeps_the_contract(data: Path) -> None:
    check_suite(suite_of(data, BENZ, KOBE, "bioresponse"))


def test_places_count_only_strictly_better_teams(data: Path) -> None:
    suite = suite_of(data, BENZ, KOBE)
    bundles = suite.load().bundles
    perfect = suite.open_grader(bundles[BENZ]).grade(table("y", TRUTH).encode())
    assert [(rank.position, rank.n_teams) for rank in perfect.board_ranks] == [(1, 4), (1, 2)]
    worst = suite.open_grader(bundles[BENZ]).grade(table("y", np.zeros(40)).encode())
    assert [rank.position for rank in worst.board_ranks] == [5, 3]
    half = suite.open_grader(bundles[KOBE]).grade(table("shot_made_flag", [0.5] * 40).encode())
    # log loss 0.6931...: behind all three of the private board, level with the first of the public one
    assert [rank.position for rank in half.board_ranks] == [4, 1]
    assert suite.open_grader(bundles[KOBE]).grade(None).board_ranks == ()


def test_missing_data_are_named_and_the_list_is_labelled(data: Path, tmp_path: Path) -> None:
    tasks = suite_of(data).load()
    assert len(tasks.bundles) + len(tasks.missing) == 62
    assert "the paper does not name its 62" in tasks.notes[0]
    assert "prepare/mle.py" in tasks.missing["bioresponse"]
    assert "give --rules FILE or --grader official" in tasks.missing["sf-crime"]
    (data / BENZ / "data/private/public_leaderboard.csv").unlink()
    assert "public_leaderboard.csv" in suite_of(data, BENZ, KOBE).load().missing[BENZ]
    with pytest.raises(ConfigError, match=r"prepare/mle\.py"):
        suite_of(tmp_path / "nowhere").load()
    with pytest.raises(ConfigError, match="did you mean 'bioresponse'"):
        suite_of(data, "bioresponce").load()


def test_the_official_grader_needs_its_package(data: Path) -> None:
    suite = suite_of(data, BENZ, grader="official")
    with pytest.raises(ConfigError, match="needs the package mledojo"):
        suite.open_grader(suite.load().bundles[BENZ])


def test_the_default_list_is_mle_dojos_catalogue_without_mle_bench() -> None:
    ids = default_ids()
    assert len(ids) == len(set(ids)) == 62
    assert not set(ids) & {record.id for record in catalogue()}
    rules = builtin_rules("mle_dojo")
    assert set(rules) <= set(ids)
    for rule in rules.values():
        assert rule.kind in get_metric(rule.metric).kinds
        get_metric(rule.metric).parameters(rule.metric_params)
