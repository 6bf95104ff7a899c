from pathlib import Path

from sandmle.evaluation.report import build_report
from sandmle.evaluation.runs import read_run
from sandmle.records import TrajectoryStatus
from sandmle.rollouts.config import RolloutConfig
from sandmle.rollouts.run_dir import open_run
from tests.evaluation.run_builder import episode, hash_of


def _config() -> RolloutConfig:
    tasks = ("t1", "t2")
    return RolloutConfig(
        tasks=tasks, task_hashes={task: hash_of(task) for task in tasks}, policies=("a", "b"), attempts=2
    )


def test_the_report_reads_what_rollouts_write(tmp_path: Path) -> None:
    with open_run(tmp_path / "run", _config()) as run:
        run.append(episode("t1", "a", 0, 0.9))
        run.append(episode("t1", "a", 1, status=TrajectoryStatus.SANDBOX_ERROR))
    report = build_report([tmp_path / "run"])
    rows = {row.policy: row for row in report.policies}
    assert (rows["a"].n_finished, rows["a"].n_infrastructure, rows["a"].n_missing, rows["a"].n_planned) == (1, 1, 2, 4)
    assert (rows["b"].n_finished, rows["b"].n_missing) == (0, 4)
    assert report.problems == ()


def test_an_episode_that_was_run_again_counts_by_its_last_record(tmp_path: Path) -> None:
    with open_run(tmp_path / "run", _config()) as run:
        run.append(episode("t1", "a", 0, status=TrajectoryStatus.SANDBOX_ERROR))
    with open_run(tmp_path / "run", _config(), resume=True) as run:
        run.append(episode("t1", "a", 0, 0.9))
    found = read_run(tmp_path / "run")
    assert found.episodes["a", "t1", 0].score == 0.9
    assert any("1 older records" in note for note in found.notes)


def test_whole_records_are_found_again_by_their_place(tmp_path: Path) -> None:
    trajectories = [episode("t1", "a", 0, 0.9), episode("t2", "b", 1, 0.7)]
    with open_run(tmp_path / "run", _config()) as run:
        for trajectory in trajectories:
            run.append(trajectory)
    found = read_run(tmp_path / "run")
    for trajectory in trajectories:
        episode_found = found.episodes[trajectory.policy, trajectory.task_id, trajectory.attempt]
        assert found.trajectory(episode_found) == trajectory
