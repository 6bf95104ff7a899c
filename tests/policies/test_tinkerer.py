"""The tinkerer: its scripts fit any table, differ by the dice, and a worse second script is taken back."""

import asyncio

import pytest

from sandmle.grammars import get_grammar
from sandmle.policies import SamplingParams
from sandmle.policies.scripted import open_scripted
from sandmle.policies.scripted.brief import read_brief
from sandmle.policies.scripted.moves import SUBMITTED, Desk
from sandmle.policies.scripted.tinkerer import FEATURES, MODELS, tinkerer_script
from sandmle.records import ActionKind, FinishReason, Message
from tests.bundles import KINDS, draft, saved
from tests.policies.workbench import play

TASK = "# Task\n\nMetric: rmse (lower is better)\n"
WROTE = f"The script ended normally.\n[stdout]\n{SUBMITTED} (9, 2)\nsubmission.csv is there and has the right form."


def script(rng_seed: int, task: str = TASK) -> str:
    return tinkerer_script(Desk(read_brief(task), rng_seed), "first")


def codes(task: str, rng_seed: int, observations: list[str]) -> list[tuple[ActionKind, str]]:
    """Plays an episode with given observations; returns what was done in each turn."""
    policy, rules = open_scripted("tinkerer", "fenced"), get_grammar("fenced")
    transcript = [Message(role="system", content="rules"), Message(role="user", content=task)]
    done: list[tuple[ActionKind, str]] = []
    for observation in [*observations, ""]:
        text = asyncio.run(policy.generate(tuple(transcript), SamplingParams(rng_seed=rng_seed))).text
        action = rules.parse(text, FinishReason.STOP).action
        assert action is not None
        done.append((action.kind, action.code))
        transcript += [Message(role="assistant", content=text), Message(role="user", content=observation)]
    return done


def test_a_script_depends_on_the_dice_and_not_on_the_task() -> None:
    assert script(3) == script(3, "# Another\n\nMetric: accuracy (higher is better)\nColumns: `alpha`, `beta`\n")
    assert len({script(seed) for seed in range(20)}) == 20


def test_every_part_is_drawn_and_every_script_compiles() -> None:
    scripts = [script(seed) for seed in range(120)]
    for text in scripts:
        compile(text, "script", "exec")
        assert text.startswith("# A model of whatever columns the files have.\n")
        assert 1 <= text.count("# Model: ") <= 3
    for feature in FEATURES:
        assert 0.3 < sum(f"# Features: {feature}.\n" in text for text in scripts) / len(scripts) < 0.7
    for model in MODELS:
        assert any(f"# Model: {model}.\n" in text for text in scripts)


@pytest.mark.parametrize("kind", KINDS)
def test_scripts_with_all_kinds_of_draws_make_valid_submissions(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tinkerer")
    bundle = saved(draft(kind), folder / "tasks")
    for rng_seed in range(3):
        game = play(bundle, "tinkerer", folder / f"work-{rng_seed}", rng_seed=rng_seed)
        assert game.grade is not None
        assert game.grade.is_valid
        assert any("whatever columns" in code for code in game.codes)
        assert not any("sample.to_csv" in code and "whatever columns" not in code for code in game.codes)


def test_skill_is_a_matter_of_luck(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("tinkerer")
    bundle = saved(draft("regression"), folder / "tasks")
    games = [play(bundle, "tinkerer", folder / f"work-{seed}", rng_seed=seed) for seed in range(5)]
    assert len({game.grade.score for game in games if game.grade is not None}) >= 4


def scored(score: float) -> str:
    return f"rmse: {score} (lower is better) on 300 test rows. Requests left: 4."


def seed_with_two_scripts() -> int:
    """Returns a seed of an episode without a slip that asks for the score of a first script and tries another."""
    for seed in range(200):
        desk = Desk(read_brief(TASK), seed)
        if desk.chance("second", 0.3) and not desk.chance("slip first", 0.15) and not desk.chance("slip second", 0.15):
            return seed
    raise AssertionError("no such seed")


@pytest.mark.parametrize(("after", "is_taken_back"), [(1.5, True), (0.5, False)])
def test_a_second_script_that_scores_worse_is_taken_back(after: float, is_taken_back: bool) -> None:
    turns = codes(TASK, seed_with_two_scripts(), [WROTE, scored(1.0), WROTE, scored(after), WROTE])
    kinds = [kind for kind, _ in turns]
    assert kinds[:4] == [ActionKind.RUN, ActionKind.SCORE, ActionKind.RUN, ActionKind.SCORE]
    assert turns[0][1] != turns[2][1]
    assert (turns[4] == turns[0]) == is_taken_back


def test_a_script_that_breaks_is_followed_by_the_sample_submission() -> None:
    broken = "The script failed.\n[stderr]\nKeyError: 'x'\nThere is no submission.csv yet."
    turns = codes(TASK, seed_with_two_scripts(), [broken, WROTE])
    assert "sample_submission" in turns[1][1]
    assert "whatever columns" not in turns[1][1]


def test_rows_made_of_pieces_are_not_attempted() -> None:
    task = (
        "Each row has 6 entries. Give the letters of the row's entries in order.\nMetric: spearman (higher is better)\n"
    )
    assert read_brief(task).pieces
    [first, *_] = codes(task, 1, [WROTE])
    assert "whatever columns" not in first[1]
