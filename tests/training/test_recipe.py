"""Recipes: all that ship can be read, single values be changed, mistakes are named."""

from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.training.planner import plan_training
from sandmle.training.recipe import load_recipe, shipped_recipes


@pytest.mark.parametrize("name", shipped_recipes())
def test_shipped_recipes_can_be_read(name: str) -> None:
    assert load_recipe(name).name == name


def test_the_papers_numbers() -> None:
    recipe = load_recipe("qwen3-8b")
    grpo = recipe.grpo
    assert (grpo.prompts, grpo.group_size, grpo.train_steps, grpo.learning_rate) == (16, 4, 80, 1e-6)
    assert (grpo.clip_low, grpo.clip_high, grpo.loss) == (0.2, 0.28, "sequence_mean")
    assert (recipe.episode.max_turns, recipe.episode.step_wall_s, recipe.sampling.temperature) == (20, 90, 1.0)
    assert (recipe.max_prompt_tokens, recipe.model.context) == (8192, 8192 + 32768)


def test_values_are_changed_by_key() -> None:
    recipe = load_recipe("ci-tiny", ["grpo.learning_rate=1e-5", "model.lora.r=4", "episode.reward=sparse"])
    assert recipe.grpo.learning_rate == 1e-5
    assert recipe.model.lora is not None
    assert recipe.model.lora.r == 4
    assert recipe.episode.reward == "sparse"


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("grpo.lerning_rate=1", "did you mean 'learning_rate'"),
        ("grpo.group_size=1", "group_size"),
        ("name", "key=value"),
        ("name.x=1", "holds a value"),
        ("grpo.clip_low=[", "not YAML"),
    ],
)
def test_mistakes_are_named(override: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        load_recipe("ci-tiny", [override])


def test_recipes_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'qwen3-8b'"):
        load_recipe("qwen3-8")
    with pytest.raises(ConfigError, match="cannot read"):
        load_recipe(str(tmp_path / "none.yaml"))
    (tmp_path / "list.yaml").write_text("[1]")
    with pytest.raises(ConfigError, match="mapping"):
        load_recipe(str(tmp_path / "list.yaml"))


def test_a_plan_grows_with_the_model_and_warns_of_too_little_memory() -> None:
    small, large = plan_training(load_recipe("qwen3-8b")), plan_training(load_recipe("qwen3-14b"))
    assert small.numbers["weights_gb"] < large.numbers["weights_gb"]
    assert small.numbers["episodes_per_train_step"] == 64
    assert small.warnings == []
    assert plan_training(load_recipe("qwen3-30b-a3b"), n_gpus=1).warnings
    with pytest.raises(ConfigError, match="knows no sizes"):
        plan_training(load_recipe("ci-tiny"))
