"""The ``react`` scaffold: think, act, observe, until the agent hands in or a limit ends it (paper, section 4.1)."""

import asyncio
import time
from collections.abc import Callable

from sandmle.env import Episode
from sandmle.errors import BundleError, ContextOverflowError, PolicyError
from sandmle.grammars.scan import clean_text
from sandmle.policies.base import Policy, SamplingParams
from sandmle.records import Completion, Failure, Message, ReplyStatus, Trajectory, TrajectoryStatus, Usage
from sandmle.scaffolds.base import Tally, Transcript, make_trajectory


class ReactScaffold:
    """One reply a turn, one action a reply, the whole transcript every time."""

    name = "react"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    async def run(self, episode: Episode, policy: Policy, sampling: SamplingParams, *, attempt: int = 0) -> Trajectory:
        """Runs an episode to its end and grades it. Never raises; see :class:`sandmle.scaffolds.base.Scaffold`."""
        started_s = self._clock()
        transcript, tally = Transcript(), Tally()
        try:
            transcript.messages.extend(await episode.reset())
        except BundleError as error:
            episode.end(TrajectoryStatus.TASK_ERROR, Failure(boundary="task", message=str(error)))
        except Exception as error:  # no disk, no rights: the machine's fault, whatever it is
            episode.end(TrajectoryStatus.SANDBOX_ERROR, _failure("sandbox", error))
        while episode.status is None:
            try:
                await self._turn(episode, policy, sampling, transcript, tally)
            except Exception as error:  # a bug of ours: the work done until here is kept
                episode.end(TrajectoryStatus.ROLLOUT_ERROR, _failure("rollout", error))
        result = await episode.grade()
        return make_trajectory(
            episode,
            result,
            policy=policy.name,
            scaffold=self.name,
            attempt=attempt,
            messages=transcript.snapshot(),
            tally=tally,
            wall_s=self._clock() - started_s,
        )

    async def _turn(
        self, episode: Episode, policy: Policy, sampling: SamplingParams, transcript: Transcript, tally: Tally
    ) -> None:
        asked_s = self._clock()
        completion, usage = await _ask(episode, policy, sampling, transcript.snapshot())
        model_s = max(0.0, self._clock() - asked_s - usage.lost_s)
        tally.model_s += model_s
        tally.usage = tally.usage + usage
        if completion is None:
            return
        tally.trail.add(completion)
        step = await episode.step(completion, model_s=model_s)
        # A policy that works on ids goes on from what it sampled, also when there is no text in it.
        sampled = completion.token_ids if completion.prompt_ids is not None else None
        if step.record.reply_status is not ReplyStatus.EMPTY or sampled:
            transcript.add("assistant", step.record.reply, sampled)
        transcript.add("user", step.observation)


async def _ask(
    episode: Episode, policy: Policy, sampling: SamplingParams, transcript: tuple[Message, ...]
) -> tuple[Completion | None, Usage]:
    """Returns the policy's reply, or ends the episode; and what the call took.

    A call is not cut when the episode's time is over. So a slow model, which answers, is told from a server that does
    not: the late reply ends the episode by its time, with a reward; no reply is a fault, without one.
    """
    limits = [limit for limit in (sampling.max_tokens, episode.turn_tokens()) if limit is not None]
    wanted = sampling.replace(max_tokens=min(limits) if limits else None)
    # A policy bounds its own tries; this one catches a policy that does not.
    guard_s = sampling.timeout_s + sampling.patience_s + episode.config.episode_s
    try:
        completion = await asyncio.wait_for(policy.generate(transcript, wanted), guard_s)
        return completion, completion.usage
    except PolicyError as error:
        if isinstance(error, ContextOverflowError):
            episode.end(TrajectoryStatus.CONTEXT_OVERFLOW)
        else:
            episode.end(TrajectoryStatus.POLICY_ERROR, Failure(boundary="policy", message=clean_text(str(error))))
        retries = max(0, error.n_tries - 1)
        usage = Usage(requests=error.n_tries, retries=retries, retry_wait_s=error.retry_wait_s, lost_s=error.lost_s)
        return None, usage
    except Exception as error:  # a bug in a policy must not cost the other episodes
        episode.end(TrajectoryStatus.POLICY_ERROR, _failure("policy", error))
        return None, Usage()


def _failure(boundary: str, error: Exception) -> Failure:
    message = clean_text(f"{type(error).__name__}: {error}")
    return Failure.model_validate({"boundary": boundary, "message": message})
