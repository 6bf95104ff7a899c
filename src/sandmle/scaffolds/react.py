"""The ``react`` scaffold: think, act, observe, until the agent hands in or a limit ends it (paper, section 4.1)."""

import time
from collections.abc import Callable

from sandmle.env import Episode
from sandmle.policies.base import Policy, SamplingParams
from sandmle.records import ReplyStatus, Trajectory, TrajectoryStatus
from sandmle.scaffolds.asking import Asker, failure_of
from sandmle.scaffolds.base import Transcript, make_trajectory, start


class ReactScaffold:
    """One reply a turn, one action a reply, the whole transcript every time."""

    name = "react"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    async def run(self, episode: Episode, policy: Policy, sampling: SamplingParams, *, attempt: int = 0) -> Trajectory:
        """Runs an episode to its end and grades it. Never raises; see :class:`sandmle.scaffolds.base.Scaffold`."""
        started_s = self._clock()
        transcript, asker = Transcript(), Asker(episode, policy, sampling, self._clock)
        transcript.messages.extend(await start(episode))
        while episode.status is None:
            try:
                await self._turn(episode, transcript, asker)
            except Exception as error:  # a bug of ours: the work done until here is kept
                episode.end(TrajectoryStatus.ROLLOUT_ERROR, failure_of("rollout", error))
        result = await episode.grade()
        return make_trajectory(
            episode,
            result,
            policy=policy.name,
            scaffold=self.name,
            attempt=attempt,
            messages=transcript.snapshot(),
            tally=asker.tally,
            wall_s=self._clock() - started_s,
        )

    async def _turn(self, episode: Episode, transcript: Transcript, asker: Asker) -> None:
        reply = await asker.ask(transcript.snapshot())
        if reply is None:
            return
        step = await episode.step(reply.completion, model_s=reply.model_s)
        if step.record.reply_status is not ReplyStatus.EMPTY:
            transcript.add("assistant", step.record.reply)
        transcript.add("user", step.observation)
