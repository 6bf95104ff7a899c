"""TRL's GRPO trainer with our rollouts, advantages, masks and loss."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from accelerate.utils import gather_object
from trl import GRPOTrainer

from sandmle.errors import SandmleError
from sandmle.records import Trajectory
from sandmle.training.advantages import GroupAdvantages, group_advantages, row_weights
from sandmle.training.loss import policy_loss
from sandmle.training.masks import is_trained
from sandmle.training.recipe import GRPOSettings


class TrainingError(SandmleError):
    """Training cannot go on; the last checkpoint is usable."""


@dataclass(frozen=True)
class StepBatch:
    """The episodes of a train_step that this process ran.

    Attributes:
        trajectories: In the order of the rows.
        groups: The group of each.
        rewards: What the trainer learns from; the trajectories' own, but for a control that deals them out anew.
    """

    trajectories: list[Trajectory]
    groups: list[str]
    rewards: list[float | None]


Collect = Callable[[Sequence[int], int], StepBatch]
"""Runs the episodes of the slots of a train_step."""
Report = Callable[[dict[str, Any]], None]
"""Takes the numbers of a train_step."""


class TrajectoryTrainer(GRPOTrainer):
    """GRPO on whole trajectories. TRL drives model, optimiser and checkpoints; what is learnt is decided here."""

    def __init__(self, *, settings: GRPOSettings, collect: Collect, report: Report, **kwargs: Any) -> None:
        """Prepares training.

        Args:
            settings: Of the recipe.
            collect: Runs the episodes of a train_step.
            report: Called after each train_step.
            **kwargs: Arguments of TRL's trainer.
        """
        self._settings, self._collect, self._report = settings, collect, report
        self._batch: StepBatch | None = None
        self._step_metrics: dict[str, Any] = {}
        self._loss_metrics: dict[str, list[float]] = {}
        self._started_s = time.monotonic()
        super().__init__(reward_funcs=[_given_reward], rollout_func=self._roll_out, **kwargs)

    def _roll_out(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        """Returns the rows of a train_step; a prompt is the number of a slot."""
        del trainer
        self._started_s = time.monotonic()
        batch = self._batch = self._collect([int(prompt) for prompt in prompts], self.state.global_step)
        filler = self.processing_class.pad_token_id
        rows = [_row(each, self._is_trained(each), filler) for each in batch.trajectories]
        return {
            "prompt_ids": [row[0] for row in rows],
            "completion_ids": [row[1] for row in rows],
            "env_mask": [row[2] for row in rows],
            "logprobs": [row[3] for row in rows],
            "reward": batch.rewards,
        }

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        """Puts our advantages and weights in the place of TRL's, which know neither masks nor uneven groups."""
        output = super()._generate_and_score_completions(inputs)
        batch = self._batch
        assert batch is not None
        n_tokens = [sum(each.loss_mask or ()) if self._is_trained(each) else 0 for each in batch.trajectories]
        local = list(zip(batch.groups, batch.rewards, n_tokens, strict=True))
        everywhere = gather_object(local)
        advantages = group_advantages([row[1] for row in everywhere], [row[0] for row in everywhere])
        in_loss = [row[2] if each else 0 for row, each in zip(everywhere, advantages.is_compared, strict=True)]
        weights = row_weights(in_loss, by_token=self._settings.loss == "token_mean")
        start = self.accelerator.process_index * len(local)
        device = output["advantages"].device
        # Processes average their gradients, so that each has to weigh its rows by their number.
        scale = float(self.accelerator.num_processes)
        output["advantages"] = torch.tensor(advantages.values[start : start + len(local)], device=device)
        output["row_weights"] = scale * torch.tensor(weights[start : start + len(local)], device=device)
        self._step_metrics = {
            **_group_metrics(advantages),
            "masked_share": sum(count == 0 for count in in_loss) / len(in_loss),
            "trained_tokens": sum(in_loss),
        }
        self._loss_metrics = {"loss": [], "clipped_share": [], "entropy": [], "logprob_drift": []}
        return output

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        """Returns our loss of a part of the train_step's rows; parts add up."""
        advantages, weights = inputs["advantages"], inputs["row_weights"]
        rows = (advantages * weights).nonzero()[:, 0]
        if len(rows) == 0 and self.accelerator.num_processes == 1:
            # Nothing to learn here: the gradient is exactly 0, and the model need not be asked.
            return sum((p.sum() * 0.0 for p in model.parameters() if p.requires_grad), start=torch.zeros(()))
        prompt_ids, prompt_mask = inputs["prompt_ids"], inputs["prompt_mask"]
        completion_ids, completion_mask = inputs["completion_ids"], inputs["completion_mask"]
        # TRL pads to the longest of the whole train_step; padding that all rows here share is cut off again.
        first = int(prompt_mask.any(0).int().argmax())
        last = int(completion_mask.any(0).nonzero().max()) + 1
        prompt_ids, prompt_mask = prompt_ids[:, first:], prompt_mask[:, first:]
        completion_ids, completion_mask = completion_ids[:, :last], completion_mask[:, :last]
        mask = completion_mask * inputs["tool_mask"][:, :last]
        whole_mask = torch.cat([prompt_mask, completion_mask], dim=1)
        # Rotary angles are rounded by place: counted from the padding, they would not be those of sampling.
        positions = (whole_mask.cumsum(1) - 1).clamp(min=0)
        logprobs, entropies, _ = self._get_per_token_logps_and_entropies(
            partial(model, position_ids=positions),
            torch.cat([prompt_ids, completion_ids], dim=1),
            whole_mask,
            completion_ids.size(1),
            compute_entropy=True,
        )
        old = inputs.get("old_per_token_logps")
        old = logprobs.detach() if old is None else old[:, :last]
        result = policy_loss(
            logprobs,
            old,
            advantages,
            mask,
            weights,
            clip_low=self._settings.clip_low,
            clip_high=self._settings.clip_high,
        )
        if not torch.isfinite(result.loss.detach()):
            raise TrainingError(
                f"the loss is not finite at train_step {self.state.global_step}; go on from the last checkpoint with "
                "--resume and a lower grpo.learning_rate"
            )
        self._note(
            result.loss.detach(),
            result.clipped_share,
            entropies.detach(),
            logprobs.detach(),
            mask,
            inputs.get("sampling_per_token_logps"),
        )
        return result.loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Reports a train_step once, when the update is done."""
        super().log(logs, start_time)
        if "grad_norm" not in logs or self._batch is None:
            return
        if not math.isfinite(float(logs["grad_norm"])):
            raise TrainingError(
                f"the gradient is not finite at train_step {self.state.global_step}; go on from the last checkpoint "
                "with --resume and a lower grpo.learning_rate"
            )
        losses = {
            "loss": math.fsum(self._loss_metrics["loss"]),
            "clipped_share": _mean(self._loss_metrics["clipped_share"]),
            "entropy": _mean(self._loss_metrics["entropy"]),
            "logprob_drift": max(self._loss_metrics["logprob_drift"], default=None),
        }
        self._report(
            {
                "train_step": self.state.global_step,
                **self._step_metrics,
                **losses,
                "grad_norm": float(logs["grad_norm"]),
                "learning_rate": float(logs["learning_rate"]),
                "wall_s": time.monotonic() - self._started_s,
            }
        )

    def _is_trained(self, trajectory: Trajectory) -> bool:
        return is_trained(trajectory, self._settings.mask)

    def _note(self, loss: Any, clipped: float, entropies: Any, logprobs: Any, mask: Any, sampled: Any) -> None:
        chosen = mask.bool()
        notes = self._loss_metrics
        notes["loss"].append(float(loss))
        notes["clipped_share"].append(clipped)
        if chosen.any():
            notes["entropy"].append(float(entropies[chosen].mean()))
            if sampled is not None:
                drift = (logprobs - sampled[:, : mask.shape[1]])[chosen].abs().max()
                notes["logprob_drift"].append(float(drift))


def _given_reward(reward: list[float | None], **kwargs: Any) -> list[float | None]:
    """Returns the rewards that the rollouts brought along."""
    del kwargs
    return reward


def _row(trajectory: Trajectory, trained: bool, filler: int) -> tuple[list[int], list[int], list[int], list[float]]:
    """Returns prompt, completion, mask and log-probabilities; an episode without ids is one masked filler."""
    if not trajectory.completion_ids or trajectory.loss_mask is None or trajectory.logprobs is None:
        return [filler], [filler], [0], [0.0]
    mask = list(trajectory.loss_mask) if trained else [0] * len(trajectory.loss_mask)
    return list(trajectory.prompt_ids or ()), list(trajectory.completion_ids), mask, list(trajectory.logprobs)


def _group_metrics(advantages: GroupAdvantages) -> dict[str, Any]:
    n_groups = advantages.n_groups
    return {
        "group_std": advantages.group_std,
        "equal_groups_share": advantages.n_equal / n_groups,
        "small_groups_share": advantages.n_small / n_groups,
    }


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
