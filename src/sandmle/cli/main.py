"""The ``sandmle`` command: one module a sub-command, one place where errors become a sentence and an exit code.

Exit codes: 0 done, 1 done but the answer is no (a task is not valid, a submission is invalid), 2 bad input or our own
fault; each command's help says what it uses.
"""

import sys
from typing import Annotated

import typer

import sandmle
from sandmle.cli import (
    bench,
    doctor,
    exec_,
    export,
    faults,
    generate,
    grade,
    import_,
    play,
    quickstart,
    report,
    reproduce,
    rollout,
    seeds,
    split,
    train,
    validate,
    view,
)
from sandmle.cli import eval as eval_
from sandmle.cli.output import error_console
from sandmle.errors import SandmleError

app = typer.Typer(
    name="sandmle",
    help="Synthetic, micro-scale, verifiable competitions for training machine-learning-engineering agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sandmle {sandmle.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    del debug, version  # main() looks for --debug itself: it sees errors after typer has let go


app.command("quickstart")(quickstart.command)
app.add_typer(seeds.app, name="seeds")
app.command("generate")(generate.command)
app.command("validate")(validate.command)
app.command("reproduce")(reproduce.command)
app.command("split")(split.command)
app.command("faults")(faults.command)
app.command("export")(export.command)
app.command("import")(import_.command)
app.command("grade")(grade.command)
app.command("exec")(exec_.command)
app.command("play")(play.command)
app.command("rollout")(rollout.command)
app.command("eval")(eval_.command)
app.add_typer(train.app, name="train")
app.command("report")(report.command)
app.command("view")(view.command)
app.add_typer(bench.app, name="bench")
app.command("doctor")(doctor.command)


def main() -> None:
    """Runs the command line; errors made on purpose become one sentence on stderr and exit code 2."""
    try:
        app()
    except SandmleError as error:
        if "--debug" in sys.argv:
            raise
        error_console().print(f"sandmle: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
