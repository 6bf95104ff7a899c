"""Episodes: an agent, a task, a sandbox and the rules between them."""

from sandmle.env.config import EpisodeConfig, checked
from sandmle.env.episode import SUBMISSION_FILE, Episode
from sandmle.env.feedback import SubmissionGrader
from sandmle.env.results import EpisodeResult, StepResult, Trial
from sandmle.env.rewards import PRESETS, episode_reward, reward_terms, weigh
from sandmle.env.sync import SyncEpisode

__all__ = [
    "PRESETS",
    "SUBMISSION_FILE",
    "Episode",
    "EpisodeConfig",
    "EpisodeResult",
    "StepResult",
    "SubmissionGrader",
    "SyncEpisode",
    "Trial",
    "checked",
    "episode_reward",
    "reward_terms",
    "weigh",
]
