"""The folder of a training run.

::

    OUT/
      run.json              recipe and tasks; a run is resumed only under the same
      metrics.jsonl         one line a train_step
      validation.jsonl      one line a validation
      rollouts/             trajectories of each train_step and validation, one file each
      checkpoints/          to go on from after any interruption
      best/                 the model with the best validation reward
      final/                the model after the last train_step
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sandmle.errors import ConfigError
from sandmle.parallel import write_whole
from sandmle.records import Trajectory

METRICS_FILE, VALIDATION_FILE = "metrics.jsonl", "validation.jsonl"


class TrainingFolder:
    """Files of one training run, written so that it may be killed at any moment."""

    def __init__(self, path: Path, config: dict[str, Any], *, resume: bool = False) -> None:
        """Makes the folder, or enters it again.

        Args:
            path: The folder.
            config: Recipe and tasks, as plain JSON.
            resume: Go on with a run that is there.

        Raises:
            ConfigError: There is a run already, or another one.
        """
        self.path = path
        run_file = path / "run.json"
        if self._has_begun():
            if not resume:
                raise ConfigError(f"{path} holds a training run; go on with --resume, or give another folder")
            if json.loads(run_file.read_text(encoding="utf-8")) != config:
                raise ConfigError(f"{path} was started with another recipe or other tasks; give another folder")
        elif run_file.exists() and json.loads(run_file.read_text(encoding="utf-8")) != config:
            # Refused or stopped before its first train_step: what it may have left is of another model.
            (path / VALIDATION_FILE).unlink(missing_ok=True)
            shutil.rmtree(path / "best", ignore_errors=True)
        try:
            (path / "rollouts").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot use {path} for a training run: {error.strerror}") from error
        write_whole(run_file, config)

    def _has_begun(self) -> bool:
        """Tells whether there is anything that was trained."""
        return bool(self.lines(METRICS_FILE)) or self.last_checkpoint() is not None

    @property
    def checkpoints(self) -> Path:
        """Where the trainer puts its checkpoints."""
        return self.path / "checkpoints"

    def last_checkpoint(self) -> tuple[Path, int] | None:
        """Returns the newest whole checkpoint and its train_step; one whose writing was interrupted does not count."""
        found = [
            (int(folder.name.rpartition("-")[2]), folder)
            for folder in self.checkpoints.glob("checkpoint-*")
            if (folder / "trainer_state.json").exists()
        ]
        return (max(found)[1], max(found)[0]) if found else None

    def forget_after(self, train_step: int) -> None:
        """Drops lines of train_steps that will be done again."""
        for name in (METRICS_FILE, VALIDATION_FILE):
            kept = [line for line in self.lines(name) if line["train_step"] <= train_step]
            if (self.path / name).exists():
                partial = self.path / f".{name}.partial"
                partial.write_text("".join(_line(each) for each in kept), encoding="utf-8")
                partial.rename(self.path / name)

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Returns the whole lines of a file; a torn last line is left out."""
        return lines_of(self.path / name)

    def append(self, name: str, values: dict[str, Any]) -> None:
        """Adds a line; when this returns it is on disk."""
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.write(_line(values))
            file.flush()
            os.fsync(file.fileno())

    def write_rollouts(self, name: str, trajectories: Sequence[Trajectory]) -> None:
        """Writes the trajectories of a train_step or validation."""
        path = self.path / "rollouts" / f"{name}.jsonl"
        partial = path.with_suffix(".partial")
        partial.write_text("".join(f"{each.to_json()}\n" for each in trajectories), encoding="utf-8")
        partial.rename(path)

    def save_model(self, name: str, save: Callable[[Path], None]) -> Path:
        """Writes a model folder beside an earlier one of that name and then puts it in its place."""
        path, partial = self.path / name, self.path / f".{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        save(partial)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
        return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Returns the whole lines of a JSONL file; a torn last line is left out, a file that is not there has none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1]]


def _line(values: dict[str, Any]) -> str:
    return json.dumps(values, allow_nan=False) + "\n"
