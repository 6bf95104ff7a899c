"""Group advantages and loss weights of GRPO: plain numbers in, plain numbers out.

For the rewards r of one task's group, over those that have one: A = (r - mean(r)) / (std(r) + 1e-4), with the sample
standard deviation. Each trajectory has one advantage, for all the tokens that the model wrote (paper, section 5).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sandmle.errors import ConfigError

EPSILON = 1e-4
_SAME = 1e-9


@dataclass(frozen=True)
class GroupAdvantages:
    """What one train_step learns from its rewards.

    Attributes:
        values: Advantage of each trajectory; 0 where there is nothing to learn.
        is_compared: The trajectory has a reward and its group at least two; all others are dropped from the loss.
        has_signal: The trajectory is compared, and the rewards of its group differ.
        n_groups: All groups.
        n_small: Groups with fewer than two rewards: nothing can be compared.
        n_equal: Groups whose rewards are all the same: their advantages are exactly 0.
        group_std: Mean over the groups with two rewards or more of their standard deviation; None without any.
    """

    values: tuple[float, ...]  # [n_trajectories]
    is_compared: tuple[bool, ...]  # [n_trajectories]
    has_signal: tuple[bool, ...]  # [n_trajectories]
    n_groups: int
    n_small: int
    n_equal: int
    group_std: float | None


def group_advantages(rewards: Sequence[float | None], groups: Sequence[str]) -> GroupAdvantages:
    """Compares each reward with those of its own group.

    Args:
        rewards: Reward of each trajectory; None after a fault that is not the agent's. Such a trajectory counts neither
            in the mean nor in the deviation.  # [n_trajectories]
        groups: The group of each trajectory; groups may be interleaved.  # [n_trajectories]

    Raises:
        ConfigError: The two differ in length, or a reward is not finite.
    """
    if len(rewards) != len(groups):
        raise ConfigError(f"{len(rewards)} rewards for {len(groups)} trajectories; give one each")
    if any(reward is not None and not math.isfinite(reward) for reward in rewards):
        raise ConfigError("a reward is not finite; give None for a trajectory that has none")
    members: dict[str, list[float]] = {group: [] for group in groups}
    for reward, group in zip(rewards, groups, strict=True):
        if reward is not None:
            members[group].append(reward)
    moments = {group: _moments(values) for group, values in members.items()}
    known = [each for each in moments.values() if each is not None]
    values: list[float] = []
    is_compared: list[bool] = []
    has_signal: list[bool] = []
    for reward, group in zip(rewards, groups, strict=True):
        mean, std = moments[group] or (0.0, 0.0)
        compared = reward is not None and moments[group] is not None
        is_compared.append(compared)
        has_signal.append(compared and std > 0)
        values.append((reward - mean) / (std + EPSILON) if reward is not None and compared and std > 0 else 0.0)
    return GroupAdvantages(
        values=tuple(values),
        is_compared=tuple(is_compared),
        has_signal=tuple(has_signal),
        n_groups=len(members),
        n_small=len(members) - len(known),
        n_equal=sum(std == 0 for _, std in known),
        group_std=math.fsum(std for _, std in known) / len(known) if known else None,
    )


def row_weights(n_tokens: Sequence[int], *, by_token: bool = False) -> tuple[float, ...]:
    """Returns what each trajectory's mean token loss weighs in the loss of a train_step; the weights sum to 1, or to 0.

    Args:
        n_tokens: Tokens of each trajectory that are trained on: 0 for one that is masked, which then weighs nothing and
            does not thin out the others either.  # [n_trajectories]
        by_token: Weigh every token alike (token mean) instead of every trajectory (sequence-mean token-mean, the
            paper's).
    """
    sizes = [float(count) if by_token else float(count > 0) for count in n_tokens]
    total = math.fsum(sizes)
    return tuple(size / total if total else 0.0 for size in sizes)


def _moments(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns mean and sample deviation; a deviation of exactly 0 for equal values; None for fewer than two."""
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    if max(values) - min(values) <= _SAME * max(1.0, abs(mean)):
        return mean, 0.0
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
