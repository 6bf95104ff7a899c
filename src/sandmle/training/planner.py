"""What a recipe will need: memory, tokens, executions and hours. Arithmetic from stated assumptions, not measured."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from sandmle.errors import ConfigError
from sandmle.training.recipe import Recipe

_GB = 1e9


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a model, as its published configuration gives them."""

    params_b: float
    """Billions of parameters."""
    active_b: float
    """Billions of parameters that one token passes through."""
    layers: int
    kv_heads: int
    head_dim: int


SHAPES: "MappingProxyType[str, ModelShape]" = MappingProxyType(
    {
        "Qwen/Qwen3-8B": ModelShape(8.2, 8.2, 36, 8, 128),
        "Qwen/Qwen3-14B": ModelShape(14.8, 14.8, 40, 8, 128),
        "Qwen/Qwen3-30B-A3B-Thinking-2507": ModelShape(30.5, 3.3, 48, 4, 128),
    }
)


class PlanAssumptions(BaseModel):
    """What the plan is reckoned from; each may be changed."""

    reply_share: float = 0.6
    """Share of a trajectory's tokens that the model writes; the rest are observations."""
    length_share: float = 0.35
    """Length of a mean trajectory as a share of the longest that is allowed."""
    execution_s: float = 1.2
    """Seconds of one execution on a task of 50 to 200 training rows."""
    decode_tokens_per_gpu_s: float = 2500.0
    """Tokens that one GPU writes a second with 8 billion active parameters and a full batch; scales with these."""
    decode_tokens_per_episode_s: float = 60.0
    """Tokens a second of one episode, however few there are: the longest one keeps the others waiting."""
    train_flops_per_gpu: float = 3.0e14
    """Useful floating-point operations a second of one GPU in the update."""


@dataclass(frozen=True)
class TrainingPlan:
    """Estimates.

    Attributes:
        numbers: By name, with the unit in the name.
        assumptions: What they are reckoned from, one sentence each.
        warnings: What will not work.
    """

    numbers: dict[str, float]
    assumptions: list[str]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as plain JSON types."""
        return {"numbers": self.numbers, "assumptions": self.assumptions, "warnings": self.warnings}


def plan_training(
    recipe: Recipe,
    *,
    n_gpus: int = 8,
    gpu_memory_gb: float = 80.0,
    assumptions: PlanAssumptions | None = None,
) -> TrainingPlan:
    """Returns what the GRPO part of a recipe needs on one node.

    Args:
        recipe: The run.
        n_gpus: GPUs that share weights, optimiser and generation.
        gpu_memory_gb: Memory of each.
        assumptions: None for the defaults.

    Raises:
        ConfigError: The size of the model is not known.
    """
    given = assumptions or PlanAssumptions()
    shape = SHAPES.get(recipe.model.source)
    if shape is None:
        raise ConfigError(
            f"the plan is for models on GPUs and knows no sizes of {recipe.model.source}; known: {', '.join(SHAPES)}"
        )
    grpo, episode = recipe.grpo, recipe.episode
    episodes = grpo.prompts * grpo.group_size
    context = recipe.model.context or 40960
    length = given.length_share * context
    replies = given.reply_share * length
    trained_b = 0.02 * shape.params_b if recipe.model.lora else shape.params_b
    weights_gb = 2 * shape.params_b
    optimizer_gb = 12 * trained_b + 2 * trained_b  # fp32 master copy and two moments, and 16-bit gradients
    kv_gb_per_token = 2 * 2 * shape.layers * shape.kv_heads * shape.head_dim / _GB
    free_gb = max(0.0, n_gpus * gpu_memory_gb * 0.85 - weights_gb)
    at_once = min(float(episodes), free_gb / (kv_gb_per_token * context)) if free_gb else 0.0
    together_s = episodes * replies / (n_gpus * given.decode_tokens_per_gpu_s * 8.2 / shape.active_b)
    decode_s = max(together_s, given.reply_share * context / given.decode_tokens_per_episode_s)
    update_s = 6 * shape.active_b * 1e9 * episodes * length / (n_gpus * given.train_flops_per_gpu)
    executions = episodes * episode.max_turns * 0.6
    step_s = decode_s + update_s + episode.max_turns * 0.6 * given.execution_s
    numbers = {
        "episodes_per_train_step": float(episodes),
        "weights_gb": weights_gb,
        "optimizer_and_gradients_gb": optimizer_gb,
        "kv_cache_gb_per_full_episode": kv_gb_per_token * context,
        "full_episodes_at_once": at_once,
        "tokens_per_train_step": episodes * length,
        "executions_per_train_step": executions,
        "sandboxes_to_keep_up": max(1.0, executions * given.execution_s / max(1e-9, decode_s)),
        "generation_s_per_train_step": decode_s,
        "update_s_per_train_step": update_s,
        "hours": grpo.train_steps * step_s / 3600,
    }
    warnings = []
    if weights_gb * 2 + optimizer_gb > n_gpus * gpu_memory_gb * 0.9:
        warnings.append(
            f"weights twice (training and generation) and optimiser take {weights_gb * 2 + optimizer_gb:.0f} GB of "
            f"{n_gpus * gpu_memory_gb:.0f} GB; offload the optimiser, use adapters, or more GPUs"
        )
    if at_once < 1:
        warnings.append("not even one full episode fits beside the weights; lower model.context or use more GPUs")
    return TrainingPlan(numbers=numbers, assumptions=_told(given, shape, context), warnings=warnings)


def _told(given: PlanAssumptions, shape: ModelShape, context: int) -> list[str]:
    return [
        f"{shape.params_b:g} billion parameters, {shape.active_b:g} active, 16-bit weights, fp32 Adam states",
        f"a mean trajectory has {given.length_share:.0%} of the {context} tokens that fit; the model writes "
        f"{given.reply_share:.0%} of them",
        f"60% of the turns run a script, {given.execution_s:g} s each",
        f"{given.decode_tokens_per_gpu_s:g} tokens a second and GPU for 8 billion active parameters, full batches",
        f"the longest episode fills the context, at {given.decode_tokens_per_episode_s:g} tokens a second",
        f"{given.train_flops_per_gpu:.0e} useful operations a second and GPU in the update",
    ]
