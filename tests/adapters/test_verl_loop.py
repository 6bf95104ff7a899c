"""The verl agent loop with a scripted token server: verl's own types where it is installed, else their shape."""

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from pydantic import BaseModel

from sandmle.tasks import Bundle
from tests.env.fakes import FakeSandbox
from tests.policies.tiny import tiny


class _Metrics(BaseModel):
    generate_sequences: float = 0.0
    tool_calls: float = 0.0
    compute_score: float = 0.0
    num_preempted: int = -1


class _Output(BaseModel):
    """The fields of verl 0.9.1's record that a text task fills."""

    prompt_ids: list[int]
    response_ids: list[int]
    response_mask: list[int]
    response_logprobs: list[float] | None = None
    reward_score: float | None = None
    num_turns: int = 0
    metrics: _Metrics
    extra_fields: dict[str, Any] = {}


class _Base:
    def __init__(
        self,
        trainer_config: Any,
        server_manager: Any,
        tokenizer: Any,
        processor: Any,
        dataset_cls: Any,
        data_config: Any,
        hf_model_type: str | None = None,
        **rest: Any,
    ) -> None:
        self.rollout_config = trainer_config.config.actor_rollout_ref.rollout
        self.server_manager, self.tokenizer = server_manager, tokenizer
        self.apply_chat_template_kwargs = data_config.config.get("apply_chat_template_kwargs", {})


def _stand_in() -> dict[str, ModuleType]:
    names = ("verl", "verl.experimental", "verl.experimental.agent_loop", "verl.experimental.agent_loop.agent_loop")
    names += ("verl.trainer", "verl.trainer.ppo", "verl.trainer.ppo.core_algos")
    modules = {name: ModuleType(name) for name in names}
    loop: Any = modules["verl.experimental.agent_loop.agent_loop"]
    loop.AgentLoopBase, loop.AgentLoopMetrics, loop.AgentLoopOutput = _Base, _Metrics, _Output
    loop.register = lambda name: lambda kind: kind
    algos: Any = modules["verl.trainer.ppo.core_algos"]
    algos.register_adv_est = lambda name: lambda function: function
    return modules


IS_REAL = importlib.util.find_spec("verl") is not None


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if not IS_REAL:
        for name, module in _stand_in().items():
            monkeypatch.setitem(sys.modules, name, module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the real verl imports what its own dependencies have deprecated
        module = importlib.import_module("sandmle.adapters.verl_loop")
    monkeypatch.setattr(module, "process_sandbox", lambda name, workers: FakeSandbox())
    yield module
    if not IS_REAL:
        sys.modules.pop("sandmle.adapters.verl_loop", None)


class Server:
    """Answers with given texts, token by token as a server does."""

    def __init__(self, *texts: str | Exception) -> None:
        self.texts = list(texts)
        self.prompts: list[list[int]] = []

    async def generate(self, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        assert sampling_params["logprobs"] is True
        self.prompts.append(prompt_ids)
        text = self.texts[min(len(self.prompts), len(self.texts)) - 1]
        if isinstance(text, Exception):
            raise text
        tokenizer = tiny()[1]
        ids = [*tokenizer.encode(text), tokenizer.convert_tokens_to_ids("<|im_end|>")]
        return SimpleNamespace(token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason="completed")


EPISODE = {"grammar": "fenced", "max_turns": 4}


def loop(adapter: Any, server: Server, **settings: Any) -> Any:
    """Makes the loop as verl's worker does: from its entry in the YAML, with hydra where that is there."""
    rollout = {"prompt_length": 4096, "response_length": 2048}
    given = {
        "server_manager": server,
        "tokenizer": tiny()[1],
        "processor": None,
        "dataset_cls": object,
        "hf_model_type": "qwen3",
        "tools": SimpleNamespace(tools=[]),
    }
    settings = {"episode": EPISODE, **settings}
    if not IS_REAL:
        wrapped = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(**rollout)))
        given |= {"trainer_config": SimpleNamespace(config=wrapped), "data_config": SimpleNamespace(config={})}
        return adapter.SandmleAgentLoop(**given, **settings)
    hydra, omegaconf = importlib.import_module("hydra.utils"), importlib.import_module("omegaconf")
    agent_loop = importlib.import_module("verl.experimental.agent_loop.agent_loop")
    entry = omegaconf.OmegaConf.create(
        {"name": "sandmle", "_target_": "sandmle.adapters.verl_loop.SandmleAgentLoop", **settings}
    )
    config = omegaconf.OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
    given["trainer_config"] = agent_loop.DictConfigWrap(config)
    given["data_config"] = agent_loop.DictConfigWrap(config.data)
    return hydra.instantiate(config=entry, **given)


async def test_an_episode_is_a_row_token_in_token_out(adapter: Any, bundle: Bundle) -> None:
    server = Server("```python\nsubmit oracle.csv\n```", "SUBMIT")
    output = await loop(adapter, server).run({"temperature": 1.0, "top_p": 1.0}, task_path=str(bundle.root))
    assert output.reward_score == 1.0
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
    assert server.prompts[1][: len(server.prompts[0])] == server.prompts[0]
    assert server.prompts[1] == (output.prompt_ids + output.response_ids)[: len(server.prompts[1])]
    learnt = [token for token, mask in zip(output.response_ids, output.response_mask, strict=True) if mask]
    assert tiny()[1].decode(learnt) == "```python\nsubmit oracle.csv\n```<|im_end|>SUBMIT<|im_end|>"
    assert output.extra_fields["sandmle_status"] == "submitted"


@pytest.mark.parametrize("fault", ["server", "task"])
async def test_t17_a_fault_is_no_zero_and_never_raised(adapter: Any, bundle: Bundle, fault: str) -> None:
    server = Server(RuntimeError("no GPU")) if fault == "server" else Server("SUBMIT")
    path = str(bundle.root) if fault == "server" else "nowhere"
    output = await loop(adapter, server).run({}, task_path=path)
    assert output.reward_score == adapter.NO_REWARD
    assert sum(output.response_mask) == 0
    assert "no GPU" in output.extra_fields["sandmle_failure"] or "nowhere" in output.extra_fields["sandmle_failure"]


def test_t17_the_estimator_leaves_faults_out_of_the_group(adapter: Any) -> None:
    rewards = torch.zeros(5, 3)
    rewards[:, 2] = torch.tensor([0.0, 1.0, adapter.NO_REWARD, adapter.NO_REWARD, 0.3])
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1]])
    advantages, returns = adapter.sandmle_grpo(rewards, mask, ["a", "a", "a", "a", "b"], config=None)
    assert torch.equal(advantages, returns)
    assert advantages[0].tolist() == [pytest.approx(-0.7070, abs=1e-3)] * 2 + [0.0]
    assert advantages[1, 0] == -advantages[0, 0]
    assert advantages[2:].abs().sum() == 0


def test_a_wrong_setting_is_named(adapter: Any) -> None:
    from sandmle.errors import ConfigError

    with pytest.raises(ConfigError, match="max_turn"):
        adapter.episode_config({"max_turn": 3})


def test_the_settings_of_the_yaml_are_taken(adapter: Any) -> None:
    made = loop(adapter, Server("SUBMIT"), mask={"statuses": ["time_budget", "max_turns"], "timeout_share": 0.5})
    assert made._runner.episode.max_turns == 4
    assert [str(status) for status in made._mask.statuses] == ["time_budget", "max_turns"]
    assert made._mask.timeout_share == 0.5
