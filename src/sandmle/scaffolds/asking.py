"""Asks a policy on behalf of an episode: within its limits, and with every fault as a status."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sandmle.env import Episode
from sandmle.errors import ContextOverflowError, PolicyError
from sandmle.grammars.scan import clean_text
from sandmle.policies.base import Policy, SamplingParams
from sandmle.records import Completion, Failure, FinishReason, Message, TrajectoryStatus, Usage
from sandmle.scaffolds.tokens import TokenTrail

MAX_REPLY_CHARS = 500_000
"""A longer reply of a model without token ids is cut there, as if by its own limit."""


@dataclass
class Tally:
    """What model calls took, one by one, and, where the policy tells, which tokens they read and wrote."""

    calls: list[Usage] = field(default_factory=list)
    model_s: float = 0.0
    trail: TokenTrail = field(default_factory=TokenTrail)

    def usage(self, first: int = 0) -> Usage:
        """Returns the sum over the calls from a given one on."""
        return sum(self.calls[first:], Usage())


@dataclass(frozen=True)
class Reply:
    """A reply and how long the model worked on it."""

    completion: Completion
    model_s: float


@dataclass
class Asker:
    """Puts questions to one policy in one episode and adds up what they take.

    Attributes:
        episode: The episode; a fault of the policy ends it.
        policy: The model.
        sampling: How it samples.
        clock: Seconds from any start.
        tally: What the calls took so far.
    """

    episode: Episode
    policy: Policy
    sampling: SamplingParams
    clock: Callable[[], float] = time.monotonic
    tally: Tally = field(default_factory=Tally)

    async def ask(self, transcript: tuple[Message, ...], *, rng_seed: int | None = None) -> Reply | None:
        """Returns the policy's reply; None when the episode ended instead.

        A call is not cut when the episode's time is over. So a slow model, which answers, is told from a server that
        does not: the late reply ends the episode by its time, with a reward; no reply is a fault, without one.

        Args:
            transcript: The messages.
            rng_seed: Seeds the sampling, instead of the attempt's seed.
        """
        asked_s = self.clock()
        completion, usage = await self._generate(transcript, rng_seed)
        model_s = max(0.0, self.clock() - asked_s - usage.lost_s)
        self.tally.model_s += model_s
        self.tally.calls.append(usage)
        if completion is None:
            return None
        self.tally.trail.add(completion)
        return Reply(completion, model_s)

    async def _generate(self, transcript: tuple[Message, ...], rng_seed: int | None) -> tuple[Completion | None, Usage]:
        episode, sampling = self.episode, self.sampling
        limits = [limit for limit in (sampling.max_tokens, episode.turn_tokens()) if limit is not None]
        seed = sampling.rng_seed if rng_seed is None else rng_seed
        wanted = sampling.replace(max_tokens=min(limits) if limits else None, rng_seed=seed)
        # A policy bounds its own tries; this one catches a policy that does not.
        guard_s = sampling.timeout_s + sampling.patience_s + episode.config.episode_s
        try:
            answer = await asyncio.wait_for(self.policy.generate(transcript, wanted), guard_s)
            completion = _bounded(answer, self.policy)
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
            episode.end(TrajectoryStatus.POLICY_ERROR, failure_of("policy", error))
            return None, Usage()


def _bounded(answer: object, policy: Policy) -> Completion:
    """Returns a policy's answer, without what is beyond any reply: it would be kept in every later prompt and record.

    Raises:
        PolicyError: It is no completion.
    """
    if not isinstance(answer, Completion):
        raise PolicyError(f"{policy.name} answered with {type(answer).__name__}; a policy returns a Completion")
    if answer.token_ids is not None or max(len(answer.text), len(answer.reasoning)) <= MAX_REPLY_CHARS:
        return answer
    return answer.replace(
        text=answer.text[:MAX_REPLY_CHARS],
        reasoning=answer.reasoning[:MAX_REPLY_CHARS],
        finish_reason=FinishReason.LENGTH,
    )


def failure_of(boundary: str, error: Exception) -> Failure:
    """Returns the record of an unexpected exception, blamed on a boundary."""
    message = clean_text(f"{type(error).__name__}: {error}")
    return Failure.model_validate({"boundary": boundary, "message": message})
