"""The loop of a tree search: what is chosen, what survives, what is written down."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandmle.errors import ConfigError, ContextOverflowError, PolicyError
from sandmle.grading import Grader
from sandmle.grammars.operators import Analysis, render_analysis
from sandmle.policies import PolicyOptions
from sandmle.policies.chat import ChatPolicy
from sandmle.records import GradeReport, Medal, SearchNode, TrajectoryStatus, Usage
from sandmle.scaffolds import BUILTIN, open_scaffold, scaffold_names
from sandmle.scaffolds.journal import JournalEntry, JournalHead, open_journal
from sandmle.tasks import Bundle
from tests.env.fakes import FakeSandbox
from tests.policies.server import Server, fails, in_turn, says
from tests.scaffolds.searching import Jobs, script, searched

SEARCHES = [name for name in BUILTIN if name not in ("react", "mle_agent")]
SAMPLE = "sample_submission.csv"


class Watched:
    """A grader that remembers on which rows it was asked to grade."""

    def __init__(self, inner: Grader) -> None:
        self.inner = inner
        self.graded: list[str] = []

    def check(self, submission: bytes | None) -> Any:
        return self.inner.check(submission)

    def grade(self, submission: bytes | None, *, leaderboard: Any = "private") -> GradeReport:
        self.graded.append(leaderboard)
        return self.inner.grade(submission, leaderboard=leaderboard)


@pytest.mark.parametrize("scaffold", SEARCHES)
async def test_the_best_validation_score_is_handed_in(bundle: Bundle, grader: Grader, scaffold: str) -> None:
    policy = Jobs([script(0.5, file=SAMPLE), script(0.9), script(0.7, file=SAMPLE)])
    made = await searched(bundle, grader, policy, scaffold, max_turns=3)
    assert (made.status, made.chosen_node, made.terms["gold"]) == (TrajectoryStatus.MAX_TURNS, 1, 1.0)
    assert [node.validation_score for node in made.nodes] == [0.5, 0.9, 0.7]
    assert policy.jobs == ["draft", "analyze"] * 3
    assert (made.scaffold, made.grammar, made.usage.requests) == (scaffold, "search", 6)


async def test_the_hidden_test_decides_nothing(bundle: Bundle, grader: Grader) -> None:
    watched = Watched(grader)
    # The worse submission claims the better validation score: it is the one that counts.
    made = await searched(bundle, watched, Jobs([script(0.1), script(0.9, file=SAMPLE)]), max_turns=2)
    assert made.grade is not None
    assert made.grade.medal is Medal.NONE
    assert watched.graded == ["private"]  # once, at the end


async def test_g37_the_direction_is_the_tasks_whatever_a_model_says(bundle: Bundle, grader: Grader) -> None:
    def claims(prompt: str) -> str:
        del prompt
        score = next(scores)
        return json.dumps({"is_bug": False, "validation_score": score, "lower_is_better": True, "summary": "lower!"})

    scores = iter([0.4, 0.8, 0.6])
    made = await searched(bundle, grader, Jobs([script(1), script(1), script(1)], claims), max_turns=3)
    assert made.chosen_node == 1
    assert all("lower!" in node.analysis for node in made.nodes)


@pytest.mark.parametrize(
    ("said", "score"),
    [("1", 1.0), ('"0.25"', 0.25), ("NaN", None), ("Infinity", None), ("true", None), ("null", None), ("[1]", None)],
)
async def test_integers_are_scores_and_what_is_no_number_is_none(
    bundle: Bundle, grader: Grader, said: str, score: float | None
) -> None:
    policy = Jobs([script()], lambda prompt: f'{{"is_bug": false, "validation_score": {said}, "summary": ""}}')
    made = await searched(bundle, grader, policy, max_turns=1)
    assert made.nodes[0].validation_score == score
    assert made.nodes[0].is_buggy == (score is None)
    assert made.terms["gold"] == 1.0  # without any score the submission that is there counts


@pytest.mark.parametrize(
    ("code", "read"),
    [
        (script(0.9, "status error"), None),
        (script(0.9, "status timeout"), None),
        ("print Validation score: 0.9", None),
        (script(0.9, "write rubbish"), None),
        (script(0.9), render_analysis(Analysis(True, 0.9, "the folds leak"))),
    ],
    ids=["error", "timeout", "no-submission", "bad-submission", "reader"],
)
async def test_what_makes_a_script_buggy(bundle: Bundle, grader: Grader, code: str, read: str | None) -> None:
    liar = render_analysis(Analysis(False, 0.9, "fine"))
    policy = Jobs([code, script(0.2)], lambda prompt: read if read and "0.9" in prompt else liar)
    made = await searched(bundle, grader, policy, max_turns=2, options={"num_drafts": 1, "debug_prob": 1.0})
    assert made.nodes[0].is_buggy
    assert (made.nodes[1].operator, made.nodes[1].parents) == ("debug", (0,))


async def test_without_a_reading_the_printed_line_has_to_do(bundle: Bundle, grader: Grader) -> None:
    policy = Jobs([script(0.5), script(7)], lambda prompt: "It went well!")
    made = await searched(bundle, grader, policy, max_turns=2)
    assert [node.validation_score for node in made.nodes] == [0.5, 7.0]
    assert policy.jobs.count("analyze") == 6  # three tries each
    assert sum(not step.in_form for step in made.steps) == 6


async def test_a_reply_without_a_script_is_asked_for_again(bundle: Bundle, grader: Grader) -> None:
    made = await searched(bundle, grader, Jobs(["RAW hm", "RAW SUBMIT", script(0.5)]), max_turns=1)
    assert [step.in_form for step in made.steps] == [False, False, True, True]
    assert made.nodes[0].step == 2
    assert made.steps[2].code == script(0.5)
    assert "python block" in made.steps[0].observation


@pytest.mark.parametrize(("reply", "status"), [("RAW rubbish", "stuck"), ("", "empty_reply")])
async def test_a_model_that_only_writes_rubbish_comes_to_an_end(
    bundle: Bundle, grader: Grader, reply: str, status: str
) -> None:
    made = await searched(bundle, grader, Jobs(itertools.repeat(reply)), max_turns=50)
    assert (made.status, len(made.nodes), len(made.steps)) == (status, 4, 12)
    assert made.reward == 0.0


@pytest.mark.parametrize(
    ("error", "status", "has_reward"),
    [
        (PolicyError("dead"), TrajectoryStatus.POLICY_ERROR, False),
        (ContextOverflowError("full"), TrajectoryStatus.CONTEXT_OVERFLOW, True),
        (KeyError("bug"), TrajectoryStatus.POLICY_ERROR, False),
    ],
)
async def test_what_is_done_survives_a_fault(
    bundle: Bundle, grader: Grader, error: Exception, status: TrajectoryStatus, has_reward: bool
) -> None:
    made = await searched(bundle, grader, Jobs([script(0.9), script(0.3, file=SAMPLE), error]))
    assert (made.status, made.reward is not None) == (status, has_reward)
    assert (len(made.nodes), made.chosen_node, made.terms["gold"]) == (2, 0, 1.0)


async def test_the_best_so_far_survives_the_time_budget(bundle: Bundle, grader: Grader) -> None:
    now_s = 0.0

    def scripts() -> Iterator[str]:
        nonlocal now_s
        yield script(0.9)
        yield script(0.5, file=SAMPLE)
        now_s += 2000.0  # a slow reply: its script is not run any more
        yield script(0.99, file=SAMPLE)

    made = await searched(bundle, grader, Jobs(scripts()), clock=lambda: now_s)
    assert (made.status, len(made.nodes), made.chosen_node) == (TrajectoryStatus.TIME_BUDGET, 2, 0)
    assert (made.terms["gold"], made.steps[-1].exec_status) == (1.0, None)


async def test_tokens_and_money_are_budgets(bundle: Bundle, grader: Grader) -> None:
    made = await searched(bundle, grader, Jobs(itertools.repeat(script(0.9))), max_trajectory_tokens=45)
    assert (made.status, len(made.nodes)) == (TrajectoryStatus.TOKEN_BUDGET, 3)
    assert made.nodes[2].validation_score == 0.9  # read from the line: there were no tokens left for a reading
    paid = Jobs(itertools.repeat(script(0.9)), usage=Usage(requests=1, cost_usd=0.01))
    made = await searched(bundle, grader, paid, max_cost_usd=0.035)
    assert (made.status, len(made.nodes), made.terms["gold"]) == (TrajectoryStatus.COST_BUDGET, 2, 1.0)
    assert made.reward is not None


async def test_faults_of_the_machine_have_no_reward(bundle: Bundle, grader: Grader) -> None:
    made = await searched(bundle, grader, Jobs([script(0.9), "boom"]))
    assert (made.status, made.reward, made.terms["gold"]) == (TrajectoryStatus.SANDBOX_ERROR, None, 1.0)
    gone = Bundle(root=bundle.root / "gone", spec=bundle.spec)
    made = await searched(gone, grader, Jobs([]))
    assert (made.status, made.reward) == (TrajectoryStatus.TASK_ERROR, None)


@pytest.mark.parametrize("scaffold", SEARCHES)
async def test_a_search_goes_on_from_its_journal(bundle: Bundle, grader: Grader, tmp_path: Path, scaffold: str) -> None:
    scripts = [script(0.5), script(0.7, "status error"), script(0.9), script(0.6), script(0.8), script(0.4), script(1)]
    whole = await searched(bundle, grader, Jobs(scripts), scaffold, max_turns=7)
    journal = tmp_path / "journals" / "one.jsonl"
    cut = await searched(
        bundle, grader, Jobs([*scripts[:3], PolicyError("down")]), scaffold, journal=journal, max_turns=7
    )
    assert (cut.status, len(cut.nodes)) == (TrajectoryStatus.POLICY_ERROR, 3)
    with journal.open("ab") as file:
        file.write(b'{"steps": [')  # torn by a kill
    sandbox, policy = FakeSandbox(), Jobs(scripts[3:])
    made = await searched(bundle, grader, policy, scaffold, journal=journal, sandbox=sandbox, max_turns=7)
    assert made.nodes == whole.nodes
    assert [step.replace(model_s=0.0) for step in made.steps] == [step.replace(model_s=0.0) for step in whole.steps]
    assert (made.chosen_node, made.grade, made.reward) == (whole.chosen_node, whole.grade, whole.reward)
    assert made.usage == whole.usage
    assert len(sandbox.requests) == 1 + 4  # the look at the files, and only the scripts that were missing
    assert len(policy.jobs) == 8


async def test_a_finished_journal_is_only_graded(bundle: Bundle, grader: Grader, tmp_path: Path) -> None:
    journal = tmp_path / "one.jsonl"
    first = await searched(bundle, grader, Jobs([script(0.9), script(0.2)]), journal=journal, max_turns=2)
    again = await searched(bundle, grader, Jobs([]), journal=journal, max_turns=2)
    assert (again.nodes, again.grade, again.status) == (first.nodes, first.grade, first.status)


async def test_a_journal_that_cannot_be_written_is_a_fault_of_ours(
    bundle: Bundle, grader: Grader, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    made = await searched(bundle, grader, Jobs([script(0.9)]), journal=tmp_path / "file" / "one.jsonl")
    assert (made.status, made.reward) == (TrajectoryStatus.ROLLOUT_ERROR, None)


def node(index: int, **changes: Any) -> SearchNode:
    return SearchNode(**{"index": index, "operator": "draft", "is_buggy": True, **changes})


@pytest.mark.parametrize(
    "edited",
    [node(5), node(1, parents=(9,)), node(1, step=77)],
    ids=["a gap", "a parent that is none", "a step that is none"],
)
def test_an_edited_journal_counts_up_to_the_edit(tmp_path: Path, edited: SearchNode) -> None:
    head = JournalHead(task_hash="a", scaffold="aide", settings="s", policy="p", rng_seed=1)
    with open_journal(tmp_path / "j.jsonl", head) as journal:
        journal.append(JournalEntry(steps=(), node=node(0)))
        journal.append(JournalEntry(steps=(), node=edited))
    with open_journal(tmp_path / "j.jsonl", head) as journal:
        assert [entry.node for entry in journal.entries] == [node(0)]


def test_a_journal_of_something_else_is_begun_anew(tmp_path: Path) -> None:
    head = JournalHead(task_hash="a", scaffold="aide", settings="s", policy="p", rng_seed=1)
    path = tmp_path / "j.jsonl"
    with open_journal(path, head) as journal:
        journal.append(JournalEntry(steps=(), node=node(0), used_s=2.0))
    with open_journal(path, head) as journal:
        assert [entry.used_s for entry in journal.entries] == [2.0]
    with open_journal(path, head.replace(rng_seed=2)) as journal:
        assert journal.entries == ()
    assert len(path.read_text().splitlines()) == 1


async def test_every_script_runs_in_an_empty_folder(bundle: Bundle, grader: Grader) -> None:
    made = await searched(bundle, grader, Jobs([script(0.9), "print Validation score: 0.95"]), max_turns=2)
    assert [step.has_submission for step in made.steps if step.code] == [True, False]
    assert made.chosen_node == 0


async def test_each_request_stands_alone_and_tells_what_was_tried(bundle: Bundle, grader: Grader) -> None:
    policy = Jobs([script(0.5), script(0.6, "print later"), script(0.7)])
    made = await searched(bundle, grader, policy, max_turns=3, options={"num_drafts": 1})
    for prompt in policy.prompts:
        assert [message.role for message in prompt] == ["system", "user"]
        assert prompt[0] == made.messages[0]
    assert [step.prompt for step in made.steps] == [prompt[1:] for prompt in policy.prompts]
    assert bundle.description().strip()[:80] in made.messages[0].content
    third = policy.prompts[4][1].content
    assert "print later" in third  # the parent, whole
    assert "validation score 0.5" in third  # another one, in short
    assert len(set(policy.seeds)) == len(policy.seeds)


async def test_memory_and_complexity_reach_the_prompt(bundle: Bundle, grader: Grader) -> None:
    policy = Jobs([script(0.5), script(0.6), script(0.7)])
    options = {"num_drafts": 3, "memory": "none", "use_complexity": True}
    await searched(bundle, grader, policy, "aira", max_turns=3, options=options)
    drafts = [prompt[1].content for prompt, job in zip(policy.prompts, policy.jobs, strict=True) if job == "draft"]
    assert [text.split("How ambitious: ")[1].split(".")[0] for text in drafts] == ["simple", "simple", "normal"]
    assert not any("What worked" in text for text in drafts)
    repairing = Jobs([script(None, "warn one"), script(None, "warn two"), script(None, "warn three")])
    await searched(bundle, grader, repairing, "aira", max_turns=3, options={"num_drafts": 1})
    assert repairing.jobs[::2] == ["draft", "debug", "debug"]
    assert "Repairs that did not help" in repairing.prompts[4][1].content


async def test_the_scripts_stay_whole_in_prompts_with_fences(bundle: Bundle, grader: Grader) -> None:
    odd = f'{script(0.5)}\ntext = """\n```\n"""'
    policy = Jobs([odd, script(0.6)])
    made = await searched(bundle, grader, policy, max_turns=2, options={"num_drafts": 1})
    assert made.steps[0].code == odd
    assert f"````python\n{odd}\n````" in policy.prompts[2][1].content


async def test_a_reading_that_is_not_what_was_printed_is_remarked(bundle: Bundle, grader: Grader) -> None:
    readings = iter([0.9, 0.5001])
    policy = Jobs(
        [script(0.5), script(0.5)], lambda prompt: render_analysis(Analysis(False, next(readings), "It went well."))
    )
    made = await searched(bundle, grader, policy, max_turns=2)
    assert "read as 0.9; the script printed 0.5" in made.nodes[0].analysis
    assert made.nodes[1].analysis == "It went well."


async def test_a_long_search_does_not_outgrow_the_model(bundle: Bundle, grader: Grader) -> None:
    def scripts() -> Iterator[str]:
        for number in range(60):
            yield f"RAW {number} {'I plan and plan. ' * 200}\n```python\n{script(0.5, f'print {number}')}\n```"

    policy = Jobs(scripts())
    await searched(bundle, grader, policy, max_turns=60, options={"num_drafts": 60})
    last = policy.prompts[-2][1].content
    assert len(last) < 22_000
    assert "RAW 58 " in last
    assert "RAW 1 " not in last


async def test_a_server_sees_plain_messages_and_its_cost_is_kept(bundle: Bundle, grader: Grader) -> None:
    tokens = {"prompt_tokens": 1000, "completion_tokens": 100}
    reading = says('{"is_bug": false, "validation_score": 1, "summary": "fine"}', usage=tokens)
    writing = says(f"I try.\n```python\n{script(1)}\n```", usage=tokens)
    with Server(in_turn(writing, fails(503), reading, writing, reading)).running() as server:
        prices = {"usd_per_million_prompt": 100.0, "usd_per_million_completion": 1000.0}
        policy = ChatPolicy("m", PolicyOptions(base_url=server.url, max_wait_s=0.01, **prices))
        made = await searched(bundle, grader, policy, max_turns=2)
        await policy.aclose()
    assert (len(made.nodes), made.terms["gold"], made.usage.requests) == (2, 1.0, 5)
    assert made.usage.cost_usd == pytest.approx(0.8)
    for seen in server.seen:
        assert [message["role"] for message in seen.body["messages"]] == ["system", "user"]


def test_scaffolds_and_their_options_by_name() -> None:
    assert {"react", "aide", "aira", "aira_mcts", "aira_evolutionary", "mle_agent"} <= set(scaffold_names())
    for name in BUILTIN:
        assert open_scaffold(name).name == name
    with pytest.raises(ConfigError, match="did you mean 'num_drafts'"):
        open_scaffold("aide", {"num_draft": 3})
    with pytest.raises(ConfigError, match="debug_prob"):
        open_scaffold("aide", {"debug_prob": 2})
    with pytest.raises(ConfigError, match="has no options"):
        open_scaffold("react", {"num_drafts": 3})
