"""Frozen, versioned records: what is written to disk and sent between the parts. Data only, no behaviour."""

from sandmle.records.base import Record, canonical_json, sha256_of
from sandmle.records.dna import (
    Direction,
    Leaderboard,
    Modality,
    PredictionKind,
    SeedRecord,
    StructuralDNA,
    TaskKind,
)
from sandmle.records.execution import CollectedFile, ExecResult, ExecStatus, Limits
from sandmle.records.gate import CheckResult, GateReport, Verdict
from sandmle.records.grade import BoardRank, GradeReport, GradeStatus, Medal
from sandmle.records.ladder import Ladder, Rung, Tier
from sandmle.records.search import Operator, SearchNode
from sandmle.records.task import (
    MILESTONES,
    ColumnSpec,
    Provenance,
    TargetSpec,
    TaskLimits,
    TaskSpec,
    Threshold,
    ThresholdPreset,
    Thresholds,
)
from sandmle.records.trajectory import (
    ActionKind,
    Completion,
    Failure,
    FinishReason,
    Message,
    ReplyStatus,
    StepRecord,
    Trajectory,
    TrajectoryStatus,
    Usage,
)

__all__ = [
    "MILESTONES",
    "ActionKind",
    "BoardRank",
    "CheckResult",
    "CollectedFile",
    "ColumnSpec",
    "Completion",
    "Direction",
    "ExecResult",
    "ExecStatus",
    "Failure",
    "FinishReason",
    "GateReport",
    "GradeReport",
    "GradeStatus",
    "Ladder",
    "Leaderboard",
    "Limits",
    "Medal",
    "Message",
    "Modality",
    "Operator",
    "PredictionKind",
    "Provenance",
    "Record",
    "ReplyStatus",
    "Rung",
    "SearchNode",
    "SeedRecord",
    "StepRecord",
    "StructuralDNA",
    "TargetSpec",
    "TaskKind",
    "TaskLimits",
    "TaskSpec",
    "Threshold",
    "ThresholdPreset",
    "Thresholds",
    "Tier",
    "Trajectory",
    "TrajectoryStatus",
    "Usage",
    "Verdict",
    "canonical_json",
    "sha256_of",
]
