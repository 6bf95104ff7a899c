"""What an episode allows and how it is scored."""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from sandmle.errors import ConfigError
from sandmle.records import Record

Settings = TypeVar("Settings", bound=Record)

Feedback = Literal["none", "public", "oracle"]
RewardPresetName = Literal["paper", "release", "sparse"]


def checked(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Returns settings made from a user's values.

    Raises:
        ConfigError: A value is not allowed; the message names it.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or kind.__name__
        raise ConfigError(f"{name}: {first['msg']}, not {first['input']!r}") from error


class EpisodeConfig(Record):
    """The rules of an episode. The defaults are the paper's for training, but for the feedback (section 4)."""

    grammar: str = "react"
    """How a reply names its action."""
    feedback: Feedback = "public"
    """What a request for a score shows: nothing, the score on the public-leaderboard rows, or (``oracle``) the hidden
    private score with all milestones, as the published release does."""
    max_feedback: int = Field(default=5, ge=0)
    """How many scores may be shown in one episode."""
    reward: RewardPresetName = "paper"
    max_turns: int = Field(default=20, gt=0)
    step_wall_s: float = Field(default=90.0, gt=0)
    """Seconds for one execution; a task's own limit counts if it is lower."""
    episode_s: float = Field(default=1200.0, gt=0)
    """Seconds for all model calls and executions together; waiting for a free sandbox does not count."""
    grade_s: float = Field(default=60.0, gt=0)
    """CPU seconds for one grading, and ten times as long on the wall clock, after which the grader is at fault."""
    max_turn_tokens: int | None = Field(default=None, gt=0)
    """Most tokens of one reply."""
    max_trajectory_tokens: int | None = Field(default=None, gt=0)
    """Tokens of all replies together; the episode ends when they are used up."""
    max_cost_usd: float | None = Field(default=None, gt=0)
    """Money for all replies together, where the policy knows its prices."""
    observation_chars: int = Field(default=8000, ge=200)
    """Longest output shown of one execution; more is cut in the middle with a visible mark."""
    stuck_after: int = Field(default=4, gt=0)
    """Turns in a row without an action, or with the same one, after which the episode ends."""
    max_empty: int = Field(default=3, gt=0)
    """Empty replies in a row after which the episode ends."""
