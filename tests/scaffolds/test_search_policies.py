"""Where a search goes on: pure functions of the tree."""

import itertools
from collections import Counter

import pytest

from sandmle.records import Direction
from sandmle.scaffolds.search.base import Move, SearchPolicy, dice_of, normalised, pick_softly
from sandmle.scaffolds.search.evolutionary import EvolutionarySearch
from sandmle.scaffolds.search.greedy import GreedySearch
from sandmle.scaffolds.search.mcts import MonteCarloSearch
from sandmle.scaffolds.search.memory import complexity_of, remembered
from sandmle.scaffolds.search.tree import Tree, chains_of
from tests.scaffolds.searching import tree_of

DICE = dice_of(3)


def grown(policy: SearchPolicy, n_nodes: int, score: dict[int, float | None] | None = None) -> Tree:
    """Lets a policy grow a tree whose node i scores i, but for those that are given."""
    words: list[tuple[str, tuple[int, ...], float | None]] = []
    for number in range(n_nodes):
        move = policy.choose(tree_of(words), DICE)  # type: ignore[arg-type]
        words.append((move.operator, move.parents, (score or {}).get(number, float(number))))
    return tree_of(words)  # type: ignore[arg-type]


def test_greedy_drafts_then_improves_the_best() -> None:
    tree = grown(GreedySearch(num_drafts=3, debug_prob=0.5), 5, {1: 9.0})
    assert [(node.operator, node.parents) for node in tree.nodes] == [
        ("draft", ()),
        ("draft", ()),
        ("draft", ()),
        ("improve", (1,)),
        ("improve", (1,)),
    ]


def test_greedy_follows_the_direction_of_the_task() -> None:
    words = [("draft", (), 3.0), ("draft", (), 1.0), ("draft", (), 2.0)]
    policy = GreedySearch(num_drafts=3)
    assert policy.choose(tree_of(words, Direction.MINIMIZE), DICE) == Move("improve", (1,))
    assert policy.choose(tree_of(words, Direction.MAXIMIZE), DICE) == Move("improve", (0,))


def test_greedy_mends_leaves_up_to_a_depth_and_drafts_when_nothing_works() -> None:
    policy = GreedySearch(num_drafts=1, debug_prob=1.0, max_debug_depth=2)
    tree = grown(policy, 5, dict.fromkeys(range(5)))
    assert [(node.operator, node.parents) for node in tree.nodes] == [
        ("draft", ()),
        ("debug", (0,)),
        ("debug", (1,)),
        ("draft", ()),
        ("debug", (3,)),
    ]


def test_greedy_mends_with_its_probability() -> None:
    tree = tree_of([("draft", (), 1.0), ("draft", (), None)])
    policy = GreedySearch(num_drafts=2, debug_prob=0.3)
    counts = Counter(policy.choose(tree, dice_of(seed)).operator for seed in range(400))
    assert 0.22 < counts["debug"] / 400 < 0.38


def test_mcts_expands_fully_and_mends_at_once() -> None:
    tree = grown(MonteCarloSearch(num_children=3, uct_c=0.0, max_debug_depth=2), 8, {1: None, 2: None, 3: None, 4: 0.5})
    assert [(node.operator, node.parents) for node in tree.nodes] == [
        ("draft", ()),
        ("draft", ()),
        ("debug", (1,)),
        ("debug", (2,)),  # given up after two repairs
        ("draft", ()),
        ("improve", (4,)),  # the best of the two that work, three times
        ("improve", (4,)),
        ("improve", (4,)),
    ]


def test_mcts_turns_errors_before_it_brings_them_between_0_and_1() -> None:
    words = [("draft", (), 30.0), ("draft", (), 10.0), ("draft", (), 20.0)]
    policy = MonteCarloSearch(num_children=3, uct_c=0.0)
    assert policy.choose(tree_of(words, Direction.MINIMIZE), DICE) == Move("improve", (1,))
    assert normalised([-30.0, -10.0, -20.0]) == [0.0, 1.0, 0.5]
    assert normalised([2.0, 2.0]) == [0.5, 0.5]
    assert normalised([]) == []


def test_mcts_explores_what_was_seldom_visited() -> None:
    words = [("draft", (), 1.0), ("draft", (), 0.9), ("improve", (0,), 0.0), ("improve", (0,), 0.0)]
    assert MonteCarloSearch(num_children=2, uct_c=0.0).choose(tree_of(words), DICE) == Move("improve", (1,))
    words = [("draft", (), 1.0), ("draft", (), 0.9), ("improve", (0,), 1.0), ("improve", (0,), 1.0)]
    assert MonteCarloSearch(num_children=2, uct_c=0.0).choose(tree_of(words), DICE) == Move("improve", (2,))
    assert MonteCarloSearch(num_children=2, uct_c=9.0).choose(tree_of(words), DICE) == Move("improve", (1,))


def test_mcts_leaves_dead_ends_and_drafts_anew() -> None:
    words = [("draft", (), 1.0), ("improve", (0,), None)]
    policy = MonteCarloSearch(num_children=1, max_debug_depth=0)
    assert policy.choose(tree_of(words), DICE) == Move("draft")


def test_evolution_fills_the_islands_then_improves_and_crosses() -> None:
    policy = EvolutionarySearch(num_islands=2, num_drafts=2, individuals_per_generation=3, crossover_prob=1.0)
    tree = grown(policy, 16)
    operators = [node.operator for node in tree.nodes]
    assert operators[:4] == ["draft"] * 4
    assert set(operators[4:10]) == {"improve"}  # generations 1 and 2
    assert "crossover" in operators[10:]
    for node in tree.nodes:
        assert len(node.parents) == {"draft": 0, "improve": 1, "crossover": 2}[node.operator]
        assert len(set(node.parents)) == len(node.parents)
    islands: list[set[int]] = [{0, 2}, {1, 3}]
    for node in tree.nodes[4:]:  # without migration the parents of a script are of one island, and it joins that one
        home = next(island for island in islands if set(node.parents) <= island)
        home.add(node.index)


def test_evolution_takes_only_what_is_as_good_as_the_mean() -> None:
    policy = EvolutionarySearch(num_drafts=2, crossover_prob=0.0, temperature=0.01)
    words = [("draft", (), 1.0), ("draft", (), 3.0), ("improve", (1,), 0.0)]
    parents = {policy.choose(tree_of(words), dice_of(seed)).parents for seed in range(50)}
    assert parents == {(1,)}
    words = [("draft", (), 1.0), ("draft", (), 3.0), ("improve", (1,), 5.0)]
    parents = {policy.choose(tree_of(words), dice_of(seed)).parents for seed in range(50)}
    assert parents == {(2,)}


def test_evolution_mends_at_once_and_drafts_when_all_drafts_failed() -> None:
    policy = EvolutionarySearch(num_drafts=1, max_debug_depth=1)
    assert policy.choose(tree_of([("draft", (), None)]), DICE) == Move("debug", (0,))
    assert policy.choose(tree_of([("draft", (), None), ("debug", (0,), None)]), DICE) == Move("draft")


def test_evolution_lets_the_best_migrate() -> None:
    policy = EvolutionarySearch(
        num_islands=2,
        num_drafts=1,
        individuals_per_generation=1,
        crossover_prob=1.0,
        num_generations_till_crossover=0,
        migration_prob=1.0,
        num_generations_till_migration=1,
    )
    tree = tree_of([("draft", (), 1.0), ("draft", (), 2.0)])
    assert policy.choose(tree, DICE).operator == "crossover"  # each island has got the other's best
    alone = EvolutionarySearch(num_islands=2, num_drafts=1, crossover_prob=1.0, num_generations_till_crossover=0)
    assert alone.choose(tree, DICE).operator == "improve"


def test_a_full_island_loses_its_weakest() -> None:
    policy = EvolutionarySearch(num_drafts=3, max_island_size=2, crossover_prob=0.0, temperature=100.0)
    tree = tree_of([("draft", (), 2.0), ("draft", (), 1.0), ("draft", (), 3.0)])
    assert {policy.choose(tree, dice_of(seed)).parents for seed in range(60)} == {(0,), (2,)}


@pytest.mark.parametrize(
    "policy", [GreedySearch(), MonteCarloSearch(), EvolutionarySearch(num_islands=2)], ids=["greedy", "mcts", "evo"]
)
def test_the_same_tree_gives_the_same_move(policy: SearchPolicy) -> None:
    broken: dict[int, float | None] = {2: None, 7: None, 11: None}
    first, second = grown(policy, 20, broken), grown(policy, 20, broken)
    assert first.nodes == second.nodes
    for tree in (first, second):
        assert sum(len(chain.nodes) for chain in chains_of(tree)) == 20


def test_soft_picks_are_different_items() -> None:
    for seed in range(20):
        picks = pick_softly([0.0, 1.0, 0.5], 1.0, 2, dice_of(seed)(0))
        assert len(set(picks)) == 2
    counts = Counter(pick_softly([0.0, 1.0], 0.1, 1, dice_of(seed)(0))[0] for seed in range(100))
    assert counts[1] == 100


def test_memory_scopes() -> None:
    tree = tree_of(
        [
            ("draft", (), 1.0),
            ("improve", (0,), None),
            ("debug", (1,), None),
            ("debug", (2,), None),
            ("draft", (), 2.0),
            ("improve", (0,), 3.0),
        ]
    )
    assert remembered(tree, "none", (3,)) == []
    assert remembered(tree, "simple", (3,)) == [0, 4, 5]
    assert remembered(tree, "ancestral", (3,)) == [1, 2]
    assert remembered(tree, "sibling", (0,)) == [5]
    assert remembered(tree, "sibling", ()) == [0, 4]


def test_the_complexity_rises_with_the_children() -> None:
    words: list[tuple[str, tuple[int, ...], float | None]] = [("draft", (), 1.0)]
    seen = []
    for _ in range(5):
        seen.append(complexity_of(tree_of(words), (0,)))  # type: ignore[arg-type]
        words.append(("improve", (0,), 1.0))
    assert seen == ["simple", "simple", "normal", "normal", "complex"]
    assert complexity_of(tree_of([]), ()) == "simple"


def test_the_earliest_of_equals_is_the_best() -> None:
    tree = tree_of([("draft", (), 1.0), ("draft", (), 2.0), ("draft", (), 2.0)])
    assert (tree.best(), tree.to_submit()) == (1, 1)
    assert (tree_of([]).best(), tree_of([]).to_submit()) == (None, None)
    assert all(tree.value(index) >= 1 for index in itertools.islice(tree.good(), 3))
