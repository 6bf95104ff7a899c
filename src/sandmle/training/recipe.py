"""A recipe: everything that a training run depends on, in one YAML file."""

import difflib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from sandmle.env import EpisodeConfig, checked
from sandmle.errors import ConfigError, unknown_name
from sandmle.policies import SamplingParams
from sandmle.records import Record
from sandmle.training.masks import MaskPolicy


class TinyConfig(Record):
    """A Qwen3 with random weights and a tokenizer of its own; the defaults are below a million parameters."""

    vocab: int = Field(default=1024, ge=300)
    hidden: int = Field(default=64, gt=0)
    layers: int = Field(default=2, gt=0)
    heads: int = Field(default=4, gt=0)
    context: int = Field(default=8192, gt=0)
    lines: bool = False
    """Lines that several tasks share become tokens, beside the ``vocab`` ordinary ones."""


class LoraSettings(Record):
    """Low-rank adapters instead of all weights."""

    r: int = Field(default=16, gt=0)
    alpha: int = Field(default=32, gt=0)
    targets: tuple[str, ...] | Literal["all-linear"] = "all-linear"


class ModelSettings(Record):
    """The model to train."""

    source: str
    """A folder, a name in the local cache, ``gguf:PACKAGE`` for a model that a Python package ships, or ``tiny``."""
    tiny: TinyConfig = TinyConfig()
    """Sizes, for the source ``tiny``."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    context: int | None = Field(default=None, gt=0)
    """Most tokens of prompt and reply; None for what the model was made for."""
    template_options: dict[str, Any] = Field(default_factory=dict)
    """Variables of the chat template, such as ``enable_thinking``."""
    lora: LoraSettings | None = None


class SFTSettings(Record):
    """The supervised warm start (paper, section 5: Seed-SFT)."""

    learning_rate: float = Field(default=1e-5, gt=0)
    batch_size: int = Field(default=32, gt=0)
    micro_batch: int = Field(default=1, gt=0)
    train_steps: int = Field(default=40, gt=0)
    max_length: int = Field(default=40000, gt=0)
    """Examples with more tokens are left out, and counted."""
    warmup_steps: int = Field(default=0, ge=0)
    decay: bool = False
    """The learning rate falls to 0 in a straight line, instead of staying."""


class GRPOSettings(Record):
    """Trajectory-level GRPO; the defaults are the paper's (section 5 and the published launch scripts)."""

    train_steps: int = Field(default=80, gt=0)
    prompts: int = Field(default=16, gt=0)
    """Tasks of one train_step."""
    group_size: int = Field(default=4, gt=1)
    """Episodes of each of them."""
    micro_batch: int = Field(default=1, gt=0)
    """Trajectories in memory at once during the update."""
    learning_rate: float = Field(default=1e-6, gt=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    clip_low: float = Field(default=0.2, gt=0)
    clip_high: float = Field(default=0.28, gt=0)
    loss: Literal["sequence_mean", "token_mean"] = "sequence_mean"
    mask: MaskPolicy = MaskPolicy()
    shuffle_rewards: bool = False
    """A control: rewards are dealt out anew within each group, so that nothing can be learnt from them."""
    curriculum: bool = False
    """Draw tasks by how much their groups have differed so far; off as in the paper."""
    eval_every: int = Field(default=5, gt=0)
    """Train_steps between two validations, also the distance of checkpoints."""
    eval_attempts: int = Field(default=1, gt=0)
    """Episodes at each validation task."""
    keep_checkpoints: int = Field(default=2, gt=0)


class Recipe(Record):
    """A training run."""

    schema_version: Literal[1] = 1
    name: str
    model: ModelSettings
    episode: EpisodeConfig = EpisodeConfig()
    sampling: SamplingParams = SamplingParams()
    max_prompt_tokens: int = Field(default=8192, gt=0)
    """Tasks whose first prompt is longer are left out, and counted."""
    sft: SFTSettings = SFTSettings()
    grpo: GRPOSettings = GRPOSettings()
    sandbox: str = "forkserver"
    rng_seed: int = 0


def shipped_recipes() -> list[str]:
    """Returns the names of the recipes that come with the package."""
    folder = resources.files("sandmle.training") / "recipes"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """Reads a recipe and changes single values.

    Args:
        name: A file, or the name of one that comes with the package.
        overrides: ``key=value``, with dots for keys within keys and YAML for values: ``grpo.learning_rate=1e-5``.

    Raises:
        ConfigError: There is no such recipe, or a key or value is not allowed.
    """
    values = _read(name)
    for override in overrides:
        _override(values, override)
    _check_keys(values, Recipe)
    return checked(Recipe, values)


def _read(name: str) -> dict[str, Any]:
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the recipe {path}: {error}") from error
    elif name in shipped_recipes():
        text = (resources.files("sandmle.training") / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")
    else:
        raise unknown_name("recipe", name, shipped_recipes())
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"recipe {name} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"recipe {name} must be a mapping of keys to values")
    return values


def _override(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    *parents, last = key.strip().split(".")
    if not equals or not last:
        raise ConfigError(f"{override!r} is no key=value, such as grpo.learning_rate=1e-5")
    place = values
    for parent in parents:
        below = place.setdefault(parent, {})
        if below is None:
            below = place[parent] = {}
        if not isinstance(below, dict):
            raise ConfigError(f"{override!r}: {parent} holds a value, not keys")
        place = below
    try:
        place[last] = _number(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ConfigError(f"{override!r}: the value is not YAML") from error


def _number(value: Any) -> Any:
    """Returns 1e-5 as a number, which YAML 1.1 takes for text."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _check_keys(values: dict[str, Any], kind: type[Record], prefix: str = "") -> None:
    for key, value in values.items():
        field = kind.model_fields.get(key)
        if field is None:
            close = difflib.get_close_matches(str(key), kind.model_fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(kind.model_fields)}"
            raise ConfigError(f"unknown key {prefix}{key}; {hint}")
        nested = field.annotation
        if isinstance(value, dict) and isinstance(nested, type) and issubclass(nested, Record):
            _check_keys(value, nested, f"{prefix}{key}.")
