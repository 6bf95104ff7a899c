"""GRPO on whole trajectories, from a recipe and task sets to a trained model in a folder."""

import random
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig

import sandmle
from sandmle.errors import ConfigError
from sandmle.policies.batching import BatchedPolicy
from sandmle.policies.hf import HFGenerator, make_policy
from sandmle.policies.loading import old_names_allowed
from sandmle.rollouts import Job
from sandmle.sandbox.base import Sandbox
from sandmle.tasks import Bundle
from sandmle.training.engine import POLICY, Engine, RolloutTimes, step_seed
from sandmle.training.folder import METRICS_FILE, VALIDATION_FILE, TrainingFolder
from sandmle.training.metrics import episode_metrics, time_metrics
from sandmle.training.models import lora_config, open_model
from sandmle.training.prompts import first_messages, tokenizer_texts
from sandmle.training.recipe import Recipe
from sandmle.training.schedule import TaskSchedule
from sandmle.training.stopwatch import peak_memory_mb
from sandmle.training.trainer import StepBatch, TrainingError, TrajectoryTrainer

OnStep = Callable[[dict[str, Any]], None]
"""Told the numbers of each train_step and validation."""


def train_grpo(
    recipe: Recipe,
    tasks: Mapping[str, Bundle],
    validation: Mapping[str, Bundle],
    out: Path,
    *,
    sandbox: Sandbox,
    resume: bool = False,
    on_step: OnStep | None = None,
) -> dict[str, Any]:
    """Trains a model by GRPO and returns a summary.

    Args:
        recipe: The run.
        tasks: Tasks to train on, by id.
        validation: Tasks of other seeds, that choose the best checkpoint; may be empty.
        out: The folder of the run.
        sandbox: A started sandbox.
        resume: Go on with a run that is there, from its last checkpoint.
        on_step: Told after each train_step and validation.

    Raises:
        ConfigError: The recipe, the tasks or the folder cannot be used.
        TrainingError: Training cannot go on; the last checkpoint is usable.
    """
    if shared := sorted(set(tasks) & set(validation)):
        raise ConfigError(f"task {shared[0]} is both trained on and validated on; give validation tasks of other seeds")
    folder = TrainingFolder(out, _identity(recipe, tasks, validation), resume=resume)
    model, tokenizer = open_model(
        recipe.model, cache=out / "model-cache", texts=tokenizer_texts(tasks, recipe), rng_seed=recipe.rng_seed
    )
    run = _Run(recipe, tasks, validation, folder, on_step or (lambda numbers: None))
    run.prepare(model, tokenizer, sandbox)
    return run.train()


class _Run:
    """The state of one call of :func:`train_grpo`."""

    def __init__(
        self,
        recipe: Recipe,
        tasks: Mapping[str, Bundle],
        validation: Mapping[str, Bundle],
        folder: TrainingFolder,
        on_step: OnStep,
    ) -> None:
        self._recipe, self._folder, self._on_step = recipe, folder, on_step
        self._tasks, self._validation = dict(tasks), dict(validation)
        self._best: float | None = None
        self._pending: dict[str, Any] = {}
        self._times = RolloutTimes(0.0, 0.0, 0.0, 0.0, 0)
        self._aside_s = 0.0

    def prepare(self, model: Any, tokenizer: Any, sandbox: Sandbox) -> None:
        """Builds policy, engine and trainer."""
        recipe, grpo = self._recipe, self._recipe.grpo
        n_given = len(self._tasks) + len(self._validation)
        policy = make_policy(
            model,
            tokenizer,
            f"hf:{recipe.model.source}",
            template_options=recipe.model.template_options,
            context=recipe.model.context,
        )
        usable = _fitting(self._tasks, policy, recipe)
        if self._validation:
            self._validation = {
                task_id: self._validation[task_id] for task_id in _fitting(self._validation, policy, recipe)
            }
        self._n_too_long = n_given - len(usable) - len(self._validation)
        self._schedule = TaskSchedule(tuple(usable), recipe.rng_seed, grpo.curriculum)
        self._engine = Engine(recipe, {**self._tasks, **self._validation}, sandbox=sandbox, policy=policy)
        with old_names_allowed():
            warnings.filterwarnings("ignore", message=".*rollout_func.*experimental.*")
            self._trainer = TrajectoryTrainer(
                settings=grpo,
                collect=self._collect,
                report=self._report,
                model=model,
                processing_class=tokenizer,
                args=_arguments(recipe, self._folder),
                train_dataset=Dataset.from_dict({"prompt": [str(slot) for slot in range(grpo.prompts)]}),
                peft_config=lora_config(recipe.model.lora),
                callbacks=[_Validate(self)],
            )
        self._trainer.remove_callback(PrinterCallback)
        # With adapters the trainer wraps the model; what is trained is also what acts.
        assert isinstance(policy.generator, HFGenerator)
        policy.generator.model = self._trainer.accelerator.unwrap_model(self._trainer.model)
        self._tokenizer = tokenizer

    def train(self) -> dict[str, Any]:
        """Trains to the end, from the last checkpoint if there is one."""
        checkpoint = self._folder.last_checkpoint()
        done = checkpoint[1] if checkpoint else 0
        self._folder.forget_after(done)
        for line in self._folder.lines(METRICS_FILE):
            self._schedule.learn(line["groups"])
        known = [line["reward"] for line in self._folder.lines(VALIDATION_FILE) if line["reward"] is not None]
        self._best = max(known, default=None)
        for broken in self._folder.checkpoints.glob("checkpoint-*"):
            if not (broken / "trainer_state.json").exists():
                shutil.rmtree(broken)
        with old_names_allowed():
            self._trainer.train(resume_from_checkpoint=str(checkpoint[0]) if checkpoint else None)
        self._folder.save_model("final", self._save)
        steps, validations = self._folder.lines(METRICS_FILE), self._folder.lines(VALIDATION_FILE)
        return {
            "train_steps": len(steps),
            "tasks_too_long": self._n_too_long,
            "first_reward": steps[0]["reward"],
            "last_reward": steps[-1]["reward"],
            "validation": [[line["train_step"], line["reward"]] for line in validations],
            "best_validation": self._best,
            "seconds": sum(line["times"]["wall_s"] for line in steps),
            "memory_mb": max(line["memory_mb"] for line in steps),
        }

    def validate(self, train_step: int) -> None:
        """Runs the validation tasks and keeps the model if it is the best so far."""
        if not self._validation or any(
            line["train_step"] == train_step for line in self._folder.lines(VALIDATION_FILE)
        ):
            return
        recipe = self._recipe
        jobs = [
            Job(task_id=task_id, policy=POLICY, attempt=attempt)
            for task_id in sorted(self._validation)
            for attempt in range(recipe.grpo.eval_attempts)
        ]
        started_s = time.monotonic()
        # The same seeds each time: a difference between two validations is one of the model.
        trajectories = self._engine.run(jobs, rng_seed=step_seed(recipe.rng_seed, "validation", 0))
        numbers = {"train_step": train_step, **episode_metrics(trajectories)}
        reward = numbers["reward"]
        if reward is not None and (self._best is None or reward > self._best):
            self._best = reward
            self._folder.save_model("best", self._save)
        self._folder.write_rollouts(f"validation-{train_step:05d}", trajectories)
        self._folder.append(VALIDATION_FILE, numbers)
        self._on_step({"kind": "validation", **numbers})
        self._aside_s += time.monotonic() - started_s

    def _collect(self, slots: Sequence[int], train_step: int) -> StepBatch:
        recipe = self._recipe
        drawn = self._schedule.draw(train_step, recipe.grpo.prompts)
        jobs: list[Job] = []
        groups: list[str] = []
        for slot in slots:
            task_id = drawn[slot]
            # A task that is drawn twice has two groups, with other attempts.
            earlier = drawn[:slot].count(task_id) * recipe.grpo.group_size
            groups.append(f"{slot}:{task_id}")
            attempt = earlier + groups[:-1].count(groups[-1])
            jobs.append(Job(task_id=task_id, policy=POLICY, attempt=attempt))
        self._aside_s = 0.0
        trajectories = self._engine.run(jobs, rng_seed=step_seed(recipe.rng_seed, "train", train_step))
        self._times = self._engine.times
        if all(each.reward is None for each in trajectories):
            reason = next((each.failure.message for each in trajectories if each.failure), "no reason was recorded")
            raise TrainingError(
                f"every episode of train_step {train_step} failed by a fault that is not the model's ({reason}); mend "
                "it and go on with --resume"
            )
        rewards = [each.reward for each in trajectories]
        self._pending = {
            **episode_metrics(trajectories),
            "groups": _signals(groups, rewards),
        }
        self._folder.write_rollouts(f"train-{train_step + 1:05d}", trajectories)  # as in metrics.jsonl
        if recipe.grpo.shuffle_rewards:
            rewards = _shuffled(rewards, groups, step_seed(recipe.rng_seed, "shuffle", train_step))
        return StepBatch(trajectories, groups, rewards)

    def _report(self, numbers: dict[str, Any]) -> None:
        # A validation comes between the update and the report; it is no part of the train_step.
        times = time_metrics(self._times, numbers.pop("wall_s") - self._aside_s)
        line = {
            **numbers,
            **self._pending,
            "times": times,
            "memory_mb": peak_memory_mb(),
            "time": round(time.time(), 3),
        }
        self._schedule.learn(line["groups"])
        self._folder.append(METRICS_FILE, line)
        self._on_step({"kind": "train_step", **line})

    def _save(self, path: Path) -> None:
        self._trainer.accelerator.unwrap_model(self._trainer.model).save_pretrained(path)
        self._tokenizer.save_pretrained(path)


class _Validate(TrainerCallback):
    """Validates before the first train_step, every few, and after the last."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Judges the model as it came."""
        if state.global_step == 0:
            self._run.validate(0)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Judges the model that has just been updated."""
        if state.global_step % args.save_steps == 0 or state.global_step == state.max_steps:
            self._run.validate(state.global_step)


def _arguments(recipe: Recipe, folder: TrainingFolder) -> GRPOConfig:
    grpo = recipe.grpo
    n_rows = grpo.prompts * grpo.group_size
    if n_rows % grpo.micro_batch:
        raise ConfigError(f"grpo.micro_batch {grpo.micro_batch} does not divide the {n_rows} episodes of a train_step")
    if recipe.sampling.temperature == 0:
        raise ConfigError(
            "sampling.temperature 0 makes all episodes of a group alike; GRPO needs one above 0, such as 1.0"
        )
    import torch

    on_cpu = not torch.cuda.is_available()
    return GRPOConfig(
        output_dir=str(folder.checkpoints),
        max_steps=grpo.train_steps,
        per_device_train_batch_size=grpo.micro_batch,
        gradient_accumulation_steps=n_rows // grpo.micro_batch,
        num_generations=grpo.group_size,
        learning_rate=grpo.learning_rate,
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=grpo.max_grad_norm,
        temperature=recipe.sampling.temperature,
        beta=0.0,
        loss_type="grpo",
        shuffle_dataset=False,
        seed=recipe.rng_seed,
        use_cpu=on_cpu,
        bf16=not on_cpu,
        activation_checkpointing=not on_cpu,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=grpo.eval_every,
        save_total_limit=grpo.keep_checkpoints,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=not on_cpu,
    )


def _fitting(tasks: Mapping[str, Bundle], policy: BatchedPolicy, recipe: Recipe) -> list[str]:
    """Returns the tasks whose first prompt fits and leaves room for a reply."""
    sizes = {task_id: _prompt_size(bundle, policy, recipe) for task_id, bundle in tasks.items()}
    if not sizes:
        raise ConfigError("there is no task to train on; make some with: sandmle generate")
    limit = min(recipe.max_prompt_tokens, policy.generator.context - 1)
    fitting = sorted(task_id for task_id, size in sizes.items() if size <= limit)
    if not fitting:
        raise ConfigError(
            f"no task fits: the shortest first prompt has {min(sizes.values())} tokens and the limit is {limit}; raise "
            "max_prompt_tokens, or take a model with a longer context"
        )
    return fitting


def _prompt_size(bundle: Bundle, policy: BatchedPolicy, recipe: Recipe) -> int:
    return len(policy.renderer.prompt(first_messages(bundle, recipe.episode)))


def _signals(groups: Sequence[str], rewards: Sequence[float | None]) -> dict[str, bool]:
    """Returns for each task whether a group of it held two different rewards."""
    found: dict[str, set[float]] = {}
    for group, reward in zip(groups, rewards, strict=True):
        found.setdefault(group, set()).update([] if reward is None else [reward])
    signals: dict[str, bool] = {}
    for group, values in found.items():
        task_id = group.partition(":")[2]
        signals[task_id] = signals.get(task_id, False) or len(values) > 1
    return signals


def _shuffled(rewards: Sequence[float | None], groups: Sequence[str], seed: int) -> list[float | None]:
    rng = random.Random(seed)
    dealt = list(rewards)
    for group in dict.fromkeys(groups):
        places = [at for at, each in enumerate(groups) if each == group]
        values = [rewards[at] for at in places]
        rng.shuffle(values)
        for at, value in zip(places, values, strict=True):
            dealt[at] = value
    return dealt


def _identity(recipe: Recipe, tasks: Mapping[str, Bundle], validation: Mapping[str, Bundle]) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "kind": "grpo",
        "recipe": recipe.to_dict(),
        "tasks": {task_id: tasks[task_id].spec.task_hash for task_id in sorted(tasks)},
        "validation": {task_id: validation[task_id].spec.task_hash for task_id in sorted(validation)},
        "versions": {"sandmle": sandmle.__version__},
    }
