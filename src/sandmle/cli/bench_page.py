"""The page and the chart that ``sandmle bench sandbox --page`` writes."""

from pathlib import Path
from typing import TYPE_CHECKING

from sandmle.sandbox.bench.measure import COLD_EVERY, describe

if TYPE_CHECKING:
    from sandmle.sandbox.bench import BenchReport

_PAGE = """# What an execution costs

Made by this command; run it again on your machine:

```sh
{command}
```

{where}.

{table}

*CPU ms* and *wall ms* are medians, *min* the least. CPU is that of all processes: the script's, the server's share, the
caller's. *less CPU*: how many times as much the same script takes in a cold interpreter without any walls. The empty
script imports what the warm servers hold; *n* is smaller for cold starts. All take turns within one run (in each, one
cold start and {burst} warm executions in a row), so that what else the machine does falls on all of them alike; still,
trust CPU before wall, and neither at a load above half the number of cores.

![CPU of each script by each way to run it]({chart})

{notes}
"""


def write_page(report: "BenchReport", page: Path, table: list[str], command: str) -> None:
    """Writes the page, and its chart beside it.

    Args:
        report: What was measured.
        page: Where to write; the chart has the same name with ``.svg``.
        table: The table's lines.
        command: What makes the page again.
    """
    chart = page.with_suffix(".svg")
    notes = [f"- Memory of the {name} server: {mb:g} MB." for name, mb in report.server_mb.items()]
    notes += [f"- Not measured: {name}: {reason}." for name, reason in report.missing.items()]
    text = _PAGE.format(
        command=command,
        burst=COLD_EVERY,
        where=describe(report),
        table="\n".join(table),
        chart=chart.name,
        notes="\n".join(notes),
    )
    page.write_text(text)
    _draw(report, chart)


def _draw(report: "BenchReport", chart: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    workloads = list(dict.fromkeys(row.workload for row in report.rows))
    entrants = list(dict.fromkeys(row.entrant for row in report.rows))
    height = 0.8 / len(entrants)
    with rc_context({"svg.hashsalt": "sandmle", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 1 + 0.35 * len(workloads) * len(entrants)), layout="constrained")
        axes = figure.subplots()
        for index, entrant in enumerate(entrants):
            rows = {row.workload: row.cpu_median_s * 1000 for row in report.rows if row.entrant == entrant}
            places = [position + index * height for position in range(len(workloads))]
            bars = axes.barh(places, [rows[name] for name in workloads], height=height, label=entrant)
            axes.bar_label(bars, fmt="%.0f", padding=3, fontsize=8)
        axes.set_yticks([position + 0.4 - height / 2 for position in range(len(workloads))], workloads)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("CPU of one execution, median (ms, logarithmic)")
        axes.legend(fontsize=8, loc="best")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(chart, metadata={"Date": None})
