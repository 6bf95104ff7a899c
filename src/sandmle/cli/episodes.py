"""What the commands that run episodes show: their progress, and how they ended."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandmle.cli.output import ProgressLine, console, progress_line
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.rollouts import RolloutProgress

_MAX_REASONS = 5


class EpisodesShown(ExitStack):
    """The progress line of the episodes that this run adds; it begins when their number is known."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self._quiet = quiet
        self._line: ProgressLine | None = None
        self._n_before = 0

    def update(self, progress: "RolloutProgress") -> None:
        """Shows how far the run is."""
        if self._line is None:
            self._n_before = progress.n_done
            n_new = progress.n_episodes - progress.n_done
            self._line = self.enter_context(progress_line("episodes", n_new, quiet=self._quiet))
        self._line.update(progress.n_done - self._n_before, _note(progress))


def _note(progress: "RolloutProgress") -> str:
    parts = [f"tasks {progress.n_tasks_done}/{progress.n_tasks}"]
    if progress.mean_reward is not None:
        parts.append(f"mean reward {progress.mean_reward:.3f}")
    parts.append(f"{progress.executions_per_s:.2f} executions/s")
    if progress.n_failed:
        parts.append(f"{progress.n_failed} failed")
    return ", ".join(parts)


def print_summary(out: Path, summary: dict[str, Any]) -> None:
    """Prints one line a policy, and one a reason for which episodes failed."""
    screen = console()
    for name, numbers in summary["policies"].items():
        mean = "none" if numbers["mean_reward"] is None else f"{numbers['mean_reward']:.3f}"
        medals = " ".join(f"{medal} {count}" for medal, count in numbers["medals"].items())
        screen.print(
            f"{name}: {numbers['n_episodes']} episodes, mean reward {mean}, valid {numbers['n_valid']}, "
            f"above median {numbers['n_above_median']}, {medals}, {numbers['n_executions']} executions",
            markup=False,
        )
    for line in failure_lines(summary["failures"]):
        screen.print(line, markup=False)
    screen.print(f"wrote {out}; compare with: sandmle report {out}", markup=False)


def failure_lines(failures: list[dict[str, Any]]) -> list[str]:
    """Returns one line a reason, the most frequent first, with one episode that it befell."""
    reasons = [(each["boundary"], " ".join(each["message"].split())) for each in failures]
    counts = Counter(reasons)
    first = dict(reversed(list(zip(reasons, failures, strict=True))))
    lines = []
    for reason, count in counts.most_common(_MAX_REASONS):
        each = first[reason]
        where = f"{each['policy']} at {each['task_id']}, attempt {each['attempt']}"
        lines.append(f"failed: {count} episode(s) for a fault of the {reason[0]}: {reason[1]} (first: {where})")
    if len(counts) > _MAX_REASONS:
        lines.append(f"failed: {len(counts) - _MAX_REASONS} further reasons, see summary.json")
    return lines


def read_options(pairs: list[str]) -> dict[str, Any]:
    """Returns the settings of ``KEY=VALUE`` pairs; a value is read as YAML reads it.

    Raises:
        ConfigError: A pair has no equals sign, or its value cannot be read.
    """
    import yaml

    options = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        try:
            options[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"--scaffold-option {pair!r} has a value that cannot be read; quote it") from error
        if not equals:
            raise ConfigError(f"--scaffold-option {pair!r} has no value; write KEY=VALUE")
    return options
