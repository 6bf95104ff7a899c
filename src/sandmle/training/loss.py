"""The clipped policy loss of GRPO over the tokens that the model wrote."""

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class PolicyLoss:
    """A loss and what happened to it.

    Attributes:
        loss: Scalar; its gradient is what is learnt.
        clipped_share: Share of the trained tokens whose ratio was clipped.
    """

    loss: Any
    clipped_share: float


def policy_loss(
    logprobs: Any,  # [n_rows, n_tokens]
    old_logprobs: Any,  # [n_rows, n_tokens]
    advantages: Any,  # [n_rows]
    mask: Any,  # [n_rows, n_tokens]
    weights: Any,  # [n_rows]
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> PolicyLoss:
    """Returns the weighted sum over rows of the mean over trained tokens of -min(ratio * A, clip(ratio) * A).

    Values at masked places are selected away, not multiplied by 0: they may be anything, NaN included. Losses of parts
    of a batch add up to the loss of the whole batch, since the weights are shares of the whole.

    Args:
        logprobs: Under the present model.
        old_logprobs: Under the model that sampled.
        advantages: One a row.
        mask: 1 at tokens that the model wrote and that are trained on.
        weights: Share of each row in the whole train_step; see :func:`sandmle.training.advantages.row_weights`.
        clip_low: The ratio is held above 1 - this where the advantage is negative.
        clip_high: The ratio is held below 1 + this where the advantage is positive ("clip-higher" when above clip_low).
    """
    chosen = mask.bool()
    difference = torch.where(chosen, logprobs, 0.0) - torch.where(chosen, old_logprobs, 0.0)
    ratio = torch.exp(difference)
    scaled = advantages[:, None] * ratio
    clipped = advantages[:, None] * ratio.clamp(1 - clip_low, 1 + clip_high)
    per_token = torch.where(chosen, -torch.minimum(scaled, clipped), 0.0)
    n_tokens = chosen.sum(1)
    loss = (per_token.sum(1) / n_tokens.clamp(min=1) * weights).sum()
    n_clipped = int(((clipped < scaled) & chosen).sum())
    return PolicyLoss(loss=loss, clipped_share=n_clipped / max(1, int(n_tokens.sum())))
