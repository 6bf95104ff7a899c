"""``sandmle train``: supervised warm start, GRPO, and a plan of what a recipe will need."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from sandmle.cli.output import JsonOption, ProgressLine, console, error_console, print_json, progress_line
from sandmle.errors import ConfigError

app = typer.Typer(
    help="Trains a model: sft (warm start), grpo (by acting), curve (how that went), plan (what a recipe will need).",
    no_args_is_help=True,
)

RecipeArgument = Annotated[str, typer.Argument(metavar="RECIPE", help="A YAML file, or a recipe that is shipped.")]
OverrideOption = Annotated[
    list[str] | None, typer.Option("-o", metavar="KEY=VALUE", help="Changes one value of the recipe; repeatedly.")
]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="Folder of the run; new, or entered with --resume.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint of a run that is there.")]


@app.command("sft")
def sft(
    recipe: RecipeArgument,
    data: Annotated[Path, typer.Option(metavar="FILE", help="Demonstrations, as `rollout --save-sft` writes them.")],
    out: OutOption,
    override: OverrideOption = None,
    resume: ResumeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Teaches a model from demonstrations; only the tokens of replies are learnt.

    The model goes to DIR/final: use it with `-o model.source=DIR/final`, or let it act with `--policy hf:DIR/final`.

    Exit codes: 0 done; 2 bad input, or training could not go on; 130 stopped with Ctrl-C.
    """
    _need_extra()
    from sandmle.training.demonstrations import read_demonstrations
    from sandmle.training.recipe import load_recipe
    from sandmle.training.sft import train_sft

    wanted = load_recipe(recipe, override or ())
    with progress_line("train_steps", wanted.sft.train_steps, quiet=as_json) as line:
        shown = _Shown(line)
        with _stoppable(out):
            summary = train_sft(wanted, read_demonstrations(data), out, resume=resume, on_step=shown.sft)
    if as_json:
        print_json(summary)
        return
    console().print(
        f"{summary['train_steps']} train_steps on {summary['demonstrations']} demonstrations "
        f"({summary['reply_tokens']} reply tokens, {summary['too_long']} left out for their length): "
        f"loss {summary['first_loss']:.3f} -> {summary['last_loss']:.3f}, at most {summary['memory_mb']} MB; "
        f"wrote {summary['model']}",
        markup=False,
    )


@app.command("grpo")
def grpo(
    recipe: RecipeArgument,
    tasks: Annotated[Path, typer.Option(metavar="DIR", help="Tasks to train on.")],
    out: OutOption,
    validation: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Tasks of held-out seeds that choose the best checkpoint.")
    ] = None,
    override: OverrideOption = None,
    resume: ResumeOption = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Executions at once; one a core by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Trains a model by GRPO: it works on tasks, and what earned more than its group's mean becomes likelier.

    DIR holds metrics.jsonl (one line a train_step), validation.jsonl, the trajectories, checkpoints, and the models
    best and final. It may be killed at any moment; --resume goes on from the last checkpoint with the same episodes.

    Exit codes: 0 done; 2 bad input, or training could not go on; 130 stopped with Ctrl-C.
    """
    _need_extra()
    from sandmle.rollouts import load_tasks
    from sandmle.sandbox import open_backend
    from sandmle.training.grpo import train_grpo
    from sandmle.training.recipe import load_recipe

    wanted = load_recipe(recipe, override or ())
    bundles = load_tasks(tasks)
    held_out = load_tasks(validation) if validation is not None else {}
    with (
        open_backend(wanted.sandbox, workers=workers) as sandbox,
        progress_line("train_steps", wanted.grpo.train_steps, quiet=as_json) as line,
        _stoppable(out),
    ):
        shown = _Shown(line)
        summary = train_grpo(wanted, bundles, held_out, out, sandbox=sandbox, resume=resume, on_step=shown.grpo)
    if as_json:
        print_json(summary)
        return
    screen = console()
    if summary["tasks_too_long"]:
        screen.print(f"{summary['tasks_too_long']} tasks were left out: their first prompt is too long", markup=False)
    for train_step, reward in summary["validation"]:
        screen.print(f"validation after {train_step} train_steps: {_number(reward)}", markup=False)
    screen.print(
        f"{summary['train_steps']} train_steps in {summary['seconds']:.0f} s: training reward "
        f"{_number(summary['first_reward'])} -> {_number(summary['last_reward'])}, at most {summary['memory_mb']} MB; "
        f"wrote {out}",
        markup=False,
    )


@app.command("curve")
def curve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The --out of a `train grpo`, ended or not.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file; RUN/curve.png by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Draws the rewards of a GRPO run by train_step as a PNG, and prints its path.

    Exit codes: 0 written; 2 there is no train_step yet, or the file cannot be written.
    """
    from sandmle.viewer.curve import read_curve, write_curve

    path = write_curve(read_curve(run), out or run / "curve.png")
    if as_json:
        print_json({"path": str(path), "bytes": path.stat().st_size})
    else:
        typer.echo(str(path))


@app.command("plan")
def plan(
    recipe: RecipeArgument,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of one node.")] = 8,
    gpu_memory_gb: Annotated[float, typer.Option(min=1, help="Memory of each.")] = 80.0,
    override: OverrideOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prints what a recipe needs: memory, tokens, executions and hours, and what that is reckoned from.

    Exit codes: 0 done; 2 bad input.
    """
    from sandmle.training.planner import plan_training
    from sandmle.training.recipe import load_recipe

    estimate = plan_training(load_recipe(recipe, override or ()), n_gpus=gpus, gpu_memory_gb=gpu_memory_gb)
    if as_json:
        print_json(estimate.to_dict())
        return
    screen = console()
    for name, value in estimate.numbers.items():
        screen.print(f"{name}: {value:,.4g}" if value < 1e4 else f"{name}: {value:,.0f}", markup=False)
    screen.print("reckoned from:", markup=False)
    for line in estimate.assumptions:
        screen.print(f"  {line}", markup=False)
    for warning in estimate.warnings:
        screen.print(f"note: {warning}", markup=False)


class _Shown:
    """Progress of a training run."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line
        self._validation = ""

    def sft(self, numbers: dict[str, Any]) -> None:
        """Shows a train_step of the warm start."""
        self._line.update(numbers["train_step"], f"loss {numbers['loss']:.3f}")

    def grpo(self, numbers: dict[str, Any]) -> None:
        """Shows a train_step or a validation."""
        if numbers["kind"] == "validation":
            self._validation = f", validation {_number(numbers['reward'])}"
            return
        valid = _number(numbers["valid_share"])
        note = f"reward {_number(numbers['reward'])}, valid {valid}, masked {numbers['masked_share']:.2f}"
        self._line.update(numbers["train_step"], note + self._validation)


@contextmanager
def _stoppable(out: Path) -> Iterator[None]:
    """Ends the command with one line on Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        error_console().print(
            f"stopped; go on with the same command and --resume (--out {out})", markup=False, soft_wrap=True
        )
        raise typer.Exit(130) from None


def _need_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("torch", "transformers", "trl", "peft", "datasets") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"training needs {missing[0]}, which is not installed; run: pip install 'sandmle[train]'")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
