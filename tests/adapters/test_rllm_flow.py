"""The rLLM flow with a scripted chat policy: rLLM's own types and runner where they are, else their shape."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from sandmle.errors import SandmleError
from sandmle.policies.canned import CannedPolicy
from sandmle.tasks import Bundle
from tests.env.fakes import FakeSandbox


@dataclass
class _Task:
    id: str
    instruction: str
    metadata: dict[str, Any] = field(default_factory=dict)


class _Step(BaseModel):
    input: Any = None
    output: Any = None
    action: Any = None
    reward: float = 0.0
    done: bool = False


class _Trajectory(BaseModel):
    name: str = "agent"
    steps: list[_Step] = []
    reward: float | None = None


class _Episode(BaseModel):
    task: Any = None
    is_correct: bool = False
    trajectories: list[_Trajectory] = []
    metrics: dict[str, Any] = {}


IS_REAL = importlib.util.find_spec("rllm") is not None


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if not IS_REAL:
        package: Any = ModuleType("rllm")
        package.rollout = package.evaluator = lambda function: function
        types: Any = ModuleType("rllm.types")
        types.Task, types.Step, types.Trajectory, types.Episode = _Task, _Step, _Trajectory, _Episode
        monkeypatch.setitem(sys.modules, "rllm", package)
        monkeypatch.setitem(sys.modules, "rllm.types", types)
    module = importlib.import_module("sandmle.adapters.rllm_flow")
    monkeypatch.setattr(module, "process_sandbox", lambda name, workers: FakeSandbox())
    yield module
    sys.modules.pop("sandmle.adapters.rllm_flow", None)


def asked(bundle: Bundle) -> tuple[_Task, SimpleNamespace]:
    metadata = {"task_path": str(bundle.root), "episode": {"grammar": "fenced", "max_turns": 4}}
    return _Task("row-0", "", metadata), SimpleNamespace(base_url="http://localhost:1/v1", model="m", session_uid="s")


async def run_flow(adapter: Any, bundle: Bundle) -> tuple[Any, Any]:
    """Runs the flow as rLLM's engine does; returns its task and the episode."""
    task, config = asked(bundle)
    if not IS_REAL:
        return task, await adapter.sandmle_flow(task, config)
    types = importlib.import_module("rllm.types")
    real_task = types.Task(task.id, task.instruction, task.metadata)
    return real_task, await types.run_agent_flow(adapter.sandmle_flow, real_task, types.AgentConfig(**vars(config)))


async def test_an_episode_and_its_reward(adapter: Any, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = ["```python\nsubmit oracle.csv\n```", "SUBMIT"]
    monkeypatch.setattr(adapter, "ChatPolicy", lambda model, options: CannedPolicy(replies, name=f"chat:{model}"))
    task, episode = await run_flow(adapter, bundle)
    judged = adapter.sandmle_evaluator(task, episode)
    assert ((judged.reward, judged.is_correct) if IS_REAL else judged) == (1.0, True)
    steps = episode.trajectories[0].steps
    assert [step.output for step in steps] == replies
    assert [step.done for step in steps] == [False, True]
    assert episode.is_correct


async def test_no_two_episodes_of_a_group_ask_with_the_same_seed(
    adapter: Any, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = []

    class Watched(CannedPolicy):
        async def generate(self, transcript: Any, sampling: Any) -> Any:
            seeds.append(sampling.rng_seed)
            return await super().generate(transcript, sampling)

    monkeypatch.setattr(adapter, "ChatPolicy", lambda model, options: Watched(["SUBMIT"], name="chat:m"))
    for _ in range(3):
        await run_flow(adapter, bundle)
    assert len(seeds) == len(set(seeds)) == 3


async def test_t17_a_fault_raises_so_that_rllm_drops_the_episode(
    adapter: Any, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(CannedPolicy):
        async def generate(self, transcript: Any, sampling: Any) -> Any:
            raise RuntimeError("gone")

    monkeypatch.setattr(adapter, "ChatPolicy", lambda model, options: Broken(["x"], name="chat:m"))
    with pytest.raises(SandmleError, match="no reward"):
        await run_flow(adapter, bundle)
