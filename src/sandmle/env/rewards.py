"""Rewards: named terms from steps and grade, and presets that weigh them. Pure functions.

The milestone terms are cumulative: a gold medal also earns silver, bronze and median. So every preset is a plain sum.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sandmle.errors import unknown_name
from sandmle.records import GradeReport, Medal, ReplyStatus, StepRecord, TrajectoryStatus

PRESETS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        # The paper's formula, section 4.
        "paper": {"format": 0.1, "execute": 0.3, "median": 0.1, "bronze": 0.2, "silver": 0.2, "gold": 0.1},
        # What the published code does: 0.2 for a score, then one of 0.1, 0.5, 0.6, 0.7 for the best milestone.
        "release": {"format": 0.1, "execute": 0.2, "median": 0.1, "bronze": 0.4, "silver": 0.1, "gold": 0.1},
        # The ablation: nothing between form and gold.
        "sparse": {"format": 0.1, "execute": 0.0, "median": 0.0, "bronze": 0.0, "silver": 0.0, "gold": 0.9},
    }
)
"""Weight of each term, by preset; terms that are not named weigh nothing."""

_MEDAL_RANK = {Medal.NONE: 0, Medal.BRONZE: 1, Medal.SILVER: 2, Medal.GOLD: 3}


def reward_terms(steps: Sequence[StepRecord], report: GradeReport | None) -> dict[str, float]:
    """Returns every term of the reward, each between 0 and 1, also those that a preset gives no weight.

    ``format`` is the share of turns in the required form. A reply that was cut at the token limit is not bad form: it
    is left out of that share and counted in ``truncated``, the share of turns cut short.
    """
    whole = [step for step in steps if step.reply_status is not ReplyStatus.TRUNCATED]
    valid = report is not None and report.is_valid
    rank = _MEDAL_RANK[report.medal] if report is not None and valid else 0
    above = report is not None and valid and (report.above_median or rank > 0)
    return {
        "format": sum(step.in_form for step in whole) / len(whole) if whole else 0.0,
        "execute": float(valid),
        "median": float(above),
        "bronze": float(rank >= 1),
        "silver": float(rank >= 2),
        "gold": float(rank >= 3),
        "truncated": (len(steps) - len(whole)) / len(steps) if steps else 0.0,
    }


def weigh(terms: Mapping[str, float], preset: str) -> float:
    """Returns the weighted sum of the terms.

    Raises:
        ConfigError: There is no preset of that name.
    """
    if preset not in PRESETS:
        raise unknown_name("reward preset", preset, PRESETS)
    return round(math.fsum(weight * terms[name] for name, weight in PRESETS[preset].items()), 9)


def episode_reward(terms: Mapping[str, float], preset: str, status: TrajectoryStatus) -> float | None:
    """Returns the reward of an episode: None when it ended by a fault that is not the agent's (DESIGN 4.8)."""
    return None if status.is_infrastructure else weigh(terms, preset)
