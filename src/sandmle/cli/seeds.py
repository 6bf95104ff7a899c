"""``sandmle seeds``: the catalogue of seed competitions."""

from typing import Annotated

import typer

from sandmle.cli.output import JsonOption, console, print_json
from sandmle.records import SeedRecord

app = typer.Typer(
    name="seeds",
    help="The catalogue of real competitions that synthetic tasks are made from.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("list")
def list_seeds(
    everything: Annotated[
        bool, typer.Option("--all", help="Show the 22 records of MLE-bench-Lite too; they are never seeds.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Lists the 60 seeds, one a line. Exit code: 0."""
    from sandmle.seeds import catalogue

    records = [record for record in catalogue() if everything or not record.is_lite]
    if as_json:
        print_json([record.to_dict() for record in records])
        return
    screen = console()
    if screen.is_terminal:
        from rich.table import Table

        table = Table(*_HEADER, box=None, header_style="bold")
        for record in records:
            table.add_row(*_row(record))
        screen.print(table)
        return
    for record in records:
        typer.echo("\t".join(_row(record)))


@app.command("show")
def show_seed(
    seed_id: Annotated[str, typer.Argument(metavar="ID", help="The competition's id in MLE-bench.")],
    as_json: JsonOption = False,
) -> None:
    """Shows one record with its Structural DNA. Exit codes: 0 shown, 2 unknown id."""
    from sandmle.seeds import load_record

    record = load_record(seed_id)
    if as_json:
        print_json(record)
        return
    for line in _lines(record):
        typer.echo(line)


_HEADER = ("id", "use", "modalities", "task", "prediction", "metric", "direction")


def _row(record: SeedRecord) -> tuple[str, ...]:
    dna = record.dna
    return (
        record.id,
        _use(record),
        "+".join(dna.modalities),
        dna.task_kind,
        dna.prediction_kind,
        dna.metric,
        dna.direction,
    )


def _use(record: SeedRecord) -> str:
    return "evaluation" if record.is_lite else "seed"


def _lines(record: SeedRecord) -> list[str]:
    facts = record.to_dict()
    dna = facts.pop("dna")
    leaderboard = dna.pop("leaderboard")
    note = " (MLE-bench-Lite: for evaluation only, refused as a seed)" if record.is_lite else ""
    lines = [f"{record.id}: {_use(record)}{note}", "", "Competition"]
    hidden = ("schema_version", "id", "is_lite")
    lines += _pairs({name: value for name, value in facts.items() if name not in hidden})
    lines += ["", "Structural DNA"]
    lines += _pairs({name: value for name, value in dna.items() if name != "schema_version"})
    lines += ["", "Leaderboard"]
    lines += _pairs(leaderboard)
    return lines


def _pairs(values: dict[str, object]) -> list[str]:
    return [f"  {name:<20} {_plain(value)}" for name, value in values.items() if value is not None]


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
