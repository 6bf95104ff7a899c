"""Which trajectories are trained on. A masked one has no loss, but its reward still counts in its group's mean.

The paper masks trajectories that ran out of time, after the advantages are taken; those that ran out of turns or tokens
stay. Faults of ours are always left out, of the statistics too: they have no reward.
"""

from pydantic import Field

from sandmle.records import ExecStatus, Record, Trajectory, TrajectoryStatus


class MaskPolicy(Record):
    """What is not trained on; the defaults are the paper's."""

    statuses: tuple[TrajectoryStatus, ...] = (TrajectoryStatus.TIME_BUDGET,)
    """Endings whose trajectories are masked."""
    timeout_share: float | None = Field(default=0.2, ge=0, le=1)
    """A trajectory is masked when more than this share of its executions were stopped at their time limit."""


def is_trained(trajectory: Trajectory, policy: MaskPolicy) -> bool:
    """Tells whether the loss of a trajectory counts."""
    if trajectory.reward is None or trajectory.status.is_infrastructure or trajectory.status in policy.statuses:
        return False
    if not trajectory.completion_ids or trajectory.loss_mask is None:
        return False
    ran = [step.exec_status for step in trajectory.steps if step.exec_status is not None]
    if policy.timeout_share is None or not ran:
        return True
    return sum(status is ExecStatus.TIMEOUT for status in ran) / len(ran) <= policy.timeout_share
