"""Our advantages and loss against TRL's own, from one real trainer on a tiny model."""

import warnings
from typing import Any

import pytest
import torch

from sandmle.training.advantages import group_advantages, row_weights
from sandmle.training.loss import policy_loss
from tests.policies.tiny import tiny

REWARDS = [0.1, 0.4, 0.4, 1.0, 0.5, 0.5, 0.5, 0.5]
GROUPS = ["a"] * 4 + ["b"] * 4
ROWS = [([5, 6], [7 + at, 8, 9, 10, 11][: 2 + at % 4], [1, 1, 0, 1, 1][: 2 + at % 4]) for at in range(8)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any]]:
    """A trainer of TRL and what it made of the rewards."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    model, tokenizer = tiny()

    def roll_out(prompts: list[str], trainer: Any) -> dict[str, Any]:
        return {
            "prompt_ids": [row[0] for row in ROWS],
            "completion_ids": [row[1] for row in ROWS],
            "env_mask": [row[2] for row in ROWS],
            "logprobs": [[-1.0] * len(row[1]) for row in ROWS],
            "reward": REWARDS,
        }

    args = GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("trl")),
        per_device_train_batch_size=8,
        num_generations=4,
        loss_type="grpo",
        epsilon=0.2,
        epsilon_high=0.28,
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        report_to=[],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=[lambda reward, **rest: reward],
            rollout_func=roll_out,
            args=args,
            train_dataset=Dataset.from_dict({"prompt": ["0", "1"]}),
            processing_class=tokenizer,
        )
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1
        output = trainer._generate_and_score_completions([{"prompt": str(at // 4)} for at in range(8)])
    return trainer, output


def test_advantages_are_trls(trained: tuple[Any, dict[str, Any]]) -> None:
    ours = group_advantages(REWARDS, GROUPS).values
    assert trained[1]["advantages"].tolist() == pytest.approx(ours, abs=1e-4)


def test_the_loss_is_trls(trained: tuple[Any, dict[str, Any]]) -> None:
    trainer, output = trained
    batch = {**output, "old_per_token_logps": torch.full(output["completion_ids"].shape, -6.0)}
    batch["advantages"] = torch.linspace(-1.5, 1.5, 8)
    theirs = trainer._compute_loss(trainer.model, batch)
    mask = output["completion_mask"] * output["tool_mask"]
    logprobs, _, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model,
        torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1),
        torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1),
        output["completion_ids"].size(1),
    )
    weights = torch.tensor(row_weights([int(row.sum()) for row in mask]))
    ours = policy_loss(logprobs, batch["old_per_token_logps"], batch["advantages"], mask, weights)
    assert ours.loss.item() == pytest.approx(theirs.item(), abs=1e-5)
    assert ours.clipped_share > 0


def test_t10_arrays_have_one_shape_and_padding_no_mask(trained: tuple[Any, dict[str, Any]]) -> None:
    output = trained[1]
    shape = output["completion_ids"].shape
    assert (
        output["completion_mask"].shape
        == output["tool_mask"].shape
        == output["sampling_per_token_logps"].shape
        == shape
    )
    mask = output["completion_mask"] * output["tool_mask"]
    assert [int(row.sum()) for row in mask] == [sum(row[2]) for row in ROWS]
