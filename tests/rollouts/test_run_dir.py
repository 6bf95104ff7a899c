"""Run directories: resumed only under the same configuration, never overwritten, safe at any kill."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.records import Trajectory, TrajectoryStatus
from sandmle.rollouts import RolloutConfig, jobs_of, open_run, read_trajectories


def config_of(**changes: object) -> RolloutConfig:
    return RolloutConfig.model_validate(
        {"tasks": ("a", "b"), "task_hashes": {"a": "1", "b": "2"}, "policies": ("p",), "attempts": 2, **changes}
    )


def trajectory(task_id: str, attempt: int, status: TrajectoryStatus = TrajectoryStatus.SUBMITTED) -> Trajectory:
    return Trajectory(
        task_id=task_id,
        task_hash="1",
        policy="p",
        scaffold="react",
        grammar="react",
        feedback="public",
        reward_preset="paper",
        attempt=attempt,
        rng_seed=0,
        status=status,
        reward=None if status.is_infrastructure else 0.5,
    )


def test_a_run_is_written_resumed_and_read(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with open_run(path, config_of()) as run:
        run.append(trajectory("a", 0))
        assert run.is_done(("a", "p", 0))
    written = json.loads((path / "run.json").read_text())
    assert written["tasks"] == ["a", "b"]
    assert written["episode"]["max_turns"] == 20
    assert written["versions"]["sandmle"]
    with open_run(path, config_of(), resume=True) as run:
        assert [run.is_done(job.key) for job in jobs_of(config_of())] == [True, False, False, False]
        run.append(trajectory("a", 1))
    assert [made.attempt for made in read_trajectories(path)] == [0, 1]


def test_a_torn_last_line_is_dropped_on_resume(tmp_path: Path) -> None:
    with open_run(tmp_path, config_of()) as run:
        run.append(trajectory("a", 0))
    file = tmp_path / "trajectories.jsonl"
    whole = file.read_bytes()
    for cut in (1, 20, len(whole) - 1):
        file.write_bytes(whole + whole[:cut])
        assert len(list(read_trajectories(tmp_path))) == 1
        with open_run(tmp_path, config_of(), resume=True) as run:
            assert file.read_bytes() == whole
            run.append(trajectory("b", 0))
        assert [made.task_id for made in read_trajectories(tmp_path)] == ["a", "b"]


def test_faults_of_the_machinery_get_another_try(tmp_path: Path) -> None:
    with open_run(tmp_path, config_of()) as run:
        run.append(trajectory("a", 0, TrajectoryStatus.SANDBOX_ERROR))
        assert not run.is_done(("a", "p", 0))
    with open_run(tmp_path, config_of(), resume=True) as run:
        assert not run.is_done(("a", "p", 0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attempts": 3}, r"attempts \(2, not 3\)"),
        ({"episode": {"max_turns": 9}}, r"episode\.max_turns \(20, not 9\)"),
        ({"task_hashes": {"a": "1", "b": "3"}}, r"task_hashes\.b"),
        ({"rng_seed": 1}, "rng_seed"),
    ],
)
def test_another_configuration_is_refused_with_its_key(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    open_run(tmp_path, config_of()).close()
    with pytest.raises(ConfigError, match=words):
        open_run(tmp_path, config_of(**changes), resume=True)


def test_where_a_server_stands_and_how_it_is_asked_may_change(tmp_path: Path) -> None:
    open_run(tmp_path, config_of(policy_options={"base_url": "http://a/v1", "concurrency": 2})).close()
    moved = config_of(policy_options={"base_url": "http://b/v1", "concurrency": 9, "max_wait_s": 1})
    open_run(tmp_path, moved, resume=True).close()
    with pytest.raises(ConfigError, match=r"policy_options\.extra_body"):
        open_run(tmp_path, config_of(policy_options={"extra_body": {"top_k": 1}}), resume=True)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    open_run(tmp_path / "run", config_of()).close()
    with pytest.raises(ConfigError, match="--resume"):
        open_run(tmp_path / "run", config_of())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for resume in (False, True):
        with pytest.raises(ConfigError, match=r"thesis\.txt"):
            open_run(tmp_path / "mine", config_of(), resume=resume)
    assert [entry.name for entry in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="is a file, not a run directory"):
        open_run(tmp_path / "file", config_of())


def test_two_processes_may_not_write_at_once(tmp_path: Path) -> None:
    with open_run(tmp_path, config_of()), pytest.raises(ConfigError, match="another process"):
        open_run(tmp_path, config_of(), resume=True)
    open_run(tmp_path, config_of(), resume=True).close()


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    with open_run(tmp_path, config_of()) as run:
        run.append(trajectory("a", 0))
    with (tmp_path / "trajectories.jsonl").open("ab") as file:
        file.write(b'{"half": \n')
    with pytest.raises(ConfigError, match="line 2"):
        open_run(tmp_path, config_of(), resume=True)


def test_a_kill_between_folder_and_configuration_leaves_a_usable_folder(tmp_path: Path) -> None:
    (tmp_path / "run.json.tmp").write_text('{"half')
    open_run(tmp_path, config_of()).close()


WRITER = """
import sys
from pathlib import Path
from tests.rollouts.test_run_dir import config_of, trajectory
from sandmle.rollouts import open_run
with open_run(Path(sys.argv[1]), config_of(), resume=True) as run:
    print("open", flush=True)
    n = 0
    while True:
        big = trajectory("a", n).replace(versions={"x": "y" * 200_000})
        run.append(big)
        print(n, flush=True)
        n += 1
"""


def test_kill_9_at_any_moment_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    for round_number in range(4):
        path = tmp_path / str(round_number)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        time.sleep(0.02 + 0.037 * round_number)
        os.kill(writer.pid, signal.SIGKILL)
        reported = [int(line) for line in writer.stdout.read().split()]
        writer.wait()
        writer.stdout.close()
        with open_run(path, config_of(), resume=True) as run:
            assert all(run.is_done(("a", "p", n)) for n in reported)
            run.append(trajectory("b", 0))
        found = list(read_trajectories(path))
        assert [made.attempt for made in found[:-1]] == list(range(len(found) - 1))
        assert len(found) - 1 >= len(reported)


@pytest.mark.parametrize("text", ["[]", "null", "{", "[" * 100_000])
def test_a_configuration_that_is_none_is_one_sentence_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ConfigError, match=r"run\.json"):
        open_run(tmp_path, config_of(), resume=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_a_new_run_that_another_process_holds_is_refused_as_held(tmp_path: Path) -> None:
    with (tmp_path / "trajectories.jsonl").open("a+b") as file:  # as between the other's lock and its configuration
        fcntl.flock(file, fcntl.LOCK_EX)
        for resume in (False, True):
            with pytest.raises(ConfigError, match="another process is writing"):
                open_run(tmp_path, config_of(), resume=resume)
    assert [entry.name for entry in tmp_path.iterdir()] == ["trajectories.jsonl"]


def test_a_trajectory_without_a_json_form_costs_its_own_episode_only(tmp_path: Path) -> None:
    broken = trajectory("a", 0).replace(versions={"surrogate": "\ud800"})
    with open_run(tmp_path, config_of()) as run:
        written = run.append(broken)
        run.append(trajectory("b", 0))
        assert not run.is_done(("a", "p", 0))
    first, second = read_trajectories(tmp_path)
    assert (first, second.status) == (written, TrajectoryStatus.SUBMITTED)
    assert (first.status, first.reward, first.key) == (TrajectoryStatus.ROLLOUT_ERROR, None, ("a", "p", 0))
    assert first.failure is not None
    assert "cannot be written as JSON" in first.failure.message


def test_another_suite_is_named_before_what_it_changes(tmp_path: Path) -> None:
    open_run(tmp_path, config_of(suite={"name": "one"}, episode={"episode_s": 5})).close()
    with pytest.raises(ConfigError, match=r"suite\.name"):
        open_run(tmp_path, config_of(suite={"name": "two"}, episode={"episode_s": 9}), resume=True)


def test_a_full_disk_is_one_sentence_and_the_run_goes_on_afterwards(tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", config_of())
    run.append(trajectory("a", 0))
    file = run._file
    run._file = Path("/dev/full").open("r+b")
    with pytest.raises(ConfigError, match="No space left on device; mend that and go on with --resume"), run:
        run.append(trajectory("b", 0))
    file.close()
    with open_run(tmp_path / "run", config_of(), resume=True) as again:
        assert [again.is_done(("a", "p", 0)), again.is_done(("b", "p", 0))] == [True, False]
