"""Scripted engineers under any scaffold: the requests of a search, JSON actions, and the transcripts they know."""

import json

import pytest

from sandmle.errors import ConfigError
from sandmle.grammars.json_reply import JsonAction, parse_json_action
from sandmle.grammars.operators import parse_analysis, parse_script, render_script
from sandmle.policies import SamplingParams, open_policy
from sandmle.policies.proposer import ProposerPolicy, open_proposer
from sandmle.policies.proposer.policy import analyze, mend
from sandmle.policies.proposer.proposals import Proposal, read_proposals
from sandmle.policies.scripted import SCRIPTED_NAMES, open_scripted
from sandmle.records import Message, SearchNode
from sandmle.scaffolds.search.prompts import operator_message
from sandmle.scaffolds.search.tree import Tried

LOOK = """\
rows: {'train': 100, 'test': 50, 'sample': 50}
sample columns: ['id', 'y']
sample row: ['r1', '0.5']
answers sum to one: False
{'column': 'id', 'in_test': True, 'type': 'text', 'unique': 100, 'missing': 0, 'example': 'r1', 'missing_in_test': 0, \
'known_in_test': 0.0, 'words': 1.0, 'length': [2, 3], 'numbers': 0.0, 'dates': 0.0}
{'column': 'a', 'in_test': True, 'type': 'number', 'unique': 90, 'missing': 0, 'example': '1.5', 'missing_in_test': 0, \
'known_in_test': 0.1, 'min': 0.0, 'max': 9.0, 'whole': False}
{'column': 'b', 'in_test': True, 'type': 'number', 'unique': 95, 'missing': 0, 'example': '2.5', 'missing_in_test': 0, \
'known_in_test': 0.1, 'min': 0.0, 'max': 9.0, 'whole': False}
{'column': 'y', 'in_test': False, 'type': 'number', 'unique': 2, 'missing': 0, 'example': '0', 'min': 0.0, \
'max': 1.0, 'whole': True}
"""
SYSTEM = f"Rules.\n\n# The competition\n\nMetric: roc_auc (higher is better)\n\n# What the files hold\n\n{LOOK}"
GOOD = """The script ended normally.
blocks: ['curves']
Validation score: 0.8
submission.csv is there and has the right form."""


def tried(code: str, output: str, score: float | None = None) -> Tried:
    node = SearchNode(index=0, operator="draft", step=0, validation_score=score, is_buggy=score is None)
    return Tried(node, code, output, None)


async def reply(policy: ProposerPolicy, operator: str, *parents: Tried, rng_seed: int = 0, system: str = SYSTEM) -> str:
    messages = (Message(role="system", content=system), operator_message(operator, parents=parents))
    return (await policy.generate(messages, SamplingParams(rng_seed=rng_seed))).text


async def proposal(policy: ProposerPolicy, operator: str, *parents: Tried, rng_seed: int = 0) -> Proposal:
    script = parse_script(await reply(policy, operator, *parents, rng_seed=rng_seed))
    assert script.in_form
    assert script.plan
    compile(script.code, "script", "exec")
    [found] = read_proposals(script.code)
    return found


def test_scripted_names_open_the_policy_for_any_scaffold() -> None:
    for name in SCRIPTED_NAMES:
        assert open_policy(f"scripted:{name}", grammar="fenced").name == f"scripted:{name}"
    with pytest.raises(ConfigError, match="did you mean 'linear'"):
        open_proposer("linea")
    with pytest.raises(ConfigError, match="grammar"):
        open_proposer("linear", "fence")


async def test_in_a_transcript_it_is_the_engineer() -> None:
    transcript = (Message(role="system", content="x"), Message(role="user", content="Metric: mae (lower is better)"))
    sampling = SamplingParams(rng_seed=4)
    for name in SCRIPTED_NAMES:
        expected = await open_scripted(name, "fenced").generate(transcript, sampling)
        assert await open_proposer(name, "fenced").generate(transcript, sampling) == expected


@pytest.mark.parametrize("name", SCRIPTED_NAMES)
async def test_every_engineer_answers_every_operator(name: str) -> None:
    policy = open_proposer(name)
    code = parse_script(await reply(policy, "draft")).code
    for operator, parents in [("debug", 1), ("improve", 1), ("crossover", 2)]:
        found = await proposal(policy, operator, *[tried(code, GOOD, 0.8)] * parents)
        assert found.kind in ("sample", "average", "linear", "boosted", "features", "blend", "tinkerer")
    assert parse_analysis(await reply(policy, "analyze", tried(code, GOOD))) is not None


async def test_the_same_prompt_and_seed_give_the_same_reply_and_seeds_differ() -> None:
    policy = open_proposer("explorer")
    drafts = {await reply(policy, "draft", rng_seed=seed) for seed in range(12)}
    assert await reply(policy, "draft", rng_seed=3) == await reply(open_proposer("explorer"), "draft", rng_seed=3)
    assert len(drafts) == 12
    slips = [(await proposal(policy, "draft", rng_seed=seed)).slips for seed in range(60)]
    assert 3 < sum(slips) < 25


async def test_improvements_climb_from_boosting_over_features_to_blends() -> None:
    policy = open_proposer("explorer")

    async def improved(kind: str, blocks: tuple[str, ...] = (), rng_seed: int = 5) -> Proposal:
        code = f"# Proposal: {json.dumps({'kind': kind, 'blocks': blocks})}\nx = 1"
        return await proposal(policy, "improve", tried(code, GOOD, 0.8), rng_seed=rng_seed)

    assert {(await improved("boosted", rng_seed=seed)).kind for seed in range(10)} == {"features", "blend"}
    blend = await improved("features", ("curves", "pairs"))
    assert (blend.kind, blend.blocks) == ("blend", ("curves",))  # what cross-validation chose
    other = await improved("blend", ("curves",))
    assert other.kind == "blend"
    assert len(set(other.blocks) ^ {"curves"}) == 1


async def test_a_crossover_joins_the_blocks_of_both() -> None:
    code = '# Proposal: {{"kind": "features", "blocks": ["{}"], "high": {}}}\nx = 1'
    parents = [tried(code.format("curves", "null"), GOOD, 0.8), tried(code.format("pairs", 5.0), GOOD, 0.7)]
    made = await proposal(open_proposer("explorer"), "crossover", *parents)
    assert (made.kind, made.blocks, made.high) == ("blend", ("curves", "pairs"), 5.0)


def test_repairs() -> None:
    assert mend([Proposal("blend", slips=True)], "") == Proposal("blend")
    bounded = mend([Proposal("blend")], "submission.csv is there, but it is not valid: values below 0 are refused")
    assert bounded == Proposal("blend", low=0.0)
    assert mend([Proposal("blend")], "KeyError: 'x'").kind == "features"
    assert mend([Proposal("features")], "KeyError: 'x'").kind == "boosted"
    assert mend([Proposal("boosted")], "KeyError: 'x'").kind == "sample"


def test_the_reading_of_an_output() -> None:
    assert analyze(f"\nOutput:\n{GOOD}").validation_score == 0.8
    for output in (
        "The script failed (exit code 1).\nKeyError: 'a'\nThere is no usable submission.csv",
        "The script ended normally.\nValidation score: 0.8\nsubmission.csv is there, but it is not valid: ids",
    ):
        made = analyze(f"\nOutput:\n{output}")
        assert made.is_bug
        assert made.validation_score is None
        assert made.summary


async def test_a_task_that_cannot_be_read_gets_the_sample() -> None:
    text = await reply(open_proposer("explorer"), "draft", system="# The competition\n\nPredict something.")
    assert read_proposals(text)[0].kind == "sample"


PIECES_SYSTEM = (
    "# The competition\n\nMetric: levenshtein (lower is better)\nEach row has 4 pieces; a prediction is one word for "
    f"each piece.\n\n# What the files hold\n\n{LOOK}"
)


async def test_a_search_takes_rows_apart_before_it_knows_their_pieces() -> None:
    policy = open_proposer("explorer")
    first = parse_script(await reply(policy, "draft", system=PIECES_SYSTEM)).code
    assert read_proposals(first)[0].kind == "pieces"
    assert "os.makedirs" in first
    assert "round(float(-best), 6)" in first  # in the direction of the task
    seen = LOOK.replace("'id'", "'piece'").replace("'a'", "'width'")
    better = parse_script(await reply(policy, "improve", tried(first, f"{seen}{GOOD}", 0.7), system=PIECES_SYSTEM)).code
    [made] = read_proposals(better)
    assert made.kind in ("features", "blend")
    assert made.seen == seen.strip()
    assert "width" in better
    assert "os.makedirs" in better  # its folder is empty
    compile(better, "script", "exec")
    blend = await reply(policy, "improve", tried(better, GOOD, 0.8), system=PIECES_SYSTEM)
    [last] = read_proposals(blend)
    assert (last.kind, last.seen) == ("blend", seen.strip())
    broken = await reply(policy, "debug", tried(first, "KeyError: 'x'"), system=PIECES_SYSTEM)
    assert read_proposals(broken)[0].kind == "sample"


async def test_json_actions_take_rows_apart_in_every_script() -> None:
    text = 'request_info validate_code execute_code get_history reset finish {"action": NAME}\n'
    opening = Message(role="user", content=text + PIECES_SYSTEM)
    answers = (LOOK, LOOK.replace("'id'", "'piece'"))
    messages = [opening]
    for answer in answers:
        messages.append(Message(role="assistant", content="{}"))
        messages.append(Message(role="user", content=answer))
    for seed in range(5):
        made = await open_proposer("explorer").generate(tuple(messages), SamplingParams(rng_seed=seed))
        action = parse_json_action(made.text)
        assert isinstance(action, JsonAction)
        if action.name == "execute_code":
            assert '"pieces/' not in action.params["code"] or "os.makedirs" in action.params["code"]
    assert action.name == "execute_code"


async def test_json_actions_when_the_scaffold_asks_for_them() -> None:
    opening = Message(
        role="user",
        content='{"action": NAME} request_info validate_code execute_code get_history reset finish\nMetric: mae '
        "(lower is better)",
    )
    policy = open_proposer("linear")
    for seed in range(20):  # also turns in which the engineer forgets to act
        text = (await policy.generate((opening,), SamplingParams(rng_seed=seed))).text
        action = parse_json_action(text)
        assert isinstance(action, JsonAction)
        assert action.name in ("execute_code", "get_history")


def test_a_proposal_survives_its_script() -> None:
    text = render_script("x", '# Proposal: {"kind": "blend", "blocks": ["a", "b"], "rng_seed": 3}\ncode')
    assert read_proposals(text) == [Proposal("blend", ("a", "b"), 3)]
