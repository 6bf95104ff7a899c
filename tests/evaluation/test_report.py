import json
from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.evaluation.report import build_report
from sandmle.evaluation.schema import PolicyReport, RunReport
from sandmle.records import ExecStatus, GradeStatus, Medal, Trajectory, TrajectoryStatus
from tests.evaluation.run_builder import episode, grade, step, write_run

TASKS = ("t1", "t2", "t3")


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} in JSON")


def _row(report: RunReport, policy: str) -> PolicyReport:
    return next(row for row in report.policies if row.policy == policy)


def test_counts_shares_and_medals(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run",
        [episode(task, "good", attempt, 0.85) for task in TASKS for attempt in (0, 1)]
        + [episode(task, "mixed", 0, score) for task, score in zip(TASKS, (0.95, 0.75, 0.5), strict=True)]
        + [episode(task, "mixed", 1, None) for task in TASKS],
    )
    report = build_report([run])
    good, mixed = _row(report, "good"), _row(report, "mixed")
    assert (good.n_finished, good.n_planned, good.n_tasks) == (6, 6, 3)
    assert good.valid.mean == good.at_least["silver"].mean == 1.0
    assert good.at_least["gold"].mean == 0.0
    assert mixed.valid.mean == 0.5
    assert mixed.above_median.mean == pytest.approx(2 / 6)
    assert {name: share.mean for name, share in mixed.at_least.items()} == pytest.approx(
        {"bronze": 2 / 6, "silver": 1 / 6, "gold": 1 / 6}
    )
    assert mixed.highest == {"none": 4, "bronze": 1, "silver": 0, "gold": 1}
    assert sum(mixed.highest.values()) == mixed.n_planned
    assert mixed.by_attempt["bronze"].mean == pytest.approx(1 / 3)
    assert mixed.by_attempt["bronze"].n == 2
    assert good.terms["format"].mean == 1.0
    assert good.turns.mean == 2
    assert good.execution_s.n == 12
    assert good.execution_s.median == pytest.approx(0.55)
    assert (good.tokens.prompt_tokens, good.tokens.cost_usd) == (600, None)


def test_medals_are_cumulative_and_count_over_planned_episodes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [episode("t1", "p", 0, 0.95)], tasks=["t1", "t2"])
    row = build_report([run]).policies[0]
    assert row.at_least["bronze"].mean == row.at_least["silver"].mean == row.at_least["gold"].mean == 0.5


def test_q02_missing_episodes_count_as_failures_and_do_not_win(tmp_path: Path) -> None:
    tasks = [f"t{index}" for index in range(5)]
    steady = [episode(task, "steady", 0, 0.75) for task in tasks]
    flaky = [episode(task, "flaky", 0, 0.85) for task in tasks[:2]]
    report = build_report([write_run(tmp_path / "run", steady + flaky, tasks=tasks)])
    assert [row.policy for row in report.policies] == ["steady", "flaky"]
    row = _row(report, "flaky")
    assert (row.n_finished, row.n_planned, row.n_missing, row.endings["missing"]) == (2, 5, 3, 3)
    assert row.reward.mean is not None
    assert row.ranking_reward.mean == pytest.approx(row.reward.mean * 2 / 5)
    assert any("3 planned episodes without a record" in note for note in report.notes)


def test_q02_faults_of_ours_count_zero_in_rank_and_stay_out_of_the_training_mean(tmp_path: Path) -> None:
    broken = episode("t2", "p", 0, status=TrajectoryStatus.SANDBOX_ERROR)
    report = build_report([write_run(tmp_path / "run", [episode("t1", "p", 0, 0.85), broken])])
    row = report.policies[0]
    assert (row.n_infrastructure, row.n_finished, row.n_planned, row.n_missing) == (1, 1, 2, 0)
    assert row.reward.n == 1
    assert row.ranking_reward.n == 2
    assert row.ranking_reward.mean == pytest.approx((row.reward.mean or 0) / 2)
    assert row.valid.mean == 0.5


def test_q04_no_spread_for_one_task(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", [episode("t1", "p", 0, 0.85)])])
    reward = report.policies[0].ranking_reward
    assert (reward.standard_error, reward.low, reward.high) == (None, None, None)
    assert report.tasks[0].cells[0].reward.standard_error is None


def test_q04_a_failed_attempt_counts_in_the_spread_over_attempts(tmp_path: Path) -> None:
    attempts = [episode("t1", "p", attempt, 0.95) for attempt in range(3)]
    attempts.append(episode("t1", "p", 3, status=TrajectoryStatus.POLICY_ERROR))
    row = build_report([write_run(tmp_path / "run", attempts)]).policies[0]
    assert row.by_attempt["bronze"].mean == 0.75
    assert row.by_attempt["bronze"].n == 4
    assert row.by_attempt["bronze"].standard_error == pytest.approx(0.25)


def test_q05_equal_policies_share_a_rank(tmp_path: Path) -> None:
    scores = {"a": 0.95, "b": 0.85, "c": 0.85, "d": 0.5}
    trajectories = [episode(task, policy, 0, score) for policy, score in scores.items() for task in TASKS]
    report = build_report([write_run(tmp_path / "run", trajectories)])
    assert [(row.policy, row.rank) for row in report.policies] == [("a", 1), ("b", 2), ("c", 2), ("d", 4)]


def test_q05_a_malformed_entry_is_listed_as_unscored(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [episode("t1", "p", 0, 0.9)], policies=["p", "broken"])
    with (run / "trajectories.jsonl").open("a") as file:
        file.write('{"task_id": "t1", "policy": "broken"}\n')
    report = build_report([run])
    assert any("trajectories.jsonl, line 2" in problem for problem in report.problems)
    assert _row(report, "broken").n_finished == 0
    assert _row(report, "broken").reward.reason == "no value"


def test_q01_every_report_is_strict_json_with_reasons(tmp_path: Path) -> None:
    undefined = episode("t1", "p", 0, status=TrajectoryStatus.GRADER_ERROR)
    no_score = episode("t2", "p", 0, None, grade=grade("t2", None, GradeStatus.BAD_VALUES))
    run = write_run(tmp_path / "run", [undefined, no_score])
    with (run / "trajectories.jsonl").open("a") as file:
        line = episode("t3", "p", 0, 0.5).to_dict()
        file.write(json.dumps({**line, "reward": float("nan")}) + "\n")
        file.write(json.dumps({**line, "attempt": 1, "wall_s": float("inf")}) + "\n")
    report = build_report([run])
    parsed = json.loads(report.to_json(), parse_constant=_refuse)
    assert RunReport.model_validate_json(report.to_json()) == report
    assert len(report.problems) == 2
    assert "line 3: reward" in report.problems[0]
    assert "line 4: wall_s" in report.problems[1]
    cell = next(task for task in parsed["tasks"] if task["task_id"] == "t1")["cells"][0]
    assert cell["score"] is None
    assert cell["n_graded"] == 0
    assert cell["n_planned"] == 1


def test_q01_a_config_with_nan_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [], temperature=float("nan"))
    with pytest.raises(ConfigError, match=r"run\.json is not strict JSON"):
        build_report([run])


def test_r17_every_ending_is_told_apart(tmp_path: Path) -> None:
    endings = list(TrajectoryStatus)
    trajectories = [
        episode(f"t{index}", "p", 0, 0.9 if status is TrajectoryStatus.SUBMITTED else None, status=status)
        for index, status in enumerate(endings)
    ]
    row = build_report([write_run(tmp_path / "run", trajectories)]).policies[0]
    assert row.endings == {str(status): 1 for status in endings}
    assert row.n_infrastructure == sum(status.is_infrastructure for status in endings)


def test_executions_are_counted_by_how_they_ended(tmp_path: Path) -> None:
    steps = (step(0, exec_status=ExecStatus.TIMEOUT, exec_wall_s=90.0), step(1), step(2, exec_status=None))
    row = build_report([write_run(tmp_path / "run", [episode("t1", "p", 0, 0.9, steps=steps)])]).policies[0]
    assert row.executions == {"ok": 1, "timeout": 1}
    assert row.execution_s.n == 2


def test_oracle_feedback_is_marked(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", [episode("t1", "seer", 0, 0.9, feedback="oracle"), episode("t1", "plain", 0, 0.9)]
    )
    report = build_report([run])
    assert report.oracle
    assert _row(report, "seer").is_oracle
    assert not _row(report, "plain").is_oracle
    assert any("ORACLE" in note and "seer" in note for note in report.notes)
    assert any("differ in feedback" in note for note in report.notes)


def test_several_runs_are_compared_on_the_tasks_they_share(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", [episode(task, "p", 0, 0.95) for task in TASKS])
    second = write_run(tmp_path / "second", [episode(task, "p", 0, 0.75) for task in TASKS[:2]])
    report = build_report([first, second])
    assert [(row.run, row.policy, row.rank) for row in report.policies] == [("first", "p", 1), ("second", "p", 2)]
    difference = report.comparisons[0].difference
    assert (difference.wins, difference.estimate.n_tasks) == (2, 2)
    assert any("did not get the same tasks" in note for note in report.notes)


def test_tasks_of_one_name_and_other_content_are_not_compared(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", [episode("t1", "p", 0, 0.95)])
    changed = episode("t1", "p", 0, 0.95, task_hash="changed")
    second = write_run(tmp_path / "second", [changed], tasks=[])
    report = build_report([first, second])
    assert len(report.tasks) == 2
    assert report.comparisons[0].difference.estimate.mean is None


def test_runs_of_one_name_get_labels_of_their_own(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / parent / "run", [episode("t1", "p", 0, 0.9)]) for parent in ("a", "b")]
    assert [run.label for run in build_report(runs).runs] == ["a/run", "b/run"]
    assert [run.label for run in build_report([runs[0], runs[0]]).runs] == ["a/run (1)", "a/run (2)"]


def test_a_broken_run_directory_does_not_stop_the_others(tmp_path: Path) -> None:
    good = write_run(tmp_path / "good", [episode("t1", "p", 0, 0.9)])
    broken = write_run(tmp_path / "broken", [episode("t1", "p", 0, 0.9)])
    (broken / "run.json").write_text("{")
    report = build_report([broken, good, tmp_path / "absent"])
    assert [run.label for run in report.runs] == ["good"]
    assert "broken" in report.problems[0]
    assert "run.json" in report.problems[0]
    assert "no folder" in report.problems[1]


def test_only_broken_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        build_report([tmp_path / "absent"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"has no run\.json"):
        build_report([tmp_path / "empty"])


def test_a_torn_last_line_is_a_note_and_the_rest_is_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [episode("t1", "p", 0, 0.9), episode("t2", "p", 0, 0.9)])
    file = run / "trajectories.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    report = build_report([run])
    assert report.problems == ()
    assert any("line 2: torn" in note for note in report.notes)
    assert report.policies[0].n_missing == 1


def test_a_repeated_episode_counts_once(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [episode("t1", "p", 0, 0.5), episode("t1", "p", 0, 0.9)])
    report = build_report([run])
    assert report.policies[0].n_planned == 1
    assert report.tasks[0].cells[0].best_medal is Medal.GOLD
    assert any("1 older records" in note for note in report.notes)


def test_a_run_before_its_first_episode(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [], tasks=["t1"], policies=["p"], attempts=2)
    (run / "trajectories.jsonl").unlink()
    row = build_report([run]).policies[0]
    assert (row.n_finished, row.n_planned, row.ranking_reward.mean) == (0, 2, 0.0)


def test_a_cell_gives_mean_and_best_in_the_metric_direction(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [episode("t1", "p", 0, 0.7), episode("t1", "p", 1, 0.9)])
    cell = build_report([run]).tasks[0].cells[0]
    assert cell.score == pytest.approx(0.8)
    assert cell.best_score == 0.9
    assert cell.positions == pytest.approx((1.0, 3.0))


def test_the_report_does_not_depend_on_the_order_of_lines(tmp_path: Path) -> None:
    trajectories: list[Trajectory] = [
        episode(task, policy, attempt, score)
        for policy, score in (("a", 0.95), ("b", 0.7))
        for task in TASKS
        for attempt in (0, 1)
    ]
    plan = {"policies": ["a", "b"]}
    forward = build_report([write_run(tmp_path / "x" / "run", trajectories, **plan)])
    backward = build_report([write_run(tmp_path / "y" / "run", trajectories[::-1], **plan)])
    assert forward.policies == backward.policies
    assert forward.tasks == backward.tasks
