"""Many episodes at once: bounded, deterministic, none lost."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sandmle.env import Episode, EpisodeConfig
from sandmle.errors import ConfigError
from sandmle.policies import SamplingParams
from sandmle.policies.canned import CannedPolicy
from sandmle.records import Completion, Message, Trajectory, TrajectoryStatus
from sandmle.rollouts import (
    Crew,
    RolloutConfig,
    RolloutProgress,
    drive,
    episode_seed,
    jobs_of,
    load_tasks,
    plan,
    read_trajectories,
    run_rollouts,
)
from sandmle.tasks import Bundle
from tests.bundles import draft, saved
from tests.env.fakes import FakeSandbox


def run(code: str) -> str:
    return f"I try.\n```python\n{code}\n```"


GOOD = (run("submit oracle.csv"), "SUBMIT")
PLAIN = (run("submit sample_submission.csv"), "SCORE", "SUBMIT")
FENCED = EpisodeConfig(grammar="fenced")


@pytest.fixture(scope="session")
def bundles(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("more")
    second = saved(draft("regression", n_private=1000), folder)
    return {made.task_id: made for made in (bundle, second)}


def config_of(bundles: dict[str, Bundle], *policies: str, **settings: Any) -> RolloutConfig:
    return plan(bundles, policies, **{"episode": FENCED, "attempts": 2, **settings})


def without_times(trajectory: Trajectory) -> dict[str, Any]:
    plain = trajectory.to_dict()
    for step in plain["steps"]:
        step["model_s"] = 0
    return {**plain, "wall_s": 0, "model_s": 0}


def test_a_run_from_tasks_to_summary_and_resume(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    config = config_of(bundles, "plain", "second")
    shown: list[RolloutProgress] = []

    def go(**more: Any) -> dict[str, Any]:
        policies = {"plain": CannedPolicy(PLAIN), "second": CannedPolicy(["SUBMIT"])}
        return run_rollouts(config, bundles, tmp_path, sandbox=FakeSandbox(), policies=policies, **more)

    summary = go(on_progress=shown.append)
    assert summary["n_episodes"] == 8
    assert summary["policies"]["plain"]["mean_reward"] == 0.4
    assert summary["policies"]["second"]["mean_reward"] == 0.1
    assert summary["policies"]["plain"]["n_executions"] == 4
    assert summary["failures"] == []
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    assert shown[0].n_done == 0
    assert shown[-1] == RolloutProgress(8, 8, 2, 2, 0, pytest.approx(0.25), shown[-1].executions_per_s, 0.0)
    with pytest.raises(ConfigError, match="--resume"):
        go()
    file = tmp_path / "trajectories.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:50])
    assert go(resume=True) == summary
    assert len(list(read_trajectories(tmp_path))) == 8
    assert go(resume=True) == summary


def test_results_do_not_depend_on_order_or_width(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    config = config_of(bundles, "p", rng_seed=4)
    found = []
    for width in (1, 7):
        out = tmp_path / str(width)
        policies = {"p": CannedPolicy(PLAIN)}
        run_rollouts(config, bundles, out, sandbox=FakeSandbox(width), policies=policies, in_flight=width)
        made = sorted(read_trajectories(out), key=lambda each: each.key)
        found.append([without_times(each) for each in made])
    assert found[0] == found[1]
    seeds = [each["rng_seed"] for each in found[0]]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [episode_seed(4, job) for job in sorted(jobs_of(config), key=lambda job: job.key)]


def test_episode_seeds_are_fixed_for_good() -> None:
    jobs = jobs_of(RolloutConfig(tasks=("t",), task_hashes={}, policies=("p",), attempts=2))
    assert [episode_seed(0, job) for job in jobs] == [1016392038, 155721025]
    assert [episode_seed(1, job) for job in jobs] == [990724014, 1547900407]


def test_r08_r19_failures_are_recorded_and_the_others_finish(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    class Moody:
        name = "moody"
        calls = 0

        async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
            Moody.calls += 1
            if Moody.calls in (2, 5):
                raise RuntimeError("the server sent an error object \ud800")
            return Completion(text="SUBMIT")

        async def aclose(self) -> None:
            return

    config = config_of(bundles, "moody", attempts=4)
    summary = run_rollouts(config, bundles, tmp_path, sandbox=FakeSandbox(), policies={"moody": Moody()})
    statuses = summary["policies"]["moody"]["statuses"]
    assert statuses == {"policy_error": 2, "submitted": 6}
    assert [line["boundary"] for line in summary["failures"]] == ["policy", "policy"]
    assert all("error object" in line["message"] for line in summary["failures"])
    # The two that failed get another try, and the last record counts.
    summary = run_rollouts(config, bundles, tmp_path, sandbox=FakeSandbox(), policies={"moody": Moody()}, resume=True)
    assert summary["policies"]["moody"]["statuses"] == {"submitted": 8}
    assert len(list(read_trajectories(tmp_path))) == 10


async def test_a_scaffold_that_breaks_or_a_task_without_answers_is_a_record(bundles: dict[str, Bundle]) -> None:
    class Breaking:
        name = "breaking"

        async def run(self, episode: Episode, policy: Any, sampling: SamplingParams, *, attempt: int = 0) -> Trajectory:
            await episode.reset()
            raise ZeroDivisionError("in the scaffold")

    first = next(iter(bundles.values()))
    broken = Bundle(root=first.root / "gone", spec=first.spec.replace(task_id="gone"))
    everything = {**bundles, "gone": broken}
    config = config_of(everything, "p", attempts=1)
    crew = Crew(FakeSandbox(), {"p": CannedPolicy(GOOD)}, Breaking(), everything)
    found = {made.task_id: made async for made in drive(config, jobs_of(config), crew)}
    assert found.pop("gone").status is TrajectoryStatus.TASK_ERROR
    assert {made.status for made in found.values()} == {TrajectoryStatus.ROLLOUT_ERROR}
    assert all(made.failure and "ZeroDivisionError" in made.failure.message for made in found.values())


async def test_the_sandbox_and_the_width_are_bounded(bundles: dict[str, Bundle]) -> None:
    class Counting(CannedPolicy):
        now = most = 0

        async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
            Counting.now += 1
            Counting.most = max(Counting.most, Counting.now)
            await asyncio.sleep(0.01)
            Counting.now -= 1
            return await super().generate(transcript, sampling)

    from sandmle.scaffolds import open_scaffold

    config = config_of(bundles, "p", attempts=6)
    sandbox = FakeSandbox(workers=2)
    policy = Counting([run("sleep 0.02"), "SUBMIT"])
    crew = Crew(sandbox, {"p": policy}, open_scaffold("react"), bundles)
    found = [made async for made in drive(config, jobs_of(config), crew, in_flight=5)]
    assert len(found) == 12
    assert sandbox.most_at_once <= 2
    assert 2 <= Counting.most <= 5


async def test_leaving_early_cancels_and_cleans(bundles: dict[str, Bundle]) -> None:
    from sandmle.scaffolds import open_scaffold

    config = config_of(bundles, "p", attempts=6)
    sandbox = FakeSandbox()
    crew = Crew(sandbox, {"p": CannedPolicy(GOOD)}, open_scaffold("react"), bundles)
    trajectories = drive(config, jobs_of(config), crew)
    await anext(trajectories)
    await trajectories.aclose()
    assert all(not request.workspace.exists() for request in sandbox.requests)


def test_bad_plans_are_one_sentence(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="named twice"):
        config_of(bundles, "a", "a")
    first = next(iter(bundles.values()))
    assert load_tasks(first.root) == {first.task_id: first}
