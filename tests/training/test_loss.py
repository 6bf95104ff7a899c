"""The policy loss, against cases of public trainers."""

import math

import pytest
import torch

from sandmle.training.advantages import row_weights
from sandmle.training.loss import policy_loss


def loss_of(logprobs: torch.Tensor, mask: torch.Tensor, advantages: list[float], **more: object) -> torch.Tensor:
    weights = torch.tensor(row_weights([int(row.sum()) for row in mask], by_token=bool(more.pop("by_token", False))))
    old = more.pop("old", logprobs.detach())
    return policy_loss(logprobs, old, torch.tensor(advantages), mask, weights).loss  # type: ignore[no-any-return]


def test_t05_a_masked_row_does_not_thin_out_the_loss() -> None:
    logprobs = torch.zeros(2, 4, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]])
    assert loss_of(logprobs, mask, [-1.0, -1.0]).item() == 1.0


@pytest.mark.parametrize("by_token", [True, False], ids=["token_mean", "sequence_mean"])
def test_t07_parts_of_a_batch_add_up(by_token: bool) -> None:
    rng = torch.Generator().manual_seed(0)
    values = torch.randn(8, 6, generator=rng)
    mask = torch.tensor([[1] * length + [0] * (6 - length) for length in (1, 2, 3, 4, 5, 6, 6, 2)])
    advantages = torch.randn(8, generator=rng)
    weights = torch.tensor(row_weights([int(row.sum()) for row in mask], by_token=by_token))
    gradients = []
    for size in (8, 4, 1):
        logprobs = values.clone().requires_grad_()
        for start in range(0, 8, size):
            part = slice(start, start + size)
            now = logprobs[part]
            policy_loss(now, now.detach() - 0.1, advantages[part], mask[part], weights[part]).loss.backward()
        gradients.append(logprobs.grad)
    assert torch.allclose(gradients[0], gradients[1], atol=1e-6)
    assert torch.allclose(gradients[0], gradients[2], atol=1e-6)


def test_t08_observations_change_neither_loss_nor_gradient() -> None:
    mask = torch.tensor([[1, 1, 0, 0, 0, 1, 1]])
    first = torch.zeros(1, 7, requires_grad=True)
    second = torch.where(mask.bool(), 0.0, 5.0).requires_grad_()
    losses = [loss_of(each, mask, [0.7]) for each in (first, second)]
    for each in losses:
        each.backward()
    assert losses[0].item() == losses[1].item()
    assert torch.equal(first.grad, second.grad)
    assert first.grad[0, 2:5].abs().sum() == 0


@pytest.mark.parametrize("placeholder", [math.nan, -math.inf, 1.0])
def test_t14_placeholders_at_masked_places_are_selected_away(placeholder: float) -> None:
    mask = torch.tensor([[1, 0, 1]])
    plain = torch.tensor([[-1.0, 0.0, -2.0]], requires_grad=True)
    odd = torch.tensor([[-1.0, placeholder, -2.0]], requires_grad=True)
    old = torch.tensor([[-1.1, placeholder, -2.1]])
    one, other = loss_of(plain, mask, [1.0], old=plain.detach() - 0.1), loss_of(odd, mask, [1.0], old=old)
    one.backward()
    other.backward()
    assert one.item() == pytest.approx(other.item())
    assert torch.isfinite(odd.grad).all()
    assert torch.allclose(plain.grad, odd.grad)


def test_t01_without_signal_the_gradient_is_exactly_nothing() -> None:
    logprobs = torch.randn(2, 3, requires_grad=True)
    loss_of(logprobs, torch.ones(2, 3), [0.0, 0.0]).backward()
    assert logprobs.grad.abs().sum() == 0


def test_ratios_are_clipped_higher_above_than_below() -> None:
    logprobs = torch.log(torch.tensor([[1.5], [0.5], [1.5]]))
    advantages = torch.tensor([1.0, -1.0, -1.0])
    weights = torch.full((3,), 1 / 3)
    result = policy_loss(logprobs, torch.zeros(3, 1), advantages, torch.ones(3, 1), weights)
    # 1.28 at most for a good action, 0.8 at least for a bad one; a bad action made likelier is not clipped.
    assert result.loss.item() == pytest.approx((-1.28 + 0.8 + 1.5) / 3)
    assert result.clipped_share == pytest.approx(2 / 3)
