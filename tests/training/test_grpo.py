"""Training from end to end on a tiny model: warm start, GRPO that learns, resume, faults."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandmle.errors import ConfigError
from sandmle.records import Message
from sandmle.tasks import Bundle
from sandmle.training.grpo import train_grpo
from sandmle.training.prompts import first_messages
from sandmle.training.recipe import Recipe, load_recipe
from sandmle.training.sft import train_sft
from sandmle.training.trainer import TrainingError
from tests.bundles import draft, saved
from tests.env.fakes import FakeSandbox

# One turn: handing in nothing is good form (0.1), anything else is not (0).
BANDIT = (
    "episode.max_turns=1",
    "episode.max_turn_tokens=8",
    "model.tiny.vocab=400",
    "model.tiny.hidden=32",
    "sft.learning_rate=5e-3",
    "sft.train_steps=70",
    "sft.batch_size=4",
    "sft.micro_batch=4",
)


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return saved(draft("regression", n_private=1000), tmp_path_factory.mktemp("held-out"))


@pytest.fixture(scope="module")
def warm(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that hands in about every second time."""
    recipe = load_recipe("ci-tiny", BANDIT)
    out = tmp_path_factory.mktemp("sft") / "run"
    opening = first_messages(bundle, recipe.episode)
    chats = [(*opening, Message(role="assistant", content=text)) for text in ("SUBMIT", "no idea")]
    summary = train_sft(recipe, chats, out)
    assert summary["last_loss"] < 0.6 < summary["first_loss"]
    assert (summary["demonstrations"], summary["too_long"]) == (2, 0)
    return out / "final"


def recipe_of(model: Path, *more: str) -> Recipe:
    return load_recipe(
        "ci-tiny",
        [*BANDIT, f"model.source={model}", "grpo.group_size=4", "grpo.prompts=1", "grpo.micro_batch=4", *more],
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_times(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in ("time", "times")}


def test_grpo_makes_what_earns_more_likelier(warm: Path, bundle: Bundle, held_out: Bundle, tmp_path: Path) -> None:
    recipe = recipe_of(
        warm,
        "grpo.train_steps=16",
        "grpo.group_size=8",
        "grpo.micro_batch=8",
        "grpo.learning_rate=4e-3",
        "grpo.eval_every=16",
        "grpo.eval_attempts=8",
    )
    seen: list[dict[str, Any]] = []
    summary = train_grpo(
        recipe,
        {bundle.task_id: bundle},
        {held_out.task_id: held_out},
        tmp_path / "run",
        sandbox=FakeSandbox(),
        on_step=seen.append,
    )
    steps = lines(tmp_path / "run/metrics.jsonl")
    assert [line["train_step"] for line in steps] == list(range(1, 17))
    early = sum(line["reward"] for line in steps[:4]) / 4
    late = sum(line["reward"] for line in steps[-4:]) / 4
    assert late > early
    assert late > 0.06
    with_signal = [line for line in steps if line["group_std"] > 0]
    assert with_signal
    # Recomputed log-probabilities are those of sampling: the ids are the same.
    assert max(line["logprob_drift"] for line in with_signal) < 1e-4
    assert all(line["grad_norm"] > 0 for line in with_signal)
    times = steps[-1]["times"]
    assert times["generation_s"] > 0
    assert times["update_s"] > 0
    assert times["overhead_s"] < times["wall_s"]
    assert summary["train_steps"] == 16
    assert (tmp_path / "run/best/config.json").exists()
    assert (tmp_path / "run/final/model.safetensors").exists()
    assert [each["kind"] for each in seen].count("validation") == 2


def test_resume_goes_on_with_the_same_curve(warm: Path, bundle: Bundle, tmp_path: Path) -> None:
    recipe = recipe_of(warm, "grpo.train_steps=4", "grpo.eval_every=2", "grpo.learning_rate=1e-3")
    tasks = {bundle.task_id: bundle}
    train_grpo(recipe, tasks, {}, tmp_path / "whole", sandbox=FakeSandbox())

    def stop(numbers: dict[str, Any]) -> None:
        if numbers["train_step"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_grpo(recipe, tasks, {}, tmp_path / "torn", sandbox=FakeSandbox(), on_step=stop)
    with pytest.raises(ConfigError, match="--resume"):
        train_grpo(recipe, tasks, {}, tmp_path / "torn", sandbox=FakeSandbox())
    other = recipe_of(warm, "grpo.train_steps=5")
    with pytest.raises(ConfigError, match="another recipe"):
        train_grpo(other, tasks, {}, tmp_path / "torn", sandbox=FakeSandbox(), resume=True)
    # A checkpoint that was being written when the process was killed.
    (tmp_path / "torn/checkpoints/checkpoint-3").mkdir()
    train_grpo(recipe, tasks, {}, tmp_path / "torn", sandbox=FakeSandbox(), resume=True)
    whole, torn = (lines(tmp_path / name / "metrics.jsonl") for name in ("whole", "torn"))
    assert [without_times(line) for line in torn] == [without_times(line) for line in whole]


def test_faults_of_the_machine_stop_training_with_a_sentence(warm: Path, bundle: Bundle, tmp_path: Path) -> None:
    from sandmle.records import Failure, TrajectoryStatus
    from sandmle.training import grpo as module

    recipe = recipe_of(warm, "grpo.train_steps=1")
    engine_run = module.Engine.run

    def broken(self: Any, *args: Any, **options: Any) -> Any:
        failure = Failure(boundary="sandbox", message="the disk is full")
        return [
            each.replace(status=TrajectoryStatus.SANDBOX_ERROR, reward=None, failure=failure)
            for each in engine_run(self, *args, **options)
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Engine, "run", broken)
        with pytest.raises(TrainingError, match=r"the disk is full.*--resume"):
            train_grpo(recipe, {bundle.task_id: bundle}, {}, tmp_path / "run", sandbox=FakeSandbox())


def test_what_cannot_be_trained_is_refused(warm: Path, bundle: Bundle, tmp_path: Path) -> None:
    tasks = {bundle.task_id: bundle}

    def train(recipe: Recipe, some: dict[str, Bundle], held: dict[str, Bundle] | None = None) -> None:
        train_grpo(recipe, some, held or {}, tmp_path / "run", sandbox=FakeSandbox(), resume=True)

    with pytest.raises(ConfigError, match="both trained on and validated on"):
        train(recipe_of(warm), tasks, tasks)
    with pytest.raises(ConfigError, match="no task to train on"):
        train(recipe_of(warm), {})
    with pytest.raises(ConfigError, match="no task fits"):
        train(recipe_of(warm, "max_prompt_tokens=10"), tasks)
    with pytest.raises(ConfigError, match="does not divide"):
        train(recipe_of(warm, "grpo.micro_batch=3"), tasks)
    with pytest.raises(ConfigError, match=r"sampling\.temperature 0"):
        train(recipe_of(warm, "sampling.temperature=0"), tasks)
    chat = (*first_messages(bundle, recipe_of(warm).episode), Message(role="assistant", content="print(1)"))
    with pytest.raises(ConfigError, match=r"sft\.micro_batch 3 does not divide sft\.batch_size 4"):
        train_sft(recipe_of(warm, "sft.batch_size=4", "sft.micro_batch=3"), [chat], tmp_path / "run")


def test_a_refused_run_leaves_its_folder_to_the_next(
    warm: Path, bundle: Bundle, held_out: Bundle, tmp_path: Path
) -> None:
    tasks, held = {bundle.task_id: bundle}, {held_out.task_id: held_out}

    def stop(numbers: dict[str, Any]) -> None:
        raise KeyboardInterrupt  # at the validation before the first train_step

    with pytest.raises(ConfigError, match="there is no folder"):
        train_grpo(recipe_of(tmp_path / "missing"), tasks, held, tmp_path / "run", sandbox=FakeSandbox())
    with pytest.raises(KeyboardInterrupt):
        train_grpo(recipe_of(warm), tasks, held, tmp_path / "run", sandbox=FakeSandbox(), on_step=stop)
    assert (tmp_path / "run/validation.jsonl").exists()
    right = recipe_of(warm, "grpo.train_steps=1", "episode.max_turns=2")
    summary = train_grpo(right, tasks, held, tmp_path / "run", sandbox=FakeSandbox())
    assert [train_step for train_step, _ in summary["validation"]] == [0, 1]
    assert [path.name for path in sorted((tmp_path / "run/rollouts").glob("train-*"))] == ["train-00001.jsonl"]


def test_tasks_whose_prompt_is_too_long_are_left_out_and_counted(
    warm: Path, bundle: Bundle, held_out: Bundle, tmp_path: Path
) -> None:
    from sandmle.training import grpo as module

    recipe = recipe_of(warm, "grpo.train_steps=1")
    sizes = iter([10, 100_000])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_prompt_size", lambda *args: next(sizes))
        tasks = {bundle.task_id: bundle, held_out.task_id: held_out}
        summary = train_grpo(recipe, tasks, {}, tmp_path / "run", sandbox=FakeSandbox())
    assert summary["tasks_too_long"] == 1


def test_adapters_are_trained_and_can_be_opened_again(warm: Path, bundle: Bundle, tmp_path: Path) -> None:
    from sandmle.policies import open_policy
    from sandmle.policies.loading import ADAPTER_FILE

    recipe = recipe_of(warm, "model.lora.r=4", "grpo.train_steps=2", "grpo.learning_rate=1e-2")
    train_grpo(recipe, {bundle.task_id: bundle}, {}, tmp_path / "run", sandbox=FakeSandbox())
    assert (tmp_path / "run/final" / ADAPTER_FILE).exists()
    assert not (tmp_path / "run/final/model.safetensors").exists()
    opened: Any = open_policy(f"hf:{tmp_path / 'run/final'}")
    adapters = {name: value for name, value in opened.generator.model.named_parameters() if "lora_B" in name}
    assert any(float(value.detach().abs().sum()) > 0 for value in adapters.values())


def test_the_warm_start_of_adapters_leaves_a_whole_model(warm: Path, bundle: Bundle, tmp_path: Path) -> None:
    import torch

    from sandmle.policies.loading import ADAPTER_FILE, load_model

    recipe = recipe_of(warm, "model.lora.r=4", "sft.train_steps=5", "sft.learning_rate=1e-2", "sft.decay=true")
    chat = (*first_messages(bundle, recipe.episode), Message(role="assistant", content="no idea"))
    summary = train_sft(recipe, [chat], tmp_path / "run")
    assert summary["last_loss"] < summary["first_loss"]
    assert not (tmp_path / "run/final" / ADAPTER_FILE).exists()
    (before, _), (after, _) = load_model(str(warm)), load_model(str(tmp_path / "run/final"))
    old, new = before.state_dict(), after.state_dict()
    assert old.keys() == new.keys()
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert changed
    assert all("proj" in name for name in changed)
    rates = [line["learning_rate"] for line in lines(tmp_path / "run/metrics.jsonl")]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < rates[0] / 2


def test_a_loss_that_is_no_number_stops_training_with_a_sentence(warm: Path, bundle: Bundle, tmp_path: Path) -> None:
    from sandmle.training import trainer as module
    from sandmle.training.loss import PolicyLoss

    recipe = recipe_of(warm, "grpo.train_steps=6", "grpo.eval_every=1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module, "policy_loss", lambda logprobs, *rest, **more: PolicyLoss(logprobs.sum() * float("nan"), 0.0)
        )
        with pytest.raises(TrainingError, match=r"not finite at train_step \d.*--resume.*learning_rate"):
            train_grpo(recipe, {bundle.task_id: bundle}, {}, tmp_path / "run", sandbox=FakeSandbox())
