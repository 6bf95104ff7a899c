"""The record of one episode: what was said, what ran, how it ended, what it earned."""

from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from sandmle.records.base import Record
from sandmle.records.execution import ExecStatus
from sandmle.records.grade import GradeReport
from sandmle.records.search import SearchNode


class Message(Record):
    """One message of a transcript."""

    role: Literal["system", "user", "assistant"]
    content: str


class FinishReason(StrEnum):
    """Why the model stopped writing."""

    STOP = "stop"
    LENGTH = "length"
    """Cut at the token limit."""
    CONTENT_FILTER = "content_filter"
    OTHER = "other"


class Usage(Record):
    """What model calls cost. Sums over a trajectory are of the same type."""

    requests: int = 0
    retries: int = 0
    retry_wait_s: float = 0.0
    """Pauses before retries."""
    lost_s: float = 0.0
    """Time that no model worked for: waiting for a free request slot, tries that failed, pauses. It is not the
    episode's time."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    """None where the price is not known."""

    def __add__(self, other: "Usage") -> "Usage":
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            requests=self.requests + other.requests,
            retries=self.retries + other.retries,
            retry_wait_s=self.retry_wait_s + other.retry_wait_s,
            lost_s=self.lost_s + other.lost_s,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=sum(costs) if costs else None,
        )


class Completion(Record):
    """One reply of a policy."""

    text: str
    finish_reason: FinishReason = FinishReason.STOP
    reasoning: str = ""
    """Thinking that the server returned in a field of its own; kept in the log, never executed."""
    token_ids: tuple[int, ...] | None = None  # [num_completion_tokens]
    logprobs: tuple[float, ...] | None = None  # [num_completion_tokens]
    usage: Usage = Usage()


class ActionKind(StrEnum):
    """What a turn asked for."""

    RUN = "run"
    """Run a script in the sandbox."""
    SCORE = "score"
    """Ask for feedback on the current submission.csv."""
    FINISH = "finish"
    """Hand in the current submission.csv and end the episode."""


class ReplyStatus(StrEnum):
    """What became of a reply."""

    ACTION = "action"
    FORMAT_ERROR = "format_error"
    TRUNCATED = "truncated"
    """Cut at the token limit before the action was complete: not the same as bad form."""
    EMPTY = "empty"


class StepRecord(Record):
    """One turn: the reply, the one action in it, and what came back."""

    index: int
    reply: str
    """What the model wrote and the transcript keeps; an invented observation is cut off."""
    reasoning: str = ""
    """Thinking that the server returned in a field of its own: logged, neither executed nor sent again."""
    reply_status: ReplyStatus
    in_form: bool
    """The turn has the form that the grammar asks for; its share is the format term of the reward."""
    action: ActionKind | None = None
    code: str | None = None
    observation: str = ""
    exec_status: ExecStatus | None = None
    exec_wall_s: float | None = None
    exec_cpu_s: float | None = None
    exec_peak_memory_mb: float | None = None
    has_submission: bool = False
    """A regular submission.csv lay in the workspace after the step."""
    feedback_score: float | None = None
    """Score shown to the agent in this step, if any."""
    validation_score: float | None = None
    """What the script measured on its own held-out rows, where the scaffold reads it."""
    model_s: float = 0.0
    notes: tuple[str, ...] = ()
    """What was ignored in the reply, and why."""
    prompt: tuple[Message, ...] = ()
    """What the model was sent after the trajectory's ``messages``, in a tree search, which asks anew for every script;
    empty where the prompt is the transcript so far."""


class TrajectoryStatus(StrEnum):
    """How an episode ended. Every ending is one of these; a rollout never raises."""

    SUBMITTED = "submitted"
    MAX_TURNS = "max_turns"
    TOKEN_BUDGET = "token_budget"
    TIME_BUDGET = "time_budget"
    COST_BUDGET = "cost_budget"
    CONTEXT_OVERFLOW = "context_overflow"
    STUCK = "stuck"
    """The same bad or identical turn several times in a row."""
    EMPTY_REPLY = "empty_reply"
    POLICY_ERROR = "policy_error"
    SANDBOX_ERROR = "sandbox_error"
    GRADER_ERROR = "grader_error"
    TASK_ERROR = "task_error"
    ROLLOUT_ERROR = "rollout_error"
    """The loop round the episode broke or never came to an end."""

    @property
    def is_infrastructure(self) -> bool:
        """True when the episode ended by a fault that is not the agent's: its reward is None."""
        return self in (
            TrajectoryStatus.POLICY_ERROR,
            TrajectoryStatus.SANDBOX_ERROR,
            TrajectoryStatus.GRADER_ERROR,
            TrajectoryStatus.TASK_ERROR,
            TrajectoryStatus.ROLLOUT_ERROR,
        )


class Failure(Record):
    """A fault that ended an episode, blamed on one boundary."""

    boundary: Literal["policy", "sandbox", "grader", "task", "rollout"]
    message: str


class Trajectory(Record):
    """The record of one episode. Versioned: readers refuse a version that they do not know."""

    schema_version: Literal[1] = 1
    task_id: str
    task_hash: str
    seed_id: str | None = None
    policy: str
    scaffold: str
    grammar: str
    feedback: str
    """``none``, ``public`` or ``oracle``; ``oracle`` is marked in every report."""
    reward_preset: str
    attempt: int
    rng_seed: int
    messages: tuple[Message, ...] = ()
    """The transcript; of a tree search, what all its prompts begin with."""
    steps: tuple[StepRecord, ...] = ()
    nodes: tuple[SearchNode, ...] = ()
    """The tree of a search scaffold; empty for the others."""
    chosen_node: int | None = None
    """The node whose submission was graded."""
    prompt_ids: tuple[int, ...] | None = None  # [num_prompt_tokens]
    completion_ids: tuple[int, ...] | None = None  # [num_completion_tokens]
    loss_mask: tuple[int, ...] | None = None  # [num_completion_tokens], 1 = sampled by the model
    logprobs: tuple[float, ...] | None = None  # [num_completion_tokens]
    status: TrajectoryStatus
    failure: Failure | None = None
    grade: GradeReport | None = None
    reward: float | None = None
    """None after an infrastructure failure: left out of every mean and deviation in training."""
    terms: dict[str, float] = Field(default_factory=dict)
    """Every reward term by name, also those of weight 0."""
    usage: Usage = Usage()
    wall_s: float = 0.0
    model_s: float = 0.0
    exec_s: float = 0.0
    versions: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _token_arrays_have_one_length(self) -> "Trajectory":
        arrays = [self.completion_ids, self.loss_mask, self.logprobs]
        lengths = {len(array) for array in arrays if array is not None}
        if len(lengths) > 1:
            raise ValueError(f"completion_ids, loss_mask and logprobs differ in length: {sorted(lengths)}")
        return self

    @property
    def key(self) -> tuple[str, str, int]:
        """Task, policy and attempt: unique within one run."""
        return (self.task_id, self.policy, self.attempt)
