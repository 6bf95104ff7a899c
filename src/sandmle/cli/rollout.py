"""``sandmle rollout``: policies work on tasks; every episode becomes a line of the run directory."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandmle.cli.output import JsonOption, ProgressLine, console, error_console, print_json, progress_line

if TYPE_CHECKING:
    from sandmle.rollouts import RolloutProgress

_MAX_REASONS = 5


def command(
    tasks: Annotated[Path, typer.Option(metavar="DIR", help="A task, a folder of tasks, or what `generate` made.")],
    policy: Annotated[
        list[str],
        typer.Option(metavar="P", help="scripted:NAME, chat:MODEL or package.module:opener; may be given repeatedly."),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run directory; new, or entered with --resume.")],
    scaffold: Annotated[str, typer.Option(help="The loop round the policy.")] = "react",
    attempts: Annotated[int, typer.Option(min=1, help="Episodes of each policy at each task.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that is there.")] = False,
    grammar: Annotated[str, typer.Option(help="How replies name their action: react or fenced.")] = "react",
    feedback: Annotated[str, typer.Option(help="Scores shown to the agent: none, public or oracle.")] = "public",
    reward: Annotated[str, typer.Option(help="Reward preset: paper, release or sparse.")] = "paper",
    max_turns: Annotated[int, typer.Option(min=1, help="Model calls in one episode.")] = 20,
    step_s: Annotated[float, typer.Option(min=0.1, help="Seconds for one execution.")] = 90.0,
    episode_s: Annotated[float, typer.Option(min=0.1, help="Seconds for one episode.")] = 1200.0,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of one reply.")] = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="Sampling temperature.")] = 1.0,
    base_url: Annotated[str | None, typer.Option(help="Address of the model's server, with its /v1.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the API key.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests to a model in flight at once.")] = 8,
    sandbox: Annotated[str, typer.Option(help="Sandbox backend: see `sandmle doctor`.")] = "forkserver",
    workers: Annotated[int | None, typer.Option(min=1, help="Executions at once; one a core by default.")] = None,
    rng_seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Lets policies work on tasks and records every episode.

    The run directory is safe to kill at any moment; --resume runs what is missing, and again what failed by a fault of
    the machinery. Such a fault never stops the other episodes.

    Exit codes: 0 all episodes ended on their own; 1 some ended by a fault of model server, sandbox, grader or task, as
    summary.json tells; 2 bad input; 130 stopped with Ctrl-C.
    """
    from sandmle.rollouts import load_tasks, plan, run_rollouts
    from sandmle.sandbox import open_backend

    bundles = load_tasks(tasks)
    config = plan(
        bundles,
        policy,
        policy_options={"base_url": base_url, "api_key_env": api_key_env, "concurrency": concurrency},
        scaffold=scaffold,
        attempts=attempts,
        rng_seed=rng_seed,
        sampling={"temperature": temperature, "max_tokens": max_tokens},
        episode={
            "grammar": grammar,
            "feedback": feedback,
            "reward": reward,
            "max_turns": max_turns,
            "step_wall_s": step_s,
            "episode_s": episode_s,
        },
        sandbox=sandbox,
    )
    with open_backend(sandbox, workers=workers) as opened, _Shown(quiet=as_json) as shown:
        try:
            summary = run_rollouts(config, bundles, out, sandbox=opened, resume=resume, on_progress=shown.update)
        except KeyboardInterrupt:
            error_console().print(f"stopped; go on with --resume --out {out}", markup=False, soft_wrap=True)
            raise typer.Exit(130) from None
    if as_json:
        print_json({"run": str(out), **summary})
    else:
        _print_summary(out, summary)
    if summary["failures"]:
        raise typer.Exit(1)


class _Shown(ExitStack):
    """The progress line of the episodes that this run adds; it begins when their number is known."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self._quiet = quiet
        self._line: ProgressLine | None = None
        self._n_before = 0

    def update(self, progress: "RolloutProgress") -> None:
        """Shows how far the run is."""
        if self._line is None:
            self._n_before = progress.n_done
            n_new = progress.n_episodes - progress.n_done
            self._line = self.enter_context(progress_line("episodes", n_new, quiet=self._quiet))
        self._line.update(progress.n_done - self._n_before, _note(progress))


def _note(progress: "RolloutProgress") -> str:
    parts = [f"tasks {progress.n_tasks_done}/{progress.n_tasks}"]
    if progress.mean_reward is not None:
        parts.append(f"mean reward {progress.mean_reward:.3f}")
    parts.append(f"{progress.executions_per_s:.2f} executions/s")
    if progress.n_failed:
        parts.append(f"{progress.n_failed} failed")
    return ", ".join(parts)


def _print_summary(out: Path, summary: dict[str, Any]) -> None:
    screen = console()
    for name, numbers in summary["policies"].items():
        mean = "none" if numbers["mean_reward"] is None else f"{numbers['mean_reward']:.3f}"
        medals = " ".join(f"{medal} {count}" for medal, count in numbers["medals"].items())
        screen.print(
            f"{name}: {numbers['n_episodes']} episodes, mean reward {mean}, valid {numbers['n_valid']}, "
            f"above median {numbers['n_above_median']}, {medals}, {numbers['n_executions']} executions",
            markup=False,
        )
    for line in _failure_lines(summary["failures"]):
        screen.print(line, markup=False)
    screen.print(f"wrote {out}; compare with: sandmle report {out}", markup=False)


def _failure_lines(failures: list[dict[str, Any]]) -> list[str]:
    """Returns one line a reason, the most frequent first, with one episode that it befell."""
    reasons = [(each["boundary"], " ".join(each["message"].split())) for each in failures]
    counts = Counter(reasons)
    first = dict(reversed(list(zip(reasons, failures, strict=True))))
    lines = []
    for reason, count in counts.most_common(_MAX_REASONS):
        each = first[reason]
        where = f"{each['policy']} at {each['task_id']}, attempt {each['attempt']}"
        lines.append(f"failed: {count} episode(s) for a fault of the {reason[0]}: {reason[1]} (first: {where})")
    if len(counts) > _MAX_REASONS:
        lines.append(f"failed: {len(counts) - _MAX_REASONS} further reasons, see summary.json")
    return lines
