"""``sandmle faults``: how many known faults the gate finds, and how often it refuses tasks that have none."""

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandmle.cli.output import JsonOption, console, error_console, print_json, progress_line
from sandmle.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from sandmle.gate.faults import Trial


def command(
    count: Annotated[int, typer.Option(min=1, help="Tasks to draw; none of them is chosen by the gate first.")] = 12,
    seeds: Annotated[str, typer.Option(metavar="all|ID,..", help="Seed tasks, taken in turn.")] = "all",
    rng_seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    faults: Annotated[str, typer.Option(metavar="all|NAME,..", help="Faults to put in.")] = "all",
    strengths: Annotated[
        str, typer.Option(metavar="S,..", help="Strengths from 0 to 1: for a leak, the share of rows that leak.")
    ] = "0.25,0.5,0.75,1",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one a core by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Puts each known fault into freshly drawn tasks and counts what the checks that are there for it say.

    A fault must be found where somebody who knows of it and of nothing else wins bronze or better, or where it spoils
    the task for certain. What the gate refuses without a fault, by all
    checks but the sandboxed ones, is counted as a false alarm, by check.

    Exit codes: 0 all faults that must be found were; 1 some were missed; 2 bad input.
    """
    from sandmle.authoring.fault_bench import measure_gate
    from sandmle.authoring.pipeline import GenerateRequest, chosen_seeds
    from sandmle.gate.faults import FAULTS, summarize_trials

    names = _names(seeds)
    request = GenerateRequest(seeds=chosen_seeds(names), count=count, rng_seed=rng_seed)
    wanted = list(FAULTS) if faults == "all" else _names(faults)
    for name in wanted:
        if name not in FAULTS:
            raise unknown_name("fault", name, FAULTS)
    trials: list[Trial] = []
    problems: list[str] = []
    runs = measure_gate(
        request,
        faults=wanted,
        strengths=_numbers(strengths),
        workers=workers or min(count, len(os.sched_getaffinity(0))),
    )
    with progress_line("tasks", count, quiet=as_json) as line:
        for number, run in enumerate(runs, start=1):
            trials += run.trials
            problems += [f"{run.seed_id}: {run.error}"] if run.error else []
            line.update(number)
    summary = {**summarize_trials(trials), "problems": problems}
    if as_json:
        print_json(summary)
    else:
        _print_table(summary)
    if summary["n_must_found"] < summary["n_must"]:
        raise typer.Exit(1)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in _names(text)]
    except ValueError as error:
        raise ConfigError(f"--strengths {text!r} are no numbers; give for example 0.5,1") from error
    if not numbers or not all(0 < number <= 1 for number in numbers):
        raise ConfigError(f"--strengths {text!r}: each lies above 0 and is at most 1")
    return numbers


def _print_table(summary: dict[str, Any]) -> None:
    screen = console()
    screen.print(f"{'fault':<20} {'strength':>8} {'tasks':>6} {'found':>6} {'must':>6} {'found':>6}  by", markup=False)
    for row in summary["faults"]:
        by = ", ".join(f"{name} {count}" for name, count in list(row["found_by"].items())[:3])
        screen.print(
            f"{row['fault']:<20} {row['strength']:>8.2f} {row['n_tasks']:>6} {row['n_found']:>6} {row['n_must']:>6} "
            f"{row['n_must_found']:>6}  {by}",
            markup=False,
        )
    alarms = ", ".join(f"{name} {count}" for name, count in summary["false_alarms"].items() if count) or "none"
    screen.print(
        f"refused without a fault: {summary['n_clean_refused']} of {summary['n_clean']} ({alarms})", markup=False
    )
    screen.print(f"found {summary['n_must_found']} of {summary['n_must']} faults that must be found", markup=False)
    for problem in summary["problems"]:
        error_console().print(f"sandmle: left out: {problem}", markup=False, soft_wrap=True)
