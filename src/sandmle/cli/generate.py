"""``sandmle generate``: makes a task set from seeds."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sandmle.cli.output import JsonOption, console, print_json, progress_line
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.authoring.funnel import ProposalRecord
    from sandmle.authoring.pipeline import GenerateProgress

_STAGE_WORDS = {
    "proposed": "proposed",
    "data_ran": "data ran",
    "evaluator_ran": "evaluator ran",
    "gate_passed": "gate passed",
}


def command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the task set; new, or entered with --resume.")],
    count: Annotated[
        int | None, typer.Option(min=1, help="Tasks to propose; the gate decides how many are kept. In a replay: all.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="all|ID,..", help="Seed tasks, taken in turn.")] = "all",
    rng_seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    author: Annotated[str, typer.Option(help="procedural, llm, or package.module:Author.")] = "procedural",
    preset: Annotated[
        Literal["calibrated", "paper"], typer.Option(help="How milestones are set and what the gate asks of them.")
    ] = "calibrated",
    difficulty: Annotated[
        str,
        typer.Option(
            metavar="NAME|0..1", help="easy, medium, hard, or a number from 0 to 1; the author's own if empty."
        ),
    ] = "",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes, or Ray actors; one a core of this machine by default.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Run on this Ray cluster: auto or host:port; DIR must be shared by its nodes."
        ),
    ] = None,
    sandbox: Annotated[str, typer.Option(help="Sandbox backend for the gate's solver.")] = "forkserver",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that is there.")] = False,
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER:NAME", help="Model of --author llm, like openai:gpt-5.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server, with its /v1.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Name of the variable that holds the key.")] = None,
    record: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the conversations there.")] = None,
    replay: Annotated[
        str | None, typer.Option(metavar="DIR|shipped", help="Answer from recorded conversations; nobody is asked.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(min=0.0, metavar="USD", help="Never spend more.")] = None,
    max_total_tokens: Annotated[int | None, typer.Option(min=1, help="Never use more tokens.")] = None,
    prices: Annotated[
        str | None, typer.Option(metavar="IN,OUT", help="US dollars for a million tokens, where no list has them.")
    ] = None,
    requests: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 16,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of the longest reply.")] = 12_000,
    repairs: Annotated[int, typer.Option(min=0, help="Replies of one role that may be sent back.")] = 3,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print prompts and the estimated cost; ask nobody.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Makes tasks from seeds, puts them through the gate, and keeps those that pass.

    DIR gets tasks/, funnel.jsonl (one line a proposal, with the reason for each loss), run.json and summary.json. It is
    safe to kill at any moment. The same options give the same tasks, byte for byte, whatever the number of workers.

    With --author llm a model writes the tasks; its scripts run in the sandbox. Every reply is kept on disk before it is
    used, so --resume pays for none twice. --replay shipped needs no model: it answers from recordings in the package.

    Exit codes: 0 at least one task was kept; 1 none was; 2 bad input.
    """
    from sandmle.authoring.pipeline import GenerateRequest, chosen_seeds, generate
    from sandmle.parallel.run_folder import SUMMARY_FILE

    names = [name.strip() for name in seeds.split(",") if name.strip()]
    given = {"model": model, "record": record, "replay": replay, "max-cost": max_cost, "dry-run": dry_run or None}
    foreign = [name for name, value in given.items() if value is not None]
    if author != "llm" and foreign:
        raise ConfigError(f"--{foreign[0]} belongs to --author llm; add it")
    plan = None
    if author == "llm":
        from sandmle.authoring.roles.options import LLMOptions, SpendLimits
        from sandmle.cli.llm import plan_run, read_prices, show_dry_run
        from sandmle.env import checked

        plan = plan_run(
            names,
            count,
            LLMOptions(
                model=model or "",
                base_url=base_url,
                api_key_env=api_key_env,
                max_repairs=repairs,
                max_tokens=max_tokens,
            ),
            checked(
                SpendLimits,
                {
                    "requests": requests,
                    "max_cost_usd": max_cost,
                    "max_total_tokens": max_total_tokens,
                    **read_prices(prices),
                },
            ),
            replay,
        )
        names, count = plan.names, plan.count
        if dry_run:
            show_dry_run(chosen_seeds(names), plan, as_json)
            return
    if count is None:
        raise ConfigError("how many tasks? give --count N")
    request = GenerateRequest(
        seeds=chosen_seeds(names),
        count=count,
        rng_seed=rng_seed,
        author=author,
        preset=preset,
        difficulty=difficulty,
        author_options=plan.options.to_dict() if plan else {},
        sandbox=sandbox,
    )
    workers = workers or min(count, len(os.sched_getaffinity(0)))
    with progress_line("tasks", count, quiet=as_json) as line:
        records = generate(
            request,
            out,
            workers=workers,
            ray=ray,
            resume=resume,
            on_progress=lambda progress: line.update(progress.n_done, _note(progress)),
            author=plan.author_factory(out, preset, record) if plan else None,
            on_authoring=lambda progress: line.update(0, progress.note()),
        )
    summary = json.loads((out / SUMMARY_FILE).read_text())
    if as_json:
        print_json({"out": str(out), **summary})
    else:
        _print_summary(out, summary, records)
    if not summary["n_accepted"]:
        raise typer.Exit(1)


def _note(progress: "GenerateProgress") -> str:
    from sandmle.authoring.funnel import summarize

    summary = summarize(progress.records)
    parts = [f"{summary['n_accepted']} kept"]
    parts += [f"{count} lost to {reason}" for reason, count in list(summary["losses"].items())[:3]]
    return ", ".join(parts)


def _print_summary(out: Path, summary: dict[str, Any], records: list["ProposalRecord"]) -> None:
    screen = console()
    for stage, count in summary["funnel"].items():
        screen.print(f"{_STAGE_WORDS[stage]:<14} {count:>5}", markup=False)
    for record in records:
        if not record.accepted:
            number = record.proposal.index + 1
            screen.print(
                f"lost {number} ({record.proposal.seed_id}) to {record.lost_to}: {record.reason}", markup=False
            )
    screen.print(
        f"kept {summary['n_accepted']} of {summary['n_proposed']} tasks in {out / 'tasks'}, "
        f"{summary['mean_cpu_s']:.2f} CPU s a task",
        markup=False,
    )
    spent = summary.get("authoring")
    if spent:
        screen.print(_cost_line(spent, summary["n_accepted"]), markup=False)


def _cost_line(spent: dict[str, Any], n_accepted: int) -> str:
    tokens = spent["prompt_tokens"] + spent["completion_tokens"]
    line = f"{spent['model']}: {spent['n_replies']} replies, {spent['n_repairs']} repairs, {tokens} tokens"
    if spent["cost_usd"] is None:
        return f"{line}, cost unknown"
    each = f", {spent['cost_usd'] / n_accepted:.4f} USD a kept task" if n_accepted else ""
    return f"{line}, {spent['cost_usd']:.4f} USD{each}"
