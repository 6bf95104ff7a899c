import json
from pathlib import Path

import pytest

from sandmle.errors import BundleError
from sandmle.evaluation.taskset import build_card, card_markdown
from sandmle.evaluation.taskset.card import distribution, family_of
from sandmle.evaluation.taskset.descriptions import similarity_of
from sandmle.tasks import Bundle
from tests import bundles


def test_entropy_is_that_of_the_shares() -> None:
    even = distribution(["a", "b", "c", "d"])
    assert (even.entropy_bits, even.highest_bits) == (2.0, 2.0)
    one = distribution(["a"] * 9)
    assert (one.entropy_bits, one.highest_bits) == (0.0, 0.0)
    assert list(distribution(["b", "a", "b", "c"]).counts) == ["b", "a", "c"]


def test_near_duplicates_are_counted_and_named() -> None:
    base = "the quick brown fox jumps over the lazy dog while many small birds sing in the old trees"
    found = similarity_of(
        {"x": base, "y": base + " today", "z": "nothing here is like any of those other words at all"}
    )
    assert found.n_near == 2
    assert (found.closest[0].first, found.closest[0].second) == ("x", "y")
    assert found.closest[0].similarity > 0.9
    assert found.nearest.n == 3


def test_numbers_alone_do_not_make_descriptions_differ() -> None:
    text = "this file has {} rows and the target lies between {} and {} in every one of them"
    found = similarity_of({"a": text.format(1, 2, 3), "b": text.format(44, 55, 66)})
    assert found.closest[0].similarity == 1.0


def test_a_folder_of_tasks_has_a_card_without_a_funnel(tmp_path: Path) -> None:
    for kind in ("binary", "text"):
        bundles.saved(bundles.draft(kind), tmp_path)
    card = build_card(tmp_path)
    assert card.funnel is None
    assert card.n_tasks == 2
    oracle = next(each for each in card.reach if each.tier == "oracle")
    assert oracle.shares == {"none": 0.0, "bronze": 0.0, "silver": 0.0, "gold": 1.0}
    assert sum(next(each for each in card.reach if each.tier == "weak").shares.values()) == pytest.approx(1, abs=1e-3)
    text = card_markdown(card)
    assert "## Funnel" not in text
    assert "| hand-text-0 |" in text
    assert build_card(tmp_path) == card


def test_broken_tasks_and_lines_are_named_and_left_out(tmp_path: Path) -> None:
    bundles.saved(bundles.draft("binary"), tmp_path / "tasks")
    (tmp_path / "tasks" / "bad").mkdir()
    (tmp_path / "tasks" / "bad" / "task.yaml").write_text("schema_version: 9\n")
    (tmp_path / "funnel.jsonl").write_text('{"half": 1}\n')
    card = build_card(tmp_path)
    assert card.n_tasks == 1
    assert len(card.problems) == 2
    assert "funnel.jsonl, line 1" in card.problems[0]
    with pytest.raises(BundleError, match="no folder"):
        build_card(tmp_path / "none")


@pytest.mark.parametrize("plan", [None, "no json", json.dumps({"insights": []})])
def test_a_task_without_a_usable_plan_has_no_known_family(plan: str | None, tmp_path: Path) -> None:
    bundle: Bundle = bundles.saved(bundles.draft("binary"), tmp_path)
    if plan is not None:
        (bundle.root / "provenance" / "plan.json").write_text(plan)
    assert family_of(bundle) == "unknown"
    (bundle.root / "provenance" / "plan.json").write_text(
        json.dumps({"insights": [{"family": "ratio", "share": 0.4}, {"family": "checker", "share": 0.6}]})
    )
    assert family_of(bundle) == "checker"
