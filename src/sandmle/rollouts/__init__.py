"""Rollouts: many episodes at once, and the directory that their records go to."""

from sandmle.rollouts.config import Job, RolloutConfig, SuiteInfo, episode_seed, jobs_of
from sandmle.rollouts.driver import Crew, RolloutProgress, drive
from sandmle.rollouts.run import load_tasks, plan, run_rollouts
from sandmle.rollouts.run_dir import RunDir, open_run, read_trajectories
from sandmle.rollouts.summary import summarize

__all__ = [
    "Crew",
    "Job",
    "RolloutConfig",
    "RolloutProgress",
    "RunDir",
    "SuiteInfo",
    "drive",
    "episode_seed",
    "jobs_of",
    "load_tasks",
    "open_run",
    "plan",
    "read_trajectories",
    "run_rollouts",
    "summarize",
]
