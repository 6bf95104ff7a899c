"""``sandmle eval``: policies are measured on a suite."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandmle.cli.episodes import EpisodesShown, failure_lines, read_options
from sandmle.cli.output import JsonOption, console, error_console, print_json
from sandmle.cli.report import print_report

if TYPE_CHECKING:
    from sandmle.evaluation.suites import Suite


def command(
    suite: Annotated[str, typer.Option(help="synthetic, mle-bench-lite, mle-bench, mle-dojo or package.module:Class.")],
    data: Annotated[
        Path, typer.Option("--data", "--tasks", metavar="DIR", help="Task set, or what the suite's own tool prepared.")
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run directory; new, or entered with --resume.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="P", help="scripted:NAME, chat:MODEL or package.module:opener; may be given repeatedly."),
    ] = None,
    submissions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of policies: grade the files of MLE-bench's submission.jsonl."),
    ] = None,
    competition: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only these, or @FILE with one id a line; repeatable.")
    ] = None,
    not_in: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Task set trained on: shared seeds are left out.")
    ] = None,
    grader: Annotated[str, typer.Option(help="own, or official: the benchmark's own code, if installed.")] = "own",
    leaderboards: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with <id>/leaderboard.csv, instead of known scores.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML with grading rules of further competitions.")
    ] = None,
    memory_mb: Annotated[int, typer.Option(min=64, help="Memory of one execution on real data.")] = 16_384,
    scaffold: Annotated[
        str, typer.Option(help="The loop round the policy: react, aide, aira, aira_mcts, aira_evolutionary, mle_agent.")
    ] = "react",
    scaffold_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of the scaffold; may be given repeatedly.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Episodes of each policy at each task, each with its seed.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that is there.")] = False,
    grammar: Annotated[str, typer.Option(help="How replies name their action: react or fenced.")] = "react",
    feedback: Annotated[
        str | None, typer.Option(help="Scores shown to the agent: none, public or oracle (marked). [suite's own]")
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option(min=1, help="Turns, actions or scripts, by scaffold. [suite's own]")
    ] = None,
    step_s: Annotated[float | None, typer.Option(min=0.1, help="Seconds for one execution. [suite's own]")] = None,
    episode_s: Annotated[float | None, typer.Option(min=0.1, help="Seconds for one episode. [suite's own]")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of one reply.")] = None,
    token_budget: Annotated[int | None, typer.Option(min=1, help="Tokens of all replies of one episode.")] = None,
    cost_budget: Annotated[float | None, typer.Option(min=0.0, help="US dollars for one episode.")] = None,
    prompt_price: Annotated[float | None, typer.Option(min=0.0, help="US dollars per million prompt tokens.")] = None,
    reply_price: Annotated[float | None, typer.Option(min=0.0, help="US dollars per million reply tokens.")] = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="Sampling temperature.")] = 1.0,
    base_url: Annotated[str | None, typer.Option(help="Address of the model's server, with its /v1.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the API key.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests to a model in flight at once.")] = 8,
    sandbox: Annotated[str, typer.Option(help="Sandbox backend: forkserver or bwrap.")] = "forkserver",
    workers: Annotated[int | None, typer.Option(min=1, help="Executions at once; one a core by default.")] = None,
    rng_seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Measures policies on a suite and prints the report.

    A task that is missing or broken never stops the others: its episodes count as failures, and --resume runs them once
    the task is there.

    Exit codes: 0 all episodes ended on their own; 1 some ended by a fault of model server, sandbox, grader or task, as
    the report tells; 2 bad input; 130 stopped with Ctrl-C.
    """
    from sandmle.env import checked
    from sandmle.errors import ConfigError
    from sandmle.evaluation.evaluate import evaluate, prepare
    from sandmle.evaluation.suites import SuiteOptions, open_suite
    from sandmle.sandbox import open_backend

    options = {
        "data": data,
        "competitions": _ids(competition or []),
        "not_in": tuple(not_in or ()),
        "grader": grader,
        "leaderboards": leaderboards,
        "rules": rules,
        "memory_mb": memory_mb,
    }
    opened_suite = open_suite(suite, checked(SuiteOptions, options))
    if submissions is not None:
        if policy:
            raise ConfigError("--policy and --submissions exclude each other; give one of them")
        _grade_submissions(opened_suite, submissions, out, as_json=as_json)
        return
    if cost_budget is not None and (prompt_price is None or reply_price is None):
        raise ConfigError("--cost-budget needs prices; give --prompt-price and --reply-price as well")
    if not policy:
        raise ConfigError("name a policy with --policy, or a list of submissions with --submissions")
    episode: dict[str, Any] = {
        "feedback": feedback,
        "max_turns": max_turns,
        "step_wall_s": step_s,
        "episode_s": episode_s,
        "max_trajectory_tokens": token_budget,
        "max_cost_usd": cost_budget,
    }
    evaluation = prepare(
        opened_suite,
        policy,
        grader=grader,
        episode={"grammar": grammar, **{name: value for name, value in episode.items() if value is not None}},
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
        sampling={"temperature": temperature, "max_tokens": max_tokens},
        sandbox=sandbox,
    )
    for sentence in evaluation.tasks.missing.values():
        error_console().print(f"sandmle: not run: {sentence}", markup=False, soft_wrap=True)
    with open_backend(sandbox, workers=workers) as opened, EpisodesShown(quiet=as_json) as shown:
        try:
            summary = evaluate(evaluation, out, sandbox=opened, resume=resume, on_progress=shown.update)
        except KeyboardInterrupt:
            error_console().print(
                f"stopped; go on with the same command and --resume (--out {out})", markup=False, soft_wrap=True
            )
            raise typer.Exit(130) from None
    if as_json:
        print_json({"run": str(out), **summary})
    else:
        print_report([out])
        for line in failure_lines(summary["failures"]):
            console().print(line, markup=False)
        for path in (out, *summary["reports"]):
            console().print(f"wrote {path}", markup=False)
    if summary["failures"]:
        raise typer.Exit(1)


def _grade_submissions(suite: "Suite", path: Path, out: Path, *, as_json: bool) -> None:
    from sandmle.evaluation.suites.mle_bench_reports import grade_submissions, read_submissions

    report = grade_submissions(suite, read_submissions(path), out)
    if as_json:
        print_json(report)
    else:
        for each in report["competition_reports"]:
            score = "no score" if each["score"] is None else f"score {each['score']}"
            console().print(f"{each['competition_id']}: {score}; {each['message']}", markup=False)
        console().print(
            f"{report['total_valid_submissions']} of {report['total_runs']} valid, {report['total_medals']} medals; "
            f"wrote {out}",
            markup=False,
        )
    for each in report["not_graded"]:
        error_console().print(f"sandmle: not graded: {each['reason']}", markup=False, soft_wrap=True)
    if report["not_graded"]:
        raise typer.Exit(1)


def _ids(given: list[str]) -> tuple[str, ...]:
    from sandmle.errors import ConfigError

    ids: list[str] = []
    for each in given:
        if not each.startswith("@"):
            ids.append(each)
            continue
        try:
            lines = Path(each[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the list of ids {each[1:]}; give a text file with one id a line") from error
        ids.extend(line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))
    return tuple(dict.fromkeys(ids))
