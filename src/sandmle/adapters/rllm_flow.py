"""rLLM (0.3): a flow that runs one episode against the gateway, and the evaluator that reads its reward.

The gateway records ids and log-probabilities of every call; turn on ``rllm.gateway.cumulative_token_mode``, or each
turn is encoded anew from text. rLLM is imported here and nowhere else; it is not a dependency (its pins conflict).
"""

import secrets
from typing import Any

import rllm
from rllm.types import Episode, Step, Task
from rllm.types import Trajectory as RllmTrajectory

from sandmle.adapters.episodes import EpisodeRunner, cached_bundle, episode_config, process_sandbox
from sandmle.errors import SandmleError
from sandmle.policies import PolicyOptions, SamplingParams
from sandmle.policies.chat import ChatPolicy
from sandmle.records import Trajectory


@rllm.rollout  # type: ignore[untyped-decorator]
async def sandmle_flow(task: Any, config: Any) -> Any:
    """Returns one episode; the task's metadata name its folder (``task_path``) and the episode's rules (``episode``).

    Raises:
        SandmleError: The episode ended by a fault that is not the agent's: rLLM drops such an episode and runs another.
    """
    metadata = dict(task.metadata or {})
    bundle = cached_bundle(str(metadata["task_path"]))
    runner = EpisodeRunner(
        process_sandbox(metadata.get("sandbox", "forkserver"), metadata.get("workers")),
        episode_config(dict(metadata.get("episode") or {})),
    )
    sampling = dict(getattr(config, "sampling_params", None) or {})  # older releases have none
    policy = ChatPolicy(config.model, PolicyOptions(base_url=config.base_url, max_retries=2))
    try:
        trajectory = await runner.run(
            bundle,
            policy,
            SamplingParams(temperature=sampling.get("temperature", 1.0), top_p=sampling.get("top_p", 1.0)),
            # The server is asked with this seed: were it the same, all episodes of a group would be.
            rng_seed=secrets.randbits(31),
        )
    finally:
        await policy.aclose()
    if trajectory.reward is None:
        reason = trajectory.failure.message if trajectory.failure else str(trajectory.status)
        raise SandmleError(f"task {trajectory.task_id}: no reward ({reason})")
    return to_episode(trajectory, task)


@rllm.evaluator  # type: ignore[untyped-decorator]
def sandmle_evaluator(task: Any, episode: Any) -> tuple[float, bool]:
    """Returns the reward that the episode earned, and whether it passed the median."""
    del task
    return float(episode.trajectories[0].reward), bool(episode.is_correct)


def to_episode(trajectory: Trajectory, task: Task) -> Episode:
    """Returns our record as rLLM's."""
    steps = [
        Step(input="", output=step.reply, action=step.code or str(step.action), done=False) for step in trajectory.steps
    ]
    if steps:
        steps[-1].done = True
    return Episode(
        task=task.id,
        trajectories=[RllmTrajectory(name="sandmle", steps=steps, reward=trajectory.reward)],
        is_correct=bool(trajectory.terms.get("median")),
        metrics={**trajectory.terms, "turns": float(len(trajectory.steps))},
    )
