"""Reads run directories for a report: bounded in memory, and never stopped by a broken line."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from sandmle.errors import ConfigError
from sandmle.parallel import CONFIG_FILE
from sandmle.records import ExecStatus, GradeReport, Medal, Trajectory, TrajectoryStatus, Usage
from sandmle.rollouts.run_dir import TRAJECTORIES_FILE


@dataclass(frozen=True)
class Execution:
    """One run of agent code."""

    status: ExecStatus
    wall_s: float


@dataclass(frozen=True)
class Episode:
    """What a report needs of one trajectory; ``offset`` is where the whole of it begins in the file."""

    task_id: str
    task_hash: str
    policy: str
    attempt: int
    scaffold: str
    grammar: str
    feedback: str
    reward_preset: str
    status: TrajectoryStatus
    reward: float | None
    terms: dict[str, float]
    grade: GradeReport | None
    n_turns: int
    executions: tuple[Execution, ...]
    usage: Usage
    wall_s: float
    offset: int

    @property
    def score(self) -> float | None:
        """The score on the private rows, None unless graded."""
        return self.grade.score if self.grade is not None and self.grade.is_valid else None

    @property
    def medal(self) -> Medal:
        """The highest medal; none without a reward, whatever the grade says."""
        return self.grade.medal if self.grade is not None and self.reward is not None else Medal.NONE


@dataclass
class Run:
    """One run directory as read.

    Attributes:
        label: Short name, unique within a report.
        path: The folder.
        config: Contents of ``run.json``.
        episodes: Episodes by policy, task id and attempt.
        planned: Task id and attempt of every episode that the run was to have, by policy.
        task_hashes: Hash of each task, as far as known.
        problems: Lines that could not be read, each with its file and line number.
        notes: What a reader should know, though nothing is broken.
    """

    label: str
    path: Path
    config: dict[str, Any]
    episodes: dict[tuple[str, str, int], Episode] = field(default_factory=dict)
    planned: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    task_hashes: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def trajectory(self, episode: Episode) -> Trajectory:
        """Reads the whole record of an episode."""
        with (self.path / TRAJECTORIES_FILE).open("rb") as file:
            file.seek(episode.offset)
            return Trajectory.model_validate_json(file.readline())


def read_run(path: Path, label: str | None = None) -> Run:
    """Reads a run directory. Broken lines become problems; a torn last line (a killed run) becomes a note.

    Args:
        path: The folder.
        label: Short name; the folder's name if None.

    Raises:
        ConfigError: The folder is no run directory, or its ``run.json`` cannot be read.
    """
    config = _read_config(path)
    run = Run(label=label or path.resolve().name, path=path, config=config)
    n_replaced = 0
    for episode in _read_episodes(run):
        key = (episode.policy, episode.task_id, episode.attempt)
        n_replaced += key in run.episodes
        run.episodes[key] = episode
        if episode.task_hash:
            run.task_hashes.setdefault(episode.task_id, episode.task_hash)
    if n_replaced:
        run.notes.append(f"{path / TRAJECTORIES_FILE}: {n_replaced} older records of repeated episodes do not count")
    _fill_plan(run)
    _note_suite(run)
    return run


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise ConfigError(f"no folder {path}; give a run directory made by `sandmle rollout`")
    file = path / CONFIG_FILE
    try:
        config = from_json(file.read_bytes(), allow_inf_nan=False)
    except FileNotFoundError as error:
        raise ConfigError(f"{path} is not a run directory: it has no {CONFIG_FILE}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{file} is not strict JSON: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{file} holds no JSON object; give a run directory made by `sandmle rollout`")
    if "policies" not in config and not (path / TRAJECTORIES_FILE).exists():
        raise ConfigError(
            f"{path} is not a run directory: its {CONFIG_FILE} names no policies, and it has no {TRAJECTORIES_FILE}; "
            "give one made by `sandmle rollout`"
        )
    return config


def _read_episodes(run: Run) -> Iterator[Episode]:
    file_path = run.path / TRAJECTORIES_FILE
    try:
        file = file_path.open("rb")
    except FileNotFoundError:
        run.notes.append(f"{file_path} is not there: no episode has finished")
        return
    except OSError as error:
        run.problems.append(f"cannot read {file_path}: {error.strerror}")
        return
    offset = 0
    with file:
        for number, line in enumerate(file, start=1):
            start, offset = offset, offset + len(line)
            if not line.endswith(b"\n"):
                run.notes.append(f"{file_path}, line {number}: torn, since the run was killed or is still writing")
                return
            if not line.strip():
                continue
            try:
                yield _episode(Trajectory.model_validate_json(line), start)
            except ValidationError as error:
                first = error.errors(include_input=False, include_url=False)[0]
                where = ".".join(str(part) for part in first["loc"])
                run.problems.append(f"{file_path}, line {number}: {where + ': ' if where else ''}{first['msg']}")


def _episode(trajectory: Trajectory, offset: int) -> Episode:
    executions = [
        Execution(step.exec_status, step.exec_wall_s)
        for step in trajectory.steps
        if step.exec_status is not None and step.exec_wall_s is not None
    ]
    return Episode(
        task_id=trajectory.task_id,
        task_hash=trajectory.task_hash,
        policy=trajectory.policy,
        attempt=trajectory.attempt,
        scaffold=trajectory.scaffold,
        grammar=trajectory.grammar,
        feedback=trajectory.feedback,
        reward_preset=trajectory.reward_preset,
        status=trajectory.status,
        reward=None if trajectory.status.is_infrastructure else trajectory.reward,
        terms=dict(trajectory.terms),
        grade=trajectory.grade,
        n_turns=len(trajectory.steps),
        executions=tuple(executions),
        usage=trajectory.usage,
        wall_s=trajectory.wall_s,
        offset=offset,
    )


def _fill_plan(run: Run) -> None:
    """Adds what the configuration planned, then what is there beyond it."""
    tasks, policies = _names(run.config.get("tasks")), _names(run.config.get("policies"))
    attempts, hashes = run.config.get("attempts"), run.config.get("task_hashes")
    if isinstance(hashes, dict):
        run.task_hashes.update({str(task): str(task_hash) for task, task_hash in hashes.items()})
    if tasks and policies and isinstance(attempts, int):
        for policy in policies:
            run.planned[policy] = [(task, attempt) for task in tasks for attempt in range(attempts)]
    else:
        run.notes.append(f"{run.path / CONFIG_FILE} names no tasks, policies and attempts: N is what was found")
    known = {(policy, *slot) for policy, slots in run.planned.items() for slot in slots}
    for policy, task_id, attempt in sorted(set(run.episodes) - known):
        run.planned.setdefault(policy, []).append((task_id, attempt))


def _note_suite(run: Run) -> None:
    """Adds what the benchmark itself makes a reader know: known leaks, another grader, an unofficial list."""
    suite = run.config.get("suite")
    if not isinstance(suite, dict):
        return
    name = str(suite.get("name"))
    notes = suite.get("notes")
    run.notes += [f"{name}: {note}" for note in notes] if isinstance(notes, list) else []
    if suite.get("grader") == "official":
        run.notes.append(f"{name}: graded by the benchmark's own code")
    by_task = suite.get("task_notes")
    if isinstance(by_task, dict):
        run.notes += [f"{name}, {task}: {note}" for task, note in sorted(by_task.items())]


def _names(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
