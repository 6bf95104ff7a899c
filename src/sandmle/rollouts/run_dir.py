"""The folder of a run: safe to kill at any moment, never overwritten, entered again only under the same configuration.

::

    RUN/
      run.json            the full configuration
      trajectories.jsonl  one episode a line, appended whole and synced; of two lines for one episode the last counts
      summary.json        counts and means, written when the run ends
      journals/           what is done of episodes under way, to go on from it; each goes with its episode
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from io import BufferedRandom
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

import sandmle
from sandmle.errors import ConfigError
from sandmle.parallel import enter_folder, write_whole
from sandmle.records import Failure, Trajectory, TrajectoryStatus, sha256_of
from sandmle.rollouts.config import RolloutConfig

TRAJECTORIES_FILE = "trajectories.jsonl"
JOURNALS_FOLDER = "journals"
SUMMARY_FILE = "summary.json"
# Fields of a trajectory that the plan of the run gives.
_IDENTITY = (
    "task_id",
    "task_hash",
    "seed_id",
    "policy",
    "scaffold",
    "grammar",
    "feedback",
    "reward_preset",
    "attempt",
    "rng_seed",
)
# How a run is carried out, not what it does: a server may have another address after a restart.
_NOT_COMPARED = frozenset(
    {
        "versions",
        "suite.notes",
        "suite.task_notes",
        "policy_options.base_url",
        "policy_options.api_key_env",
        "policy_options.concurrency",
        "policy_options.max_retries",
        "policy_options.max_wait_s",
    }
)


class RunDir:
    """An open run directory, held by one process."""

    def __init__(self, path: Path, file: BufferedRandom, done: dict[tuple[str, str, int], bool]) -> None:
        """Use :func:`open_run`."""
        self.path = path
        self._file = file
        self._done = done

    def is_done(self, key: tuple[str, str, int]) -> bool:
        """Tells whether an episode needs no further run; one that ended by a fault of the machinery gets another."""
        return self._done.get(key, False)

    def append(self, trajectory: Trajectory) -> Trajectory:
        """Writes one episode; when this returns it is on disk.

        Returns:
            What was written: a trajectory that has no JSON form is replaced by the record of an episode that failed.

        Raises:
            ConfigError: The disk refuses.
        """
        trajectory, line = _written(trajectory)
        try:
            self._file.write(line + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._refused(TRAJECTORIES_FILE, error) from error
        self._done[trajectory.key] = not trajectory.status.is_infrastructure
        if not trajectory.status.is_infrastructure:
            _drop_journal(journal_path(self.path, trajectory.key))
        return trajectory

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Writes ``summary.json`` in one step; an earlier one is replaced.

        Raises:
            ConfigError: The disk refuses.
        """
        try:
            write_whole(self.path / SUMMARY_FILE, summary)
        except OSError as error:
            raise self._refused(SUMMARY_FILE, error) from error

    def close(self) -> None:
        """Lets go of the folder. Idempotent."""
        with suppress(OSError):  # what a full disk refused is tried once more here; `append` has said so already
            self._file.close()

    def _refused(self, name: str, error: OSError) -> ConfigError:
        return ConfigError(f"cannot write to {self.path / name}: {error.strerror}; mend that and go on with --resume")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_run(path: Path, config: RolloutConfig, *, resume: bool = False) -> RunDir:
    """Makes a run directory, or enters an existing one.

    Args:
        path: The folder; made if missing.
        config: The configuration.
        resume: Go on with a run that is there; without this only a new or empty folder is taken.

    Raises:
        ConfigError: There is a run already, it has another configuration, another process is in it, or its file is
            broken in the middle.
    """
    wanted = {**config.to_dict(), "versions": {"sandmle": sandmle.__version__}}
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{path} is a file, not a run directory; name a folder")
    try:
        file = enter_folder(path, TRAJECTORIES_FILE, wanted, partial(_check_same, path, wanted) if resume else None)
    except OSError as error:
        raise ConfigError(f"cannot use {path} as a run directory: {error.strerror}") from error
    try:
        return RunDir(path, file, _recover(file, path / TRAJECTORIES_FILE))
    except BaseException:
        file.close()
        raise


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """Yields the trajectories of a run directory in the order of the file; a torn last line is left out.

    Raises:
        ConfigError: There is no such file, or a line in it is broken.
    """
    file_path = path / TRAJECTORIES_FILE
    try:
        file = file_path.open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read {file_path}: {error.strerror}; give a run directory") from error
    with file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield Trajectory.model_validate_json(line)
            except ValidationError as error:
                raise ConfigError(f"{file_path}, line {number} is no trajectory that this release reads") from error


def journal_path(run_folder: Path, key: tuple[str, str, int]) -> Path:
    """Returns where the journal of an episode lies, by its task, policy and attempt."""
    return run_folder / JOURNALS_FOLDER / f"{sha256_of(list(key))[:24]}.jsonl"


def _written(trajectory: Trajectory) -> tuple[Trajectory, bytes]:
    """Returns a trajectory with its line; one without a JSON form as an episode that failed, by its own fields."""
    try:
        return trajectory, trajectory.to_json().encode()
    except (ValueError, TypeError, RecursionError) as error:
        message = f"the trajectory cannot be written as JSON ({type(error).__name__})"
    lost = Trajectory(
        **{name: getattr(trajectory, name) for name in _IDENTITY},
        status=TrajectoryStatus.ROLLOUT_ERROR,
        failure=Failure(boundary="rollout", message=message),
        versions={"sandmle": sandmle.__version__},
    )
    return lost, lost.to_json().encode()


def _drop_journal(path: Path) -> None:
    """Removes the journal of an episode that is done, if there is one, and the folder with the last one."""
    with suppress(OSError):
        path.unlink()
        path.parent.rmdir()


def _check_same(path: Path, wanted: dict[str, Any], found: dict[str, Any]) -> None:
    if differing := _first_difference(found, wanted):
        raise ConfigError(f"{path} was started with another {differing}; resume with the same, or give another folder")


def _first_difference(found: Any, wanted: Any, prefix: str = "") -> str:
    """Returns the first key that differs, with both values; empty when none does."""
    if prefix in _NOT_COMPARED or found == wanted:
        return ""
    if prefix.startswith("task_hashes.") and None in (found, wanted):
        return ""  # the task could not be read, then or now
    if isinstance(found, dict) and isinstance(wanted, dict):
        # The suite first: another one changes much else, which would say less.
        for key in sorted({*found, *wanted}, key=lambda key: (key != "suite", key)):
            name = f"{prefix}.{key}" if prefix else key
            if difference := _first_difference(found.get(key), wanted.get(key), name):
                return difference
        return ""
    return f"{prefix} ({_short(found)}, not {_short(wanted)})"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _recover(file: BufferedRandom, path: Path) -> dict[tuple[str, str, int], bool]:
    """Drops a torn last line and returns which episodes are done."""
    done: dict[tuple[str, str, int], bool] = {}
    file.seek(0)
    end = 0
    for number, line in enumerate(file, start=1):
        if not line.endswith(b"\n"):
            break
        try:
            trajectory = Trajectory.model_validate_json(line)
        except ValidationError as error:
            raise ConfigError(f"{path}, line {number} is no trajectory that this release reads; remove it") from error
        done[trajectory.key] = not trajectory.status.is_infrastructure
        end += len(line)
    file.truncate(end)
    file.seek(0, os.SEEK_END)
    return done
