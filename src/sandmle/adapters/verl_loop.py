"""verl (0.9): an agent loop that runs one episode a row, token in and token out, and an advantage that honours faults.

verl has no notion of an episode without a reward: a 0 in its place would be learnt from. So such an episode is handed
over with an empty mask and ``NO_REWARD``, which no real reward can be, and the estimator ``sandmle_grpo`` leaves it out
of its group's mean and deviation. verl is imported here and nowhere else; it is not a dependency (its pins conflict).
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register
from verl.trainer.ppo.core_algos import register_adv_est

from sandmle.adapters.episodes import EpisodeRunner, cached_bundle, episode_config, process_sandbox
from sandmle.errors import PolicyError
from sandmle.policies import SamplingParams
from sandmle.policies.renderers import ChatRenderer
from sandmle.policies.tokens import TokenPolicy, TokenReply, TokenRequest
from sandmle.records import Trajectory
from sandmle.training.advantages import group_advantages
from sandmle.training.masks import MaskPolicy, is_trained

NO_REWARD = -1.0
"""Stands for "no reward"; rewards are never negative."""


@register("sandmle")
class SandmleAgentLoop(AgentLoopBase):
    """One episode of the react scaffold for each row; the row names the task's folder as ``task_path``."""

    def __init__(
        self,
        *args: Any,
        episode: Mapping[str, Any] | None = None,
        mask: Mapping[str, Any] | None = None,
        sandbox: str = "forkserver",
        workers: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Takes verl's arguments, and from the loop's YAML the rules of the episode.

        Args:
            *args: verl's.
            episode: Fields of :class:`sandmle.env.EpisodeConfig`.
            mask: Fields of :class:`sandmle.training.masks.MaskPolicy`.
            sandbox: The backend that runs code.
            workers: Executions at once in this process.
            **kwargs: verl's.
        """
        super().__init__(*args, **kwargs)
        self._runner = EpisodeRunner(process_sandbox(sandbox, workers), episode_config(_plain(episode or {})))
        self._mask = MaskPolicy.model_validate(_plain(mask or {}))
        self._renderer = ChatRenderer(self.tokenizer, "the policy", dict(self.apply_chat_template_kwargs))
        self._prompt_length = int(self.rollout_config.prompt_length)
        self._response_length = int(self.rollout_config.response_length)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        """Returns verl's record of one episode; never raises, since one raising loop fails verl's whole batch."""
        request_id = uuid4().hex  # verl keeps the calls of one id on one server, where its cache is warm

        async def sample(request: TokenRequest) -> TokenReply:
            wanted = {**sampling_params, "max_tokens": request.max_tokens, "logprobs": True}
            try:
                output = await self.server_manager.generate(
                    request_id=request_id, prompt_ids=list(request.prompt_ids), sampling_params=wanted
                )
            except Exception as error:  # the server's fault, whatever it is
                raise PolicyError(f"verl's server failed: {type(error).__name__}: {error}") from error
            ids = tuple(output.token_ids)
            if output.stop_reason == "aborted" or not ids:
                raise PolicyError("verl's server broke a reply off")
            logprobs = tuple(float(each) for each in output.log_probs) if output.log_probs else None
            return TokenReply(ids, logprobs, ended=len(ids) < request.max_tokens or ids[-1] == self._renderer.end_id)

        sampling = SamplingParams(
            temperature=float(sampling_params.get("temperature", 1.0)), top_p=float(sampling_params.get("top_p", 1.0))
        )
        context = self._prompt_length + self._response_length
        policy = TokenPolicy("verl", self._renderer, sample, context=context, max_tokens=self._response_length)
        try:
            bundle = cached_bundle(str(kwargs["task_path"]))
            trajectory = await self._runner.run(bundle, policy, sampling, rng_seed=int(kwargs.get("index", 0)))
        except Exception as error:  # a task that cannot be read: one row, not the batch
            return self._nothing(f"{type(error).__name__}: {error}")
        return self._output(trajectory)

    def _output(self, trajectory: Trajectory) -> Any:
        if not trajectory.completion_ids or trajectory.loss_mask is None:
            failure = trajectory.failure
            return self._nothing(failure.message if failure else str(trajectory.status))
        trained = is_trained(trajectory, self._mask)
        mask = list(trajectory.loss_mask) if trained else [0] * len(trajectory.loss_mask)
        cut = self._response_length
        return AgentLoopOutput(
            prompt_ids=list(trajectory.prompt_ids or ()),
            response_ids=list(trajectory.completion_ids)[:cut],
            response_mask=mask[:cut],
            response_logprobs=list(trajectory.logprobs or ())[:cut] or None,
            reward_score=NO_REWARD if trajectory.reward is None else trajectory.reward,
            num_turns=2 * len(trajectory.steps) + 1,
            metrics=AgentLoopMetrics(generate_sequences=trajectory.model_s, tool_calls=trajectory.exec_s),
            extra_fields={
                "turn_scores": [],
                "tool_rewards": [],
                "sandmle_status": str(trajectory.status),
                "sandmle_terms": dict(trajectory.terms),
            },
        )

    def _nothing(self, reason: str) -> Any:
        """Returns a row that is not trained on, for an episode that left no ids."""
        filler = self._renderer.end_id
        return AgentLoopOutput(
            prompt_ids=[filler],
            response_ids=[filler],
            response_mask=[0],
            response_logprobs=[0.0],
            reward_score=NO_REWARD,
            num_turns=0,
            metrics=AgentLoopMetrics(),
            extra_fields={
                "turn_scores": [],
                "tool_rewards": [],
                "sandmle_status": "rollout_error",
                "sandmle_terms": {},
                "sandmle_failure": reason,
            },
        )


@register_adv_est("sandmle_grpo")  # type: ignore[untyped-decorator]
def sandmle_grpo(token_level_rewards: Any, response_mask: Any, index: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Returns advantages and returns of each token: GRPO over the episodes that have a reward.

    Args:
        token_level_rewards: verl puts a trajectory's reward on one token.  # [n_rows, n_tokens]
        response_mask: 1 at tokens that are trained on.  # [n_rows, n_tokens]
        index: The group of each row.  # [n_rows]
        **kwargs: verl's further arguments; not needed.
    """
    del kwargs
    scores = token_level_rewards.sum(-1).tolist()
    rewards = [None if score == NO_REWARD else float(score) for score in scores]
    values = group_advantages(rewards, [str(each) for each in np.asarray(index).tolist()]).values
    advantages = torch.tensor(values, dtype=torch.float32, device=response_mask.device)[:, None] * response_mask
    return advantages, advantages


def _plain(value: Any) -> Any:
    """Returns dicts and lists in the place of the configuration types that verl reads a YAML into."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value
