"""The tinkerer: its scripts fit any table, differ by the dice, and a worse second script is taken back."""

import asyncio
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sandmle.grammars import get_grammar
from sandmle.policies import SamplingParams
from sandmle.policies.scripted import open_scripted
from sandmle.policies.scripted.brief import read_brief
from sandmle.policies.scripted.moves import SUBMITTED, Desk
from sandmle.policies.scripted.tinkerer import FEATURES, MODELS, tinkerer_script
from sandmle.records import ActionKind, FinishReason, Message
from tests.bundles import KINDS, draft, saved
from tests.policies.workbench import execute, play

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


def table(folder: Path, answers: list[str], sample: dict[str, str], **columns: list[str]) -> Path:
    """Writes a task's public files by hand: 60 rows to learn from, 30 to predict for."""
    rng = np.random.default_rng(0)
    feature = rng.normal(size=90).round(3)
    frame = pd.DataFrame({"id": [f"r{i}" for i in range(90)], "a": feature, **columns})
    (folder / "input").mkdir(parents=True)
    order = np.argsort(feature[:60])
    labels = np.array(answers, dtype=object)
    told = np.empty(60, dtype=object)
    told[order] = labels[np.arange(60) * len(labels) // 60]  # rises with the feature
    frame[:60].assign(y=told).to_csv(folder / "input/train.csv", index=False)
    frame[60:].to_csv(folder / "input/test.csv", index=False)
    pd.DataFrame({"id": frame["id"][60:], **sample}).to_csv(folder / "input/sample_submission.csv", index=False)
    return folder


def run_all(folder: Path, n_scripts: int = 12) -> list[pd.DataFrame]:
    submissions = []
    for rng_seed in range(n_scripts):
        works, output = execute(script(rng_seed), folder)
        assert works, output
        submissions.append(pd.read_csv(folder / "submission.csv", dtype=str, keep_default_na=False))
        assert list(submissions[-1]["id"]) == [f"r{i}" for i in range(60, 90)]
    return submissions


def test_labels_of_any_number_and_name(tmp_path: Path) -> None:
    many = [f"kind {i}" for i in range(20)]
    for found in run_all(table(tmp_path / "many", many, {"y": many[0]})):
        assert set(found["y"]) <= set(many)
    for found in run_all(table(tmp_path / "none", ["None", "NA", "some"], {"y": "some"})):
        assert set(found["y"]) <= {"None", "NA", "some"}
    ranked = [f"k{i}" for i in range(20)]
    for found in run_all(table(tmp_path / "ranked", ranked, {"y": "k1 k2 k3"})):
        assert all(len(set(cell.split())) == 3 and set(cell.split()) <= set(ranked) for cell in found["y"])


def test_the_chance_is_that_of_the_larger_of_two_numbers(tmp_path: Path) -> None:
    folder = table(tmp_path, ["2", "10"], {"y": "0.5"})
    feature = pd.read_csv(folder / "input/test.csv")["a"]
    told = [
        np.corrcoef(found["y"].astype(float), feature)[0, 1] for found in run_all(folder) if found["y"].nunique() > 9
    ]
    assert told
    assert min(told) > 0


def test_columns_with_nothing_in_them_and_words_that_are_rare(tmp_path: Path) -> None:
    rare = [f"word{i} other{i}" for i in range(90)]
    folder = table(tmp_path, ["0", "1"], {"y": "0.5"}, empty=[""] * 90, text=rare, code=[f"é{i}" for i in range(90)])
    run_all(folder, 20)


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
