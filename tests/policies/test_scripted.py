import asyncio
import functools
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.grammars import GRAMMAR_NAMES, get_grammar
from sandmle.policies import Policy, SamplingParams, open_policy
from sandmle.policies.scripted import LADDER, SCRIPTED_NAMES, open_scripted
from sandmle.policies.scripted.habits import read_score
from sandmle.records import ActionKind, FinishReason, GradeStatus, Medal, Message
from tests.bundles import KINDS, draft, saved
from tests.policies.workbench import Played, play

START = (
    Message(role="system", content="rules"),
    Message(role="user", content="# Task\n\nMetric: rmse (lower is better)\n"),
)


@functools.cache
def played(kind: str, name: str, rng_seed: int = 0) -> Played:
    folder = Path(tempfile.mkdtemp())
    return play(saved(draft(kind), folder / "tasks"), name, folder / "work", rng_seed=rng_seed)


def reply(policy: Policy, transcript: tuple[Message, ...] = START, rng_seed: int = 0) -> str:
    return asyncio.run(policy.generate(transcript, SamplingParams(rng_seed=rng_seed))).text


def test_there_are_five_from_weak_to_strong_and_one_of_all_skills():
    assert LADDER == ("sample", "average", "linear", "boosted", "explorer")
    assert SCRIPTED_NAMES == (*LADDER, "tinkerer")


@pytest.mark.parametrize("name", SCRIPTED_NAMES)
def test_each_is_a_policy(name: str):
    policy = open_scripted(name)
    assert isinstance(policy, Policy)
    assert policy.name == f"scripted:{name}"
    assert open_policy(f"scripted:{name}").name == policy.name
    asyncio.run(policy.aclose())


def test_unknown_engineer_and_grammar():
    with pytest.raises(ConfigError, match="did you mean 'linear'"):
        open_scripted("liner")
    with pytest.raises(ConfigError, match="grammar"):
        open_scripted("linear", "reactt")


@pytest.mark.parametrize("grammar", GRAMMAR_NAMES)
@pytest.mark.parametrize("name", SCRIPTED_NAMES)
def test_first_replies_are_in_form_or_forget_to_act(name: str, grammar: str):
    policy, rules = open_scripted(name, grammar), get_grammar(grammar)
    parsed = [rules.parse(reply(policy, rng_seed=seed), FinishReason.STOP) for seed in range(12)]
    assert sum(each.in_form for each in parsed) >= 6
    for each in parsed:
        assert (each.action is not None and each.action.kind is ActionKind.RUN) == each.in_form


def test_a_reply_depends_on_transcript_and_seed_only():
    policy = open_scripted("sample")
    texts = [reply(policy, rng_seed=seed) for seed in range(10)]
    assert texts == [reply(open_scripted("sample"), rng_seed=seed) for seed in range(10)]
    assert len(set(texts)) > 1


def test_a_reply_is_the_same_under_any_hash_seed():
    script = (
        "import asyncio; from sandmle.policies.base import SamplingParams\n"
        "from sandmle.policies.scripted import open_scripted; from sandmle.records import Message\n"
        "start = (Message(role='user', content='Metric: rmse (lower is better)'),)\n"
        "for name in ('sample', 'explorer'):\n"
        "    print(asyncio.run(open_scripted(name).generate(start, SamplingParams(rng_seed=5))).text)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("name", SCRIPTED_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_engineer_hands_in_a_valid_submission(kind: str, name: str):
    game = played(kind, name)
    assert game.is_finished
    assert game.grade is not None
    assert game.grade.status is GradeStatus.GRADED, game.observations[-2:]


@pytest.mark.parametrize("kind", KINDS)
def test_skill_shows(kind: str):
    grades = {name: played(kind, name).grade for name in ("sample", "linear", "explorer")}
    scores = {name: grade.score for name, grade in grades.items() if grade is not None and grade.score is not None}
    direction = next(grade.direction for grade in grades.values() if grade is not None)
    assert direction.better(scores["linear"], scores["sample"])
    assert direction.better(scores["explorer"], scores["sample"])
    assert grades["sample"] is not None
    assert grades["sample"].medal is Medal.NONE


def test_the_fenced_grammar_works_as_well(tmp_path: Path):
    game = play(saved(draft("regression"), tmp_path / "tasks"), "linear", tmp_path / "work", grammar="fenced")
    assert game.is_finished
    assert game.grade is not None
    assert game.grade.is_valid


def test_an_engineer_that_learns_nothing_hands_in_the_sample(tmp_path: Path):
    policy, rules = open_scripted("boosted"), get_grammar("react")
    transcript, kinds = list(START), []
    for _ in range(10):
        text = reply(policy, tuple(transcript))
        parsed = rules.parse(text, FinishReason.STOP)
        kinds.append(parsed.action.kind if parsed.action else None)
        if kinds[-1] is ActionKind.FINISH:
            break
        transcript += [Message(role="assistant", content=text), Message(role="user", content="The machine is silent.")]
    assert kinds[-1] is ActionKind.FINISH
    assert "sample_submission.csv" in transcript[-2].content


def test_an_engineer_that_is_done_keeps_handing_in():
    transcript = list(START)
    for _ in range(15):
        transcript += [Message(role="assistant", content="..."), Message(role="user", content="nothing")]
    parsed = get_grammar("react").parse(reply(open_scripted("explorer"), tuple(transcript)), FinishReason.STOP)
    assert parsed.action is not None
    assert parsed.action.kind is ActionKind.FINISH


@pytest.mark.parametrize(
    ("observation", "score"),
    [
        ("roc_auc: 0.853 (higher is better) on 300 test rows. Requests left: 4.", 0.853),
        ("rmse: 1.2e+03 (lower is better) on 300 test rows.", 1200.0),
        ("laplace_log_likelihood: -4.17 (higher is better)", -4.17),
        ("No scores are shown here. submission.csv is there and has the right form.", None),
    ],
)
def test_scores_are_read(observation: str, score: float | None):
    assert read_score(observation) == score


def test_the_explorer_goes_back_when_the_blend_scores_worse():
    def game(scores: tuple[float, float]) -> list[str]:
        policy, rules, shown, codes = open_scripted("explorer"), get_grammar("react"), list(scores), []
        transcript = [*START]
        for _ in range(10):
            text = reply(policy, tuple(transcript), rng_seed=7)
            action = rules.parse(text, FinishReason.STOP).action
            if action is None or action.kind is ActionKind.FINISH:
                break
            if action.kind is ActionKind.SCORE:
                answer = f"rmse: {shown.pop(0)} (lower is better)"
            else:
                codes.append(action.code)
                answer = LOOK if len(codes) == 1 else "blocks: ['curves']\nwrote submission.csv (3, 2)"
            transcript += [Message(role="assistant", content=text), Message(role="user", content=answer)]
        return codes

    worse, better = game((1.0, 2.0)), game((2.0, 1.0))
    assert worse[:3] == better
    assert worse[3] == worse[1]


LOOK = """rows: {'train': 100, 'test': 300, 'sample': 300}
sample columns: ['row', 'y']
sample row: ['a', '0.5']
answers sum to one: False
{'column': 'row', 'in_test': True, 'type': 'text', 'unique': 100, 'missing': 0, 'example': 'a'}
{'column': 'x', 'in_test': True, 'type': 'number', 'unique': 90, 'missing': 0, 'example': '1', 'known_in_test': 0.1, 'whole': False}
{'column': 'y', 'in_test': False, 'type': 'number', 'unique': 90, 'missing': 0, 'example': '1', 'whole': False}
"""  # noqa: E501 (one line a column, as the script prints it)
