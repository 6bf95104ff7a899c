"""``sandmle rollout``: policies work on tasks; every episode becomes a line of the run directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sandmle.cli.episodes import EpisodesShown, print_summary, read_options
from sandmle.cli.output import JsonOption, error_console, print_json
from sandmle.errors import ConfigError


def command(
    tasks: Annotated[Path, typer.Option(metavar="DIR", help="A task, a folder of tasks, or what `generate` made.")],
    policy: Annotated[
        list[str],
        typer.Option(metavar="P", help="scripted:NAME, chat:MODEL, hf:FOLDER or package.module:opener; repeatedly."),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run directory; new, or entered with --resume.")],
    scaffold: Annotated[
        str, typer.Option(help="The loop round the policy: react, aide, aira, aira_mcts, aira_evolutionary, mle_agent.")
    ] = "react",
    scaffold_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of the scaffold; may be given repeatedly.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Episodes of each policy at each task.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that is there.")] = False,
    recipe: Annotated[
        str | None,
        typer.Option(metavar="RECIPE", help="Take rules of episodes and sampling from a training recipe instead."),
    ] = None,
    grammar: Annotated[str, typer.Option(help="How replies name their action: react or fenced.")] = "react",
    feedback: Annotated[str, typer.Option(help="Scores shown to the agent: none, public or oracle.")] = "public",
    reward: Annotated[str, typer.Option(help="Reward preset: paper, release or sparse.")] = "paper",
    max_turns: Annotated[int, typer.Option(min=1, help="Turns, actions or scripts in one episode.")] = 20,
    step_s: Annotated[float, typer.Option(min=0.1, help="Seconds for one execution.")] = 90.0,
    episode_s: Annotated[float, typer.Option(min=0.1, help="Seconds for one episode.")] = 1200.0,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of one reply.")] = None,
    token_budget: Annotated[int | None, typer.Option(min=1, help="Tokens of all replies of one episode.")] = None,
    cost_budget: Annotated[float | None, typer.Option(min=0.0, help="US dollars for one episode.")] = None,
    prompt_price: Annotated[float | None, typer.Option(min=0.0, help="US dollars per million prompt tokens.")] = None,
    reply_price: Annotated[float | None, typer.Option(min=0.0, help="US dollars per million reply tokens.")] = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="Sampling temperature.")] = 1.0,
    base_url: Annotated[str | None, typer.Option(help="Address of the model's server, with its /v1.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the API key.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests to a model in flight at once.")] = 8,
    sandbox: Annotated[str, typer.Option(help="Sandbox backend: see `sandmle doctor`.")] = "forkserver",
    workers: Annotated[int | None, typer.Option(min=1, help="Executions at once; one a core by default.")] = None,
    rng_seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    save_sft: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write good episodes as chats to learn from, one a line.")
    ] = None,
    sft_min_reward: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least reward of such an episode.")] = 0.0,
    sft_per_task: Annotated[int | None, typer.Option(min=1, help="At most so many of each task, the best.")] = None,
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

    if cost_budget is not None and (prompt_price is None or reply_price is None):
        raise ConfigError("--cost-budget needs prices; give --prompt-price and --reply-price as well")
    episode: Mapping[str, Any] = {
        "grammar": grammar,
        "feedback": feedback,
        "reward": reward,
        "max_turns": max_turns,
        "step_wall_s": step_s,
        "episode_s": episode_s,
        "max_trajectory_tokens": token_budget,
        "max_cost_usd": cost_budget,
    }
    sampling: Mapping[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
    if recipe is not None:
        episode, sampling = _rules_of(recipe)
    bundles = load_tasks(tasks)
    config = plan(
        bundles,
        policy,
        policy_options={
            "base_url": base_url,
            "api_key_env": api_key_env,
            "concurrency": concurrency,
            "usd_per_million_prompt": prompt_price,
            "usd_per_million_completion": reply_price,
        },
        scaffold=scaffold,
        scaffold_options=read_options(scaffold_option or []),
        attempts=attempts,
        rng_seed=rng_seed,
        sampling=sampling,
        episode=episode,
        sandbox=sandbox,
    )
    with open_backend(sandbox, workers=workers) as opened, EpisodesShown(quiet=as_json) as shown:
        try:
            summary = run_rollouts(config, bundles, out, sandbox=opened, resume=resume, on_progress=shown.update)
        except KeyboardInterrupt:
            error_console().print(
                f"stopped; go on with the same command and --resume (--out {out})", markup=False, soft_wrap=True
            )
            raise typer.Exit(130) from None
    if save_sft is not None:
        _save_sft(out, save_sft, sft_min_reward, sft_per_task)
    if as_json:
        print_json({"run": str(out), **summary})
    else:
        print_summary(out, summary)
    if summary["failures"]:
        raise typer.Exit(1)


def _rules_of(recipe: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns rules of episodes and sampling of a recipe."""
    from sandmle.training.recipe import load_recipe

    loaded = load_recipe(recipe)
    return loaded.episode.to_dict(), loaded.sampling.to_dict()


def _save_sft(run: Path, path: Path, min_reward: float, per_task: int | None) -> None:
    """Writes the good episodes of a run as demonstrations."""
    from sandmle.rollouts import read_trajectories
    from sandmle.training.demonstrations import DemonstrationFilter, save_demonstrations, select

    latest = {trajectory.key: trajectory for trajectory in read_trajectories(run)}
    wanted = DemonstrationFilter(min_reward=min_reward, per_task=per_task)
    demonstrations = select(latest.values(), wanted)
    save_demonstrations(path, demonstrations)
    error_console().print(f"wrote {len(demonstrations)} of {len(latest)} episodes to {path}", markup=False)
