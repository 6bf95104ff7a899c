"""What the calls of an episode return. Data only."""

from dataclasses import dataclass
from typing import Any

from sandmle.records import ExecResult, Failure, GradeReport, StepRecord, TrajectoryStatus


@dataclass(frozen=True)
class StepResult:
    """What became of one reply.

    Attributes:
        observation: The next user message, as the grammar wraps it.
        terminated: The agent ended the episode.
        truncated: A limit or a fault ended it.
        status: How it ended; None while it goes on.
        record: The step, for the trajectory.
    """

    observation: str
    terminated: bool
    truncated: bool
    status: TrajectoryStatus | None
    record: StepRecord


@dataclass(frozen=True)
class EpisodeResult:
    """What the episode earned.

    Attributes:
        grade: The grade on the private rows; None if the grader failed.
        reward: None after a fault that is not the agent's.
        terms: Every reward term.
        status: How the episode ended, with faults of the grader.
        failure: The fault that ended the episode, if one did.
    """

    grade: GradeReport | None
    reward: float | None
    terms: dict[str, float]
    status: TrajectoryStatus
    failure: Failure | None


@dataclass(frozen=True)
class Trial:
    """What a script did that ran in a folder of its own; see :meth:`sandmle.env.Episode.try_script`.

    Attributes:
        result: What the sandbox said; None when the episode ended before the script could run.
        submission: Contents of the submission.csv that the script left, whatever its form.
        problem: What is wrong with the submission, one sentence; empty when it has the right form.
        text: What the agent reads about it.
    """

    result: ExecResult | None
    submission: bytes | None
    problem: str
    text: str

    @property
    def is_valid(self) -> bool:
        """True when there is a submission of the right form."""
        return self.submission is not None and not self.problem

    def fields(self) -> dict[str, Any]:
        """Returns the fields of a step that the execution fills."""
        return {"observation": self.text, **exec_fields(self.result, has_submission=self.submission is not None)}


def exec_fields(result: ExecResult | None, *, has_submission: bool) -> dict[str, Any]:
    """Returns the fields of a step that an execution fills."""
    if result is None:
        return {"has_submission": has_submission}
    return {
        "exec_status": result.status,
        "exec_wall_s": result.wall_s,
        "exec_cpu_s": result.cpu_s,
        "exec_peak_memory_mb": result.peak_memory_mb,
        "has_submission": has_submission,
    }
