"""The supervised warm start through TRL's SFT trainer: only the tokens of replies are learnt."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

import sandmle
from sandmle.errors import ConfigError
from sandmle.policies.loading import old_names_allowed
from sandmle.policies.renderers import ChatRenderer
from sandmle.records import Message, sha256_of
from sandmle.training.demonstrations import TrainingRows, tokenize
from sandmle.training.folder import METRICS_FILE, TrainingFolder
from sandmle.training.models import lora_config, open_model
from sandmle.training.recipe import Recipe
from sandmle.training.stopwatch import peak_memory_mb

OnStep = Callable[[dict[str, Any]], None]


def train_sft(
    recipe: Recipe,
    chats: Iterable[Sequence[Message]],
    out: Path,
    *,
    resume: bool = False,
    on_step: OnStep | None = None,
) -> dict[str, Any]:
    """Trains a model on demonstrations and returns a summary; the model goes to ``out/final``, adapters merged.

    Args:
        recipe: The run.
        chats: Demonstrations; see :func:`sandmle.training.demonstrations.read_demonstrations`.
        out: The folder of the run.
        resume: Go on with a run that is there, from its last checkpoint.
        on_step: Told the numbers of each train_step.

    Raises:
        ConfigError: The recipe, the demonstrations or the folder cannot be used.
    """
    demonstrations = [tuple(chat) for chat in chats]
    folder = TrainingFolder(out, _identity(recipe, demonstrations), resume=resume)
    # Chats that open alike are of one task.
    texts = ((_opening(chat), message.content) for chat in demonstrations for message in chat)
    model, tokenizer = open_model(recipe.model, cache=out / "model-cache", texts=texts, rng_seed=recipe.rng_seed)
    renderer = ChatRenderer(tokenizer, recipe.model.source, recipe.model.template_options)
    context = recipe.model.context or int(model.config.max_position_embeddings)
    data = tokenize(demonstrations, renderer, min(recipe.sft.max_length, context))
    with old_names_allowed():
        trainer = SFTTrainer(
            model=model,
            args=_arguments(recipe, folder, data),
            train_dataset=Dataset.from_list(data.rows),
            processing_class=tokenizer,
            peft_config=lora_config(recipe.model.lora),
            callbacks=[_Log(folder, on_step or (lambda numbers: None))],
        )
    trainer.remove_callback(PrinterCallback)
    checkpoint = folder.last_checkpoint()
    folder.forget_after(checkpoint[1] if checkpoint else 0)
    with old_names_allowed():
        trainer.train(resume_from_checkpoint=str(checkpoint[0]) if checkpoint else None)
    trained = trainer.accelerator.unwrap_model(trainer.model)
    whole = trained.merge_and_unload() if recipe.model.lora is not None else trained

    def save(path: Path) -> None:
        whole.save_pretrained(path)
        tokenizer.save_pretrained(path)

    folder.save_model("final", save)
    lines = folder.lines(METRICS_FILE)
    losses = [line["loss"] for line in lines]
    return {
        "train_steps": len(losses),
        "demonstrations": len(data.rows),
        "too_long": data.n_too_long,
        "reply_tokens": data.n_tokens,
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "memory_mb": max(line["memory_mb"] for line in lines),
        "model": str(out / "final"),
    }


def _opening(chat: Sequence[Message]) -> str:
    """Returns what stands before the first reply."""
    return "\n".join(message.content for message in takewhile(lambda each: each.role != "assistant", chat))


class _Log(TrainerCallback):
    """Writes a line for each train_step."""

    def __init__(self, folder: TrainingFolder, on_step: OnStep) -> None:
        self._folder, self._on_step = folder, on_step
        self._started_s = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Starts the clock of a train_step."""
        self._started_s = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any) -> None:
        """Takes what the trainer logs."""
        if logs is None or "loss" not in logs:
            return
        line = {
            "train_step": state.global_step,
            "loss": float(logs["loss"]),
            "grad_norm": float(logs["grad_norm"]),
            "learning_rate": float(logs["learning_rate"]),
            "wall_s": time.monotonic() - self._started_s,
            "memory_mb": peak_memory_mb(),
        }
        self._folder.append(METRICS_FILE, line)
        self._on_step(line)


def _arguments(recipe: Recipe, folder: TrainingFolder, data: TrainingRows) -> SFTConfig:
    sft = recipe.sft
    on_cpu = not torch.cuda.is_available()
    micro = min(sft.micro_batch, sft.batch_size)
    if sft.batch_size % micro:
        raise ConfigError(f"sft.micro_batch {micro} does not divide sft.batch_size {sft.batch_size}")
    return SFTConfig(
        output_dir=str(folder.checkpoints),
        max_steps=sft.train_steps,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=sft.batch_size // micro,
        learning_rate=sft.learning_rate,
        lr_scheduler_type="linear" if sft.decay else "constant_with_warmup",
        warmup_steps=sft.warmup_steps,
        weight_decay=0.0,
        max_length=None,
        seed=recipe.rng_seed,
        use_cpu=on_cpu,
        bf16=not on_cpu,
        activation_checkpointing=not on_cpu,
        logging_steps=1,
        save_strategy="steps",
        save_steps=max(1, sft.train_steps // 4),
        save_total_limit=1,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=not on_cpu,
    )


def _identity(recipe: Recipe, demonstrations: Sequence[Sequence[Message]]) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "kind": "sft",
        "recipe": recipe.to_dict(),
        "demonstrations": sha256_of([[message.to_dict() for message in chat] for chat in demonstrations]),
        "versions": {"sandmle": sandmle.__version__},
    }
