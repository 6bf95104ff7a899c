"""The token side of an episode: ids as they were sampled, never decoded and encoded again."""

from dataclasses import dataclass, field

from sandmle.records import Completion


@dataclass
class TokenTrail:
    """Grows by one turn at a time: what the model wrote, and between the turns what the environment answered.

    A policy that works on ids says with each reply what it was sampled after. That prompt has to begin with the ids of
    the turn before: the trail adds only what is new. Where it does not, or where a policy gives no ids or no
    log-probabilities, there are no token arrays for the episode: nothing is ever filled in.
    """

    prompt_ids: tuple[int, ...] | None = None  # [num_prompt_tokens]
    _completion_ids: list[int] = field(default_factory=list)
    _loss_mask: list[int] = field(default_factory=list)
    _logprobs: list[float] = field(default_factory=list)
    _is_broken: bool = False

    def add(self, completion: Completion) -> None:
        """Takes the next reply of the episode."""
        prompt, sampled, logprobs = completion.prompt_ids, completion.token_ids, completion.logprobs
        if self._is_broken or prompt is None or sampled is None or logprobs is None or len(sampled) != len(logprobs):
            self._is_broken = True
            return
        if self.prompt_ids is None:
            self.prompt_ids = prompt
        elif not self._extend_to(prompt):
            self._is_broken = True
            return
        self._append(sampled, 1, logprobs)

    def arrays(self) -> dict[str, tuple[int, ...] | tuple[float, ...]]:
        """Returns the token fields of the trajectory, all of one length but the prompt; empty when there are none."""
        if self._is_broken or self.prompt_ids is None:
            return {}
        return {
            "prompt_ids": self.prompt_ids,
            "completion_ids": tuple(self._completion_ids),
            "loss_mask": tuple(self._loss_mask),
            "logprobs": tuple(self._logprobs),
        }

    def _extend_to(self, prompt: tuple[int, ...]) -> bool:
        """Adds what the environment said since the last reply; False when the prompt does not continue the trail.

        The end of the last reply may have been cut off before the environment answered (an invented observation): what
        the prompt no longer holds of it leaves the trail.
        """
        start = len(self.prompt_ids or ())
        known = (*(self.prompt_ids or ()), *self._completion_ids)
        same = next((at for at, (ours, theirs) in enumerate(zip(known, prompt, strict=False)) if ours != theirs), None)
        kept = min(len(known), len(prompt)) if same is None else same
        if 0 in self._loss_mask[kept - start :] or kept < start or len(prompt) <= kept:
            return False
        del self._completion_ids[kept - start :], self._loss_mask[kept - start :], self._logprobs[kept - start :]
        added = prompt[kept:]
        self._append(added, 0, (0.0,) * len(added))
        return True

    def _append(self, ids: tuple[int, ...], mask: int, logprobs: tuple[float, ...]) -> None:
        self._completion_ids.extend(ids)
        self._loss_mask.extend([mask] * len(ids))
        self._logprobs.extend(logprobs)
