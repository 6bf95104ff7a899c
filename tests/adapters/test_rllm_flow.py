"""The rLLM flow against the shape of rLLM's types, with a scripted chat policy."""

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


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if importlib.util.find_spec("rllm") is None:
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


async def test_an_episode_and_its_reward(adapter: Any, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = ["```python\nsubmit oracle.csv\n```", "SUBMIT"]
    monkeypatch.setattr(adapter, "ChatPolicy", lambda model, options: CannedPolicy(replies, name=f"chat:{model}"))
    task, config = asked(bundle)
    episode = await adapter.sandmle_flow(task, config)
    assert adapter.sandmle_evaluator(task, episode) == 1.0
    steps = episode.trajectories[0].steps
    assert [step.output for step in steps] == replies
    assert [step.done for step in steps] == [False, True]
    assert episode.is_correct


async def test_t17_a_fault_raises_so_that_rllm_drops_the_episode(
    adapter: Any, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(CannedPolicy):
        async def generate(self, transcript: Any, sampling: Any) -> Any:
            raise RuntimeError("gone")

    monkeypatch.setattr(adapter, "ChatPolicy", lambda model, options: Broken(["x"], name="chat:m"))
    task, config = asked(bundle)
    with pytest.raises(SandmleError, match="no reward"):
        await adapter.sandmle_flow(task, config)
