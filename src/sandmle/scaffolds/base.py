"""The contract of a scaffold: the loop round a policy. It turns an episode into a trajectory and never raises."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import sandmle
from sandmle.env import Episode, EpisodeResult
from sandmle.errors import BundleError
from sandmle.policies.base import Policy, SamplingParams
from sandmle.records import Failure, Message, SearchNode, Trajectory, TrajectoryStatus
from sandmle.scaffolds.asking import Tally, failure_of


@runtime_checkable
class Scaffold(Protocol):
    """The loop round a policy. Stateless: all that it knows of an episode is in the call.

    A class of scaffolds with settings has an attribute ``Options``, a record, and takes one as its first argument.
    """

    name: str

    async def run(self, episode: Episode, policy: Policy, sampling: SamplingParams, *, attempt: int = 0) -> Trajectory:
        """Runs an episode to its end and grades it.

        Every ending, also a fault, is a status of the trajectory, with the work done until then. The caller closes the
        episode and the policy.

        Args:
            episode: A fresh episode.
            policy: The model.
            sampling: How it samples.
            attempt: The number of this repeat, for the record.
        """
        ...


@dataclass
class Transcript:
    """The messages of an episode. No message is empty, and no two of one role stand in a row."""

    messages: list[Message] = field(default_factory=list)

    def add(self, role: str, content: str) -> None:
        """Appends a message; words for a role that spoke last are added to its message."""
        if not content.strip():
            return
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == role:
            self.messages[-1] = last.replace(content=f"{last.content}\n\n{content}")
        else:
            self.messages.append(Message.model_validate({"role": role, "content": content}))

    def snapshot(self) -> tuple[Message, ...]:
        """Returns the messages so far."""
        return tuple(self.messages)


async def start(episode: Episode) -> tuple[Message, ...]:
    """Resets an episode and returns its first messages; what keeps it from starting becomes its status."""
    try:
        return await episode.reset()
    except BundleError as error:
        episode.end(TrajectoryStatus.TASK_ERROR, Failure(boundary="task", message=str(error)))
    except Exception as error:  # no disk, no rights: the machine's fault, whatever it is
        episode.end(TrajectoryStatus.SANDBOX_ERROR, failure_of("sandbox", error))
    return ()


def make_trajectory(
    episode: Episode,
    result: EpisodeResult,
    *,
    policy: str,
    scaffold: str,
    attempt: int,
    messages: Sequence[Message],
    tally: Tally,
    wall_s: float,
    grammar: str | None = None,
    nodes: tuple[SearchNode, ...] = (),
    chosen_node: int | None = None,
) -> Trajectory:
    """Returns the record of an episode that has been graded; ``grammar`` is named where the scaffold has its own."""
    spec, config = episode.bundle.spec, episode.config
    return Trajectory(
        task_id=spec.task_id,
        task_hash=spec.task_hash,
        seed_id=spec.provenance.seed_id,
        policy=policy,
        scaffold=scaffold,
        grammar=grammar or config.grammar,
        feedback=config.feedback,
        reward_preset=config.reward,
        attempt=attempt,
        rng_seed=episode.rng_seed,
        messages=tuple(messages),
        steps=episode.steps,
        status=result.status,
        failure=result.failure,
        grade=result.grade,
        reward=result.reward,
        terms=result.terms,
        nodes=nodes,
        chosen_node=chosen_node,
        usage=tally.usage(),
        wall_s=wall_s,
        model_s=tally.model_s,
        exec_s=sum(step.exec_wall_s or 0.0 for step in episode.steps),
        versions={"sandmle": sandmle.__version__, "python": platform.python_version()},
    )
