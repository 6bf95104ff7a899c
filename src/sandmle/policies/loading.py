"""Loads a language model and its tokenizer from a folder, with one sentence where that is not possible."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from sandmle.errors import ConfigError

ADAPTER_FILE = "adapter_config.json"


@contextmanager
def old_names_allowed() -> Iterator[None]:
    """Silences what TRL 1.16 and peft 0.21 cause by asking transformers 5.24 for names that it has since changed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*gradient_checkpointing.* is deprecated", category=FutureWarning)
        yield


def load_model(source: str, *, dtype: str = "auto", device: str | None = None) -> tuple[Any, Any]:
    """Returns a causal language model and its tokenizer.

    Args:
        source: A folder that ``save_pretrained`` or a trainer of this package wrote, adapters included, or the name of
            a model in the local cache or on the hub.
        dtype: ``float32``, ``bfloat16`` or ``auto``: float32 on a CPU, else what the model was saved in.
        device: Where to put it; None for the first GPU, or the CPU where there is none.

    Raises:
        ConfigError: There is no such model, or it cannot be read.
    """
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    wanted = ("float32" if place == "cpu" else "auto") if dtype == "auto" else dtype
    folder = Path(source)
    is_adapter = (folder / ADAPTER_FILE).exists()
    if folder.exists() and not is_adapter and not (folder / "config.json").exists():
        raise ConfigError(f"{source} holds no model; give a folder with a config.json or an {ADAPTER_FILE}")
    if not folder.exists() and _is_meant_as_folder(folder):
        raise ConfigError(f"there is no folder {source}; give one that holds a model, or the name of a model")
    try:
        if is_adapter:
            from peft import AutoPeftModelForCausalLM

            with old_names_allowed():
                model = AutoPeftModelForCausalLM.from_pretrained(source, dtype=wanted)
        else:
            model = AutoModelForCausalLM.from_pretrained(source, dtype=wanted)
        tokenizer = AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"model {source} cannot be loaded: {reason}") from error
    return model.to(place), tokenizer


def _is_meant_as_folder(path: Path) -> bool:
    """Tells a path from the name of a model, ``NAME`` or ``OWNER/NAME``, which the hub would be asked for in vain."""
    return path.is_absolute() or len(path.parts) > 2 or (len(path.parts) == 2 and Path(path.parts[0]).is_dir())
