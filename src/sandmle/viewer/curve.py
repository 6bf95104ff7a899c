"""The curve of a training run: rewards by train_step, as a picture for the page and as a PNG of its own."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandmle.errors import ConfigError
from sandmle.training.folder import METRICS_FILE, VALIDATION_FILE, lines_of
from sandmle.viewer.files import write_file
from sandmle.viewer.plots import GRID, MUTED, POLICY, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WINDOW = 6
Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Curve:
    """Rewards of a training run.

    Attributes:
        label: The run's folder.
        train: Train_step and mean reward of its episodes.
        valid: Train_step and share of its episodes with a valid submission.
        validation: Train_step and mean reward at the validation tasks.
    """

    label: str
    train: Points
    valid: Points
    validation: Points


def read_curve(run: Path) -> Curve:
    """Reads what ``sandmle train grpo`` has logged so far.

    Raises:
        ConfigError: The folder holds no GRPO run with a train_step.
    """
    steps = lines_of(run / METRICS_FILE)
    train = tuple((line["train_step"], line["reward"]) for line in steps if line.get("reward") is not None)
    valid = tuple((line["train_step"], line["valid_share"]) for line in steps if line.get("valid_share") is not None)
    known = [line for line in lines_of(run / VALIDATION_FILE) if line.get("reward") is not None]
    if not train:
        raise ConfigError(f"{run} holds no train_step with a reward; give the --out of a `sandmle train grpo`")
    return Curve(run.resolve().name, train, valid, tuple((line["train_step"], line["reward"]) for line in known))


def curve_plot(curve: Curve) -> str:
    """Returns the curve as an ``<svg>`` element in the page's colours."""
    return svg(lambda axes: _draw(axes, curve, POLICY[:3], MUTED, GRID), height=3.4, salt="curve")


def write_curve(curve: Curve, out: Path) -> Path:
    """Writes the curve as a PNG, whole or not at all, and returns its path.

    Raises:
        ConfigError: The file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    _draw(figure.subplots(), curve, ("#2f6fb0", "#b0682f", "#3f8f4f"), "#555555", "#dddddd")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    return write_file(buffer.getvalue(), out)


def _draw(axes: "Axes", curve: Curve, colours: tuple[str, ...], muted: str, grid: str) -> None:
    steps, rewards = zip(*curve.train, strict=True)
    axes.plot(steps, rewards, "o", color=colours[0], alpha=0.3, ms=4, mew=0)
    smooth = [
        sum(part) / len(part) for part in (rewards[max(0, at - _WINDOW) : at] for at in range(1, len(rewards) + 1))
    ]
    axes.plot(steps, smooth, "-", color=colours[0], lw=2, label=f"reward in training (mean of {_WINDOW})")
    if curve.valid:
        axes.plot(*zip(*curve.valid, strict=True), ":", color=colours[1], lw=1.5, label="valid submissions")
    if curve.validation:
        axes.plot(*zip(*curve.validation, strict=True), "D-", color=colours[2], lw=1.5, ms=5, label="held-out seeds")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("train_step", color=muted)
    axes.grid(axis="y", color=grid, lw=0.8)
    axes.legend(loc="lower right", frameon=False)
