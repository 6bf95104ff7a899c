"""The plots of the HTML report, drawn by matplotlib as SVG that follows the page's colours and fonts.

matplotlib writes fixed colours; every role gets a placeholder colour that is replaced by a CSS variable afterwards, so
that one drawing serves the light and the dark page. The bytes depend on the data only: no dates, salted ids.
"""

import io
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandmle.evaluation.formats import number_text
from sandmle.evaluation.milestones import REACH
from sandmle.evaluation.statistics import Estimate, Spread
from sandmle.evaluation.text import clean_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_COLOURS = 8
"""Policies beyond the eighth take the colours again, with other markers."""
MAX_TASKS = 40
"""Tasks in the plot of scores; more would not be readable."""
_MARKERS = "oDs^vPX*"
_INK, MUTED, GRID = "#0a0001", "#0a0002", "#0a0003"
POLICY = tuple(f"#0b00{index:02x}" for index in range(N_COLOURS))
_MEDALS = ("#0c0000", "#0c0001", "#0c0002")
_STATUS = {
    "ok": "#0d0000",
    "error": "#0d0001",
    "timeout": "#0d0002",
    "oom": "#0d0003",
    "output_limit": "#0d0004",
    "limit": "#0d0005",
}
_VARIABLES = {
    _INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    **{colour: f"var(--p{index})" for index, colour in enumerate(POLICY)},
    **{colour: f"var(--{name})" for colour, name in zip(_MEDALS, ("bronze", "silver", "gold"), strict=True)},
    **{colour: f"var(--x-{name.replace('_', '-')})" for name, colour in _STATUS.items()},
}
_FONT = re.compile(r" font-family: [^;\"]*;?")
_NOT_OURS = re.compile(r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "path.simplify": False,
}


@dataclass(frozen=True)
class RewardRow:
    """One policy in the plot of rewards.

    Attributes:
        label: Who.
        estimate: Mean with interval.
        by_task: Mean reward at every task.
    """

    label: str
    estimate: Estimate
    by_task: tuple[float, ...]


@dataclass(frozen=True)
class ScoreRow:
    """One task in the plot of scores.

    Attributes:
        label: Which.
        positions: Places of the attempts among the thresholds, by policy in the order of the legend.
    """

    label: str
    positions: tuple[tuple[float, ...], ...]


def reward_plot(rows: Sequence[RewardRow]) -> str:
    """Draws mean rewards with their intervals over dots for the single tasks."""

    def draw(axes: "Axes") -> None:
        top = max([1.0, *(value for row in rows for value in row.by_task)])
        for index, row in enumerate(rows):
            colour = POLICY[index % N_COLOURS]
            axes.plot(row.by_task, [index] * len(row.by_task), "o", color=colour, alpha=0.25, ms=5, mew=0)
            if row.estimate.low is not None and row.estimate.high is not None:
                axes.plot([row.estimate.low, row.estimate.high], [index, index], "-", color=colour, lw=3)
            if row.estimate.mean is not None:
                axes.plot([row.estimate.mean], [index], "D", color=colour, ms=8)
                axes.text(top * 1.04, index, number_text(row.estimate.mean), va="center", fontweight="bold")
        axes.set_xlim(-0.02 * top, top * 1.02)
        _name_rows(axes, [row.label for row in rows])
        axes.set_xlabel("reward")
        axes.grid(axis="x", color=GRID, lw=0.8)

    return svg(draw, height=0.9 + 0.42 * len(rows), salt="reward")


def score_plot(rows: Sequence[ScoreRow], policies: Sequence[str]) -> str:
    """Draws where every graded attempt stands among its task's thresholds."""

    def draw(axes: "Axes") -> None:
        for place, colour in enumerate(_MEDALS, start=1):
            right = place + 1 if place < 3 else 3 + REACH + 0.2
            axes.axvspan(place, right, color=colour, alpha=0.16, lw=0)
        for place, name in enumerate(("median", "bronze", "silver", "gold")):
            axes.axvline(place, color=MUTED, lw=0.8, ls="--" if place == 0 else "-")
            axes.text(place, -0.72, name, ha="center", va="bottom", color=MUTED)
        lane = 0.7 / max(1, len(policies))
        for index, row in enumerate(rows):
            axes.axhline(index + 0.5, color=GRID, lw=0.6)
            for which, positions in enumerate(row.positions):
                height = index + (which - (len(policies) - 1) / 2) * lane
                axes.plot(positions, [height] * len(positions), ls="", **_marker(which))
        for which, policy in enumerate(policies):
            axes.plot([], [], ls="", label=_short(policy, 40), **_marker(which))
        axes.set_xlim(-REACH - 0.2, 3 + REACH + 0.2)
        axes.set_xticks([])
        _name_rows(axes, [row.label for row in rows])
        axes.spines["bottom"].set_visible(False)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.figure.legend(loc="outside lower center", ncols=3, handletextpad=0.1, columnspacing=1.2)

    n_legend_rows = math.ceil(len(policies) / 3)
    per_row = max(0.34, 0.085 * len(policies))
    return svg(draw, height=0.6 + per_row * len(rows) + 0.22 * n_legend_rows, salt="score")


def execution_plot(seconds: dict[str, list[float]], spread: Spread) -> str:
    """Draws how long code executions took, on a logarithmic scale, by how they ended."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    def draw(axes: "Axes") -> None:
        # Anything faster than a millisecond is as good as nothing on this scale.
        known = {name: [max(value, 1e-3) for value in seconds[name]] for name in _STATUS if seconds.get(name)}
        values = [value for each in known.values() for value in each]
        low, high = math.log10(min(values)), math.log10(max(values))
        width = max((high - low) / 30, 0.02)
        edges = [10 ** (low - width / 2 + index * width) for index in range(int((high - low) / width) + 3)]
        axes.hist(
            list(known.values()), bins=edges, stacked=True, color=[_STATUS[name] for name in known], label=list(known)
        )
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high - low < 2.5 else (1.0,)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
        axes.xaxis.set_minor_formatter(NullFormatter())
        for value, name, style in ((spread.mean, "mean", "-"), (spread.median, "median", "--")):
            if value is not None:
                axes.axvline(max(value, 1e-3), color=_INK, lw=1.2, ls=style, label=f"{name} {number_text(value)} s")
        axes.set_ylabel("executions")
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.tick_params(axis="y", colors=MUTED)
        axes.set_axisbelow(True)
        axes.grid(axis="y", color=GRID, lw=0.8)
        axes.legend(loc="upper right")

    return svg(draw, height=2.8, salt="execution")


def _marker(which: int) -> dict[str, Any]:
    colour = POLICY[which % N_COLOURS]
    marker = _MARKERS[(which + which // N_COLOURS) % len(_MARKERS)]
    return {"marker": marker, "color": colour, "ms": 6, "mew": 0, "alpha": 0.9}


def _name_rows(axes: "Axes", labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), [_short(label, 34) for label in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)


def _short(label: str, limit: int) -> str:
    label = clean_line(label)
    return label if len(label) <= limit else f"{label[: limit - 1]}…"


def svg(draw: Any, *, height: float, salt: str) -> str:
    """Runs a drawing function on fresh axes; returns an ``<svg>`` element without size, colours or fonts of its own."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with style.context(["default", {**_STYLE, "svg.hashsalt": salt}]), warnings.catch_warnings():
        # Labels in other scripts are drawn by the browser's fonts; that DejaVu lacks them does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=(8.4, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        buffer = io.StringIO()
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    drawn = buffer.getvalue()
    head, rest = drawn[drawn.index("<svg") :].rstrip().split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    head = f'<svg class="plot" viewBox="{box.group(1) if box else ""}" aria-hidden="true" focusable="false"'
    # Several drawings share one page: every id gets the drawing's name before it.
    rest = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{salt}-", rest)
    rest = _FONT.sub("", _NOT_OURS.sub("", rest))
    for colour, variable in _VARIABLES.items():
        rest = rest.replace(colour, variable)
    return f"{head}>{rest}"
