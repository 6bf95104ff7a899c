"""``LLMAuthor`` against a real local server: interrupted runs, spent budgets, wrong models, and what it all costs."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from sandmle.authoring.funnel import Proposal
from sandmle.authoring.pipeline import GenerateRequest, generate
from sandmle.authoring.roles.author import WORK_DIR, LLMAuthor
from sandmle.authoring.roles.journal import read_recording
from sandmle.authoring.roles.options import LLMOptions, SpendLimits
from sandmle.authoring.roles.talking import UnusableModelError
from sandmle.errors import ConfigError
from sandmle.sandbox.base import Sandbox
from tests.authoring.fake import tree
from tests.authoring.roles.doubles import FLAWED, GOOD, RecordedResponder, served
from tests.policies.server import Server, fails, in_turn

pytest.importorskip("pydantic_ai")
pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("needs_sandbox")]
SEED = "spaceship-titanic"
RECORDING = GOOD / f"{SEED}--0.jsonl"
REFUSED = FLAWED / "too_many_rows" / f"{SEED}--0.jsonl"
QUICK = SpendLimits(max_retries=1, max_wait_s=0.02)


def run(out: Path, author: partial[LLMAuthor], count: int = 1, *, resume: bool = False):
    request = GenerateRequest(seeds=(SEED,), count=count, rng_seed=3, author="llm")
    return generate(request, out, author=author, resume=resume)


def at(url: str, out: Path, limits: SpendLimits = QUICK) -> partial[LLMAuthor]:
    return partial(LLMAuthor, out / WORK_DIR, LLMOptions(model="openai:m", base_url=url), limits=limits)


def test_a_budget_that_is_too_small_keeps_what_was_paid_for(tmp_path):
    prices = {"usd_per_million_prompt": 100.0, "usd_per_million_completion": 100.0}
    out = tmp_path / "out"
    with Server(served(REFUSED)).running() as server:
        records = run(out, at(server.url, out, SpendLimits(max_cost_usd=1.4, **prices)), count=3)
        n_asked = len(server.seen)
        assert all(record.is_fault for record in records)
        assert "go on with --resume and a larger --max-cost" in records[0].reason
        summary = json.loads((out / "summary.json").read_text())["authoring"]
        assert 0 < summary["cost_usd"] <= 1.4
        assert summary["n_replies"] == n_asked > 0
        records = run(out, at(server.url, out, SpendLimits(max_cost_usd=9.0, **prices)), count=3, resume=True)
    assert [record.lost_to for record in records] == ["invalid_reply"] * 3
    assert len(server.seen) == 12  # three tasks, a first reply and three repairs each: nothing was asked twice
    assert json.loads((out / "summary.json").read_text())["authoring"]["n_replies"] == 12


def test_judging_asks_nobody_even_where_the_budget_would_allow_it(tmp_path):
    prices = {"usd_per_million_prompt": 1.0, "usd_per_million_completion": 1.0}
    out = tmp_path / "out"
    with Server(served(REFUSED)).running() as server:
        # Stopped in the middle: together the tasks are over the budget, each of them alone would not be.
        limits = SpendLimits(requests=1, max_cost_usd=0.0145, **prices)
        records = run(out, at(server.url, out, limits), count=4)
        summary = json.loads((out / "summary.json").read_text())["authoring"]
        assert summary["n_replies"] == len(server.seen) < 16
    assert any(record.is_fault for record in records)
    assert summary["cost_usd"] <= 0.0145
    assert "go on with --resume" in summary["stopped"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [(fails(401, "no"), "refuses the key"), (fails(404, "The model `m` does not exist"), "there is no model")],
    ids=["key", "name"],
)
def test_a_model_that_cannot_be_used_stops_the_run_in_one_sentence(reply, message, tmp_path):
    with Server(in_turn(reply)).running() as server:
        with pytest.raises(UnusableModelError, match=message):
            run(tmp_path / "out", at(server.url, tmp_path / "out"), count=3)
    assert len(server.seen) <= 3


def test_an_endpoint_that_goes_down_is_a_fault_and_goes_on_later(tmp_path):
    out = tmp_path / "out"
    answers = served(REFUSED)
    with Server(lambda n, body: answers(n, body) if n < 2 else fails(503)).running() as server:
        [record] = run(out, at(server.url, out))
    assert record.is_fault
    assert "gave no reply in 2 tries" in record.reason
    with Server(served(REFUSED)).running() as server:
        [record] = run(out, at(server.url, out), resume=True)
    assert record.lost_to == "invalid_reply"
    assert len(server.seen) == 2


def test_a_key_of_its_own_is_asked_for_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    author = LLMAuthor(tmp_path / "out", LLMOptions(model="openai:gpt-5"))
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        author.check()
    assert not (tmp_path / "out").exists()


class NoSandbox:
    """Stands where no script will run."""

    def execute(self, request: object) -> object:
        raise AssertionError("no script was to run")


@pytest.mark.parametrize("n_tasks", [50])
def test_fifty_tasks_in_flight_cost_little_beside_the_model(n_tasks, tmp_path):
    """The author's own work is a small part of what fifty waiting tasks take; the client's is counted apart."""

    class Slow(RecordedResponder):
        async def ask(self, conversation):
            import asyncio

            await asyncio.sleep(0.2)
            return await super().ask(conversation)

    limits = SpendLimits(requests=50, tasks=50)
    author = LLMAuthor(tmp_path, LLMOptions(max_repairs=9), limits=limits, responder=Slow(REFUSED))
    sandbox: Sandbox = NoSandbox()  # type: ignore[assignment]
    author.bind(sandbox)
    proposals = [Proposal(index=at, seed_id=SEED, k=at, rng_seed=at) for at in range(n_tasks)]
    start_cpu_s = time.process_time()
    author.prepare(proposals)
    cpu_s = time.process_time() - start_cpu_s
    assert author.spending()["n_replies"] == 10 * n_tasks
    assert cpu_s <= 0.10 * 50 * 10 * 0.2  # a tenth of the time that all requests spend at the model


def test_a_place_that_takes_no_recordings_is_named_before_anybody_is_asked(tmp_path):
    (tmp_path / "taken").write_text("mine")
    author = LLMAuthor(tmp_path / "out", LLMOptions(), record=tmp_path / "taken", responder=RecordedResponder(REFUSED))
    with pytest.raises(ConfigError, match=r"cannot record into .*taken: File exists; name a new folder"):
        author.prepare([Proposal(index=0, seed_id=SEED, k=0, rng_seed=0)])
    assert (tmp_path / "taken").read_text() == "mine"


N_KILLS = 20
DRIVER = """
import sys
from functools import partial
from pathlib import Path
from sandmle.authoring.pipeline import GenerateRequest, generate
from sandmle.authoring.roles.author import WORK_DIR, LLMAuthor
from sandmle.authoring.roles.options import LLMOptions, SpendLimits

if __name__ == "__main__":
    out = Path(sys.argv[2])
    request = GenerateRequest(seeds=("spaceship-titanic",), count=2, rng_seed=3, author="llm")
    options = LLMOptions(model="openai:m", base_url=sys.argv[1])
    author = partial(LLMAuthor, out / WORK_DIR, options, limits=SpendLimits(requests=2))
    generate(request, out, author=author, resume=out.exists())
"""


def _n_journalled(out: Path) -> int:
    return sum(len(read_recording(path)[1]) for path in out.glob(f"{WORK_DIR}/*/conversation.jsonl"))


@pytest.mark.slow
def test_a_run_killed_twice_is_the_same_and_pays_for_nothing_twice(tmp_path):
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    with Server(served(RECORDING, delay_s=0.2)).running() as server:
        subprocess.run([sys.executable, driver, server.url, tmp_path / "whole"], check=True)
        n_replies, out = len(server.seen), tmp_path / "broken"
        for n_asked in (2, 3):  # two tasks: one is asked, then the other; a reply is on its way
            _kill_when_asked(driver, server, out, n_asked)
            time.sleep(0.5)
        n_lost = len(server.seen) - n_replies - _n_journalled(out)
        subprocess.run([sys.executable, driver, server.url, out], check=True)
    assert tree(out / "tasks") == tree(tmp_path / "whole" / "tasks")
    assert _n_journalled(out) == n_replies
    assert len(server.seen) == 2 * n_replies + n_lost
    assert n_lost <= 4


def _kill_when_asked(driver: Path, server: Server, out: Path, n_asked: int) -> None:
    """Starts a run and kills it, with all it started, once it has sent some requests."""
    wanted = len(server.seen) + n_asked
    process = subprocess.Popen([sys.executable, driver, server.url, out], start_new_session=True)
    try:
        while len(server.seen) < wanted:
            assert process.poll() is None, "the run ended before it was killed"
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_a_run_killed_at_twenty_random_moments_is_the_same_and_pays_for_nothing_twice(tmp_path):
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    rng = random.Random(20)
    whole = tmp_path / "whole"
    with Server(served(RECORDING, delay_s=0.2)).running() as server:
        start_s = time.monotonic()
        subprocess.run([sys.executable, driver, server.url, whole], check=True)
        whole_s = time.monotonic() - start_s
        n_replies = len(server.seen)
        wanted = tree(whole / "tasks")
        n_kills = 0
        for number in itertools.count():
            if n_kills >= N_KILLS:
                break
            out = tmp_path / f"broken-{number}"
            n_before, n_more, n_lost = len(server.seen), 0, 0
            while _is_killed(driver, server.url, out, rng.uniform(0.2, 0.9) * whole_s):
                n_more += 1
                time.sleep(0.5)  # requests that were under way are answered into the void
                n_lost = len(server.seen) - n_before - _n_journalled(out)
                if n_kills + n_more >= N_KILLS:
                    subprocess.run([sys.executable, driver, server.url, out], check=True)
                    break
            n_kills += n_more
            assert tree(out / "tasks") == wanted
            # Asked for again is only what was under way at a kill: two requests at most at a time.
            assert _n_journalled(out) == n_replies
            assert len(server.seen) - n_before == n_replies + n_lost
            assert n_lost <= 2 * n_more


def _is_killed(driver: Path, url: str, out: Path, after_s: float) -> bool:
    """Starts a run and kills it, with all it started; False when it came to its end before."""
    process = subprocess.Popen([sys.executable, driver, url, out], start_new_session=True)
    try:
        assert process.wait(after_s) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False
