"""``sandmle bench``: what things cost on this machine, side by side in one run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandmle.cli import bench_scaffolds
from sandmle.cli.output import JsonOption, console, print_json, progress_line
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.sandbox.bench import BenchReport, BenchRow

app = typer.Typer(
    name="bench",
    help="What things cost on this machine, side by side in one run.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_HEADER = ("script", "run by", "n", "CPU ms", "min", "wall ms", "min", "1 worker /s", "2 workers /s", "less CPU")


@app.callback()
def _root() -> None:
    pass


@app.command("sandbox")
def bench_sandbox(
    n: Annotated[int, typer.Option("--n", min=1, help="Runs of each script; a quarter of it for cold starts.")] = 20,
    python: Annotated[
        str | None, typer.Option("--python", metavar="PATH", help="Interpreter for the scripts; this one by default.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE.md", help="Also writes the table as a page, with a chart beside it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Times an empty script and three typical solutions, run cold, in a Jupyter kernel, and in each sandbox.

    CPU is that of all processes together, the server's and the caller's included; the last column says how many times
    as much cold Python takes. What does not run here is named with the reason.

    Exit codes: 0 measured, 2 bad input or a script failed.
    """
    from sandmle.sandbox.bench import run_bench

    if page is not None and (page.suffix != ".md" or not page.parent.is_dir()):
        raise ConfigError(f"--page {page} is not a .md file in an existing folder; give for example bench.md")
    with progress_line("bench", 4, quiet=as_json) as line:
        report = run_bench(n=n, python=python, progress=lambda done, _total, note: line.update(done, note))
    if page is not None:
        from sandmle.cli.bench_page import write_page

        options = f" --python {python}" if python is not None else ""
        write_page(report, page, table_lines(report), f"sandmle bench sandbox --n {n}{options} --page {page.name}")
    if as_json:
        print_json(report)
    else:
        _show(report)


@app.command("soak")
def bench_soak(
    n: Annotated[
        int, typer.Option("--n", min=1, help="Executions: good, failing, timing out, hoarding memory.")
    ] = 1000,
    backend: Annotated[str, typer.Option("--backend", help="Sandbox backend: see `sandmle doctor`.")] = "forkserver",
    workers: Annotated[int, typer.Option("--workers", min=1, help="Executions at the same time.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Runs many executions of every kind, and looks for what they have left and for wrong or late endings.

    Exit codes: 0 nothing is left and every status is right, 1 something is wrong, 2 the backend does not run here.
    """
    from sandmle.sandbox.soak import soak

    with progress_line("soak", n, quiet=as_json) as line:
        report = soak(backend, n=n, workers=workers, progress=line.update)
    if as_json:
        print_json(report)
    else:
        screen = console()
        for name, count in report.statuses.items():
            screen.print(f"{name}: {count}", markup=False)
        screen.print(
            f"{report.n} executions on {report.workers} workers in {report.wall_s:.0f} s; the latest ended "
            f"{max(0.0, report.latest_s):.2f} s after its deadline; memory {report.memory_mb_early:.1f} MB early, "
            f"{report.memory_mb_late:.1f} MB late",
            markup=False,
        )
        for problem in report.problems:
            screen.print(f"problem: {problem}", markup=False)
    raise typer.Exit(1 if report.problems else 0)


@app.command("authoring")
def bench_authoring(
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Tasks in flight at once.")] = 50,
    turns: Annotated[int, typer.Option("--turns", min=1, help="Replies of each task.")] = 10,
    delay_ms: Annotated[float, typer.Option("--delay-ms", min=0.0, help="What the server takes for a reply.")] = 200.0,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often each way is measured.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Times the author of --author llm against the client library alone, with a server that answers after a fixed time.

    All hold the same conversations over HTTP, in turns; the server is a process of its own. CPU is this process's.

    Exit codes: 0 measured, 2 bad input or the llm extra is missing.
    """
    from sandmle.authoring.roles.bench import run_bench

    with progress_line("bench", rounds, quiet=as_json) as line:
        report = run_bench(
            n_tasks=tasks,
            n_turns=turns,
            delay_s=delay_ms / 1000,
            n_rounds=rounds,
            progress=lambda done, _total, note: line.update(done, note),
        )
    if as_json:
        print_json(report)
        return
    screen = console()
    screen.print(
        "| asked by | wall s | above ideal s | CPU s | CPU ms a reply |\n|---|---:|---:|---:|---:|", markup=False
    )
    for row in report.rows:
        cells = (f"{row.wall_s:.2f}", f"{row.above_ideal_s:.2f}", f"{row.cpu_s:.2f}", f"{row.cpu_ms_a_reply:.2f}")
        screen.print(f"| {' | '.join((row.entrant, *cells))} |", markup=False)
    screen.print(
        f"{report.n_tasks} tasks of {report.n_turns} replies, {1000 * report.delay_s:g} ms each: "
        f"{report.ideal_s:g} s at least; medians of {report.n_rounds}\n"
        f"the author's own overhead over its client: {report.own_s:.2f} s, {report.own_share:.1%} of its wall time; "
        f"with its client's, over the ideal: {report.above_ideal_share:.1%}\n"
        f"{report.machine}, load {report.load_before:.1f} before and {report.load_after:.1f} after",
        markup=False,
    )


app.command("scaffolds")(bench_scaffolds.command)


def table_lines(report: "BenchReport") -> list[str]:
    """Returns the table in Markdown."""
    lines = ["| " + " | ".join(_HEADER) + " |", "|---|---|" + "---:|" * (len(_HEADER) - 2)]
    return lines + ["| " + " | ".join(_cells(row)) + " |" for row in report.rows]


def _cells(row: "BenchRow") -> tuple[str, ...]:
    milliseconds = (row.cpu_median_s, row.cpu_min_s, row.wall_median_s, row.wall_min_s)
    return (
        row.workload,
        row.entrant,
        str(row.n),
        *(f"{1000 * seconds:.1f}" for seconds in milliseconds),
        f"{row.per_s_one_worker:.2f}",
        f"{row.per_s_two_workers:.2f}",
        f"{row.cpu_ratio:.1f} x",
    )


def _show(report: "BenchReport") -> None:
    from sandmle.sandbox.bench.measure import describe

    screen = console()
    if screen.is_terminal:
        from rich.table import Table

        table = Table(*_HEADER, box=None, header_style="bold")
        for row in report.rows:
            table.add_row(*_cells(row))
        screen.print(table)
    else:
        for line in table_lines(report):
            screen.print(line, markup=False)
    for name, mb in report.server_mb.items():
        screen.print(f"memory of the {name} server: {mb:g} MB", markup=False)
    for name, reason in report.missing.items():
        screen.print(f"not measured: {name}: {reason}", markup=False)
    screen.print(describe(report), markup=False)
