"""Tasks come in turn, the same after a resume; the curriculum prefers those that teach."""

from collections import Counter

from sandmle.training.schedule import TaskSchedule

TASKS = ["a", "b", "c", "d", "e"]


def test_every_task_comes_before_any_comes_again() -> None:
    schedule = TaskSchedule(TASKS, rng_seed=3)
    drawn = [task for step in range(5) for task in schedule.draw(step, 2)]
    assert sorted(drawn[:5]) == sorted(drawn[5:]) == TASKS
    assert drawn[:5] != drawn[5:]


def test_a_draw_depends_on_the_step_alone() -> None:
    one, other = TaskSchedule(TASKS, 1), TaskSchedule(list(reversed(TASKS)), 1)
    assert one.draw(7, 3) == other.draw(7, 3)
    assert [TaskSchedule(TASKS, 2).draw(0, 5), one.draw(0, 5)][0] != one.draw(0, 5)


def test_fewer_tasks_than_places() -> None:
    assert TaskSchedule(["a"]).draw(0, 3) == ["a", "a", "a"]
    assert sorted(TaskSchedule(["a", "b"], curriculum=True).draw(0, 4)) == ["a", "a", "b", "b"]


def test_the_curriculum_draws_tasks_whose_groups_differ() -> None:
    schedule = TaskSchedule(TASKS, curriculum=True)
    for _ in range(20):
        schedule.learn({"a": True, "b": False, "c": False, "d": False, "e": False})
    counts = Counter(task for step in range(300) for task in schedule.draw(step, 1))
    assert counts["a"] > 150
    assert all(counts[task] > 0 for task in TASKS)
    assert schedule.learnability("a") > 0.9 > 0.1 > schedule.learnability("b")
