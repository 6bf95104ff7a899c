"""Builds small synthetic run directories: the files that ``sandmle rollout`` writes, without running anything."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sandmle.records import (
    ActionKind,
    Direction,
    ExecStatus,
    Failure,
    GradeReport,
    GradeStatus,
    Medal,
    ReplyStatus,
    StepRecord,
    Threshold,
    Thresholds,
    Trajectory,
    TrajectoryStatus,
    Usage,
)

THRESHOLDS = Thresholds(
    preset="calibrated",
    median=Threshold(score=0.6),
    bronze=Threshold(score=0.7, standard_error=0.01),
    silver=Threshold(score=0.8, standard_error=0.01),
    gold=Threshold(score=0.9, standard_error=0.01),
)
_MEDALS = (Medal.BRONZE, Medal.SILVER, Medal.GOLD)


def hash_of(task_id: str) -> str:
    return f"hash-of-{task_id}"


def grade(task_id: str, score: float | None, status: GradeStatus = GradeStatus.GRADED) -> GradeReport:
    """A grade on a metric where higher is better, with the medals that ``THRESHOLDS`` give."""
    medal = Medal.NONE
    if score is not None:
        for name, border in zip(_MEDALS, THRESHOLDS.scores()[1:], strict=True):
            medal = name if score >= border else medal
    return GradeReport(
        task_id=task_id,
        task_hash=hash_of(task_id),
        metric="auc",
        direction=Direction.MAXIMIZE,
        status=status,
        score=score,
        medal=medal,
        above_median=score is not None and score > THRESHOLDS.median.score,
        thresholds=THRESHOLDS,
        message="" if score is not None else f"submission.csv: {status}",
    )


def step(index: int = 0, **changes: Any) -> StepRecord:
    code = changes.get("code", "print('hello')")
    return StepRecord(
        **{
            "index": index,
            "reply": f"<think>\nLook first.\n</think>\n<tool_call>\npython\n<code>\n{code}\n</code>\n</tool_call>",
            "reply_status": ReplyStatus.ACTION,
            "in_form": True,
            "action": ActionKind.RUN,
            "code": code,
            "observation": "hello",
            "exec_status": ExecStatus.OK,
            "exec_wall_s": 0.5 + 0.1 * index,
            **changes,
        }
    )


def episode(task_id: str, policy: str, attempt: int, score: float | None = None, **changes: Any) -> Trajectory:
    """One trajectory; without a score, nothing was submitted."""
    status = changes.pop("status", TrajectoryStatus.SUBMITTED if score is not None else TrajectoryStatus.MAX_TURNS)
    graded = grade(task_id, score) if score is not None else grade(task_id, None, GradeStatus.MISSING)
    medal = (Medal.NONE, *_MEDALS).index(graded.medal)
    terms = {
        "format": 1.0,
        "execute": float(score is not None),
        "median": float(graded.above_median),
        "bronze": float(medal >= 1),
        "silver": float(medal >= 2),
        "gold": float(medal >= 3),
    }
    weights = (0.1, 0.3, 0.1, 0.2, 0.2, 0.1)
    reward = round(sum(weight * term for weight, term in zip(weights, terms.values(), strict=True)), 10)
    fields: dict[str, Any] = {
        "task_id": task_id,
        "task_hash": hash_of(task_id),
        "policy": policy,
        "scaffold": "react",
        "grammar": "react",
        "feedback": "public",
        "reward_preset": "paper",
        "attempt": attempt,
        "rng_seed": attempt,
        "steps": (step(0), step(1)),
        "status": status,
        "grade": graded,
        "reward": reward,
        "terms": terms,
        "usage": Usage(requests=2, prompt_tokens=100, completion_tokens=10),
        "wall_s": 1.5,
        "exec_s": 1.1,
    }
    if status.is_infrastructure:
        boundary = str(status).removesuffix("_error")
        fields |= {"grade": None, "reward": None, "failure": Failure(boundary=boundary, message="it broke")}
    return Trajectory(**{**fields, **changes})


def write_run(
    folder: Path,
    trajectories: Iterable[Trajectory],
    *,
    tasks: Iterable[str] | Mapping[str, str] | None = None,
    policies: Iterable[str] | None = None,
    attempts: int | None = None,
    **config: Any,
) -> Path:
    """Writes a run directory; the plan is what the trajectories cover unless it is given."""
    trajectories = list(trajectories)
    task_ids = sorted({each.task_id for each in trajectories}) if tasks is None else list(tasks)
    names = list(dict.fromkeys(each.policy for each in trajectories)) if policies is None else list(policies)
    if attempts is None:
        attempts = max((each.attempt for each in trajectories), default=0) + 1
    folder.mkdir(parents=True, exist_ok=True)
    hashes = dict(tasks) if isinstance(tasks, Mapping) else {task: hash_of(task) for task in task_ids}
    plan = {"tasks": sorted(hashes), "task_hashes": hashes, "policies": names, "attempts": attempts}
    (folder / "run.json").write_text(json.dumps({**plan, **config}))
    (folder / "trajectories.jsonl").write_text("".join(each.to_json() + "\n" for each in trajectories))
    return folder
