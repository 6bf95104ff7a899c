from sandmle.env.config import EpisodeConfig
from sandmle.env.prompting import cut_middle, list_files, opening_messages, run_text
from sandmle.grammars import get_grammar
from sandmle.records import ExecResult, ExecStatus, TaskLimits


def test_r16_a_huge_output_is_cut_with_a_visible_mark() -> None:
    text = run_text(
        ExecResult(status=ExecStatus.ERROR, exit_code=1, stdout="A" + "x" * 1_000_000 + "Z", stderr="B" * 999_999),
        "There is no submission.csv yet.",
        1000,
    )
    assert len(text) < 1400
    assert "characters left out" in text
    assert "[stdout]\nA" in text
    assert "xZ\n" in text
    assert "exit code 1" in text


def test_short_errors_leave_the_room_to_output() -> None:
    text = run_text(ExecResult(status=ExecStatus.OK, exit_code=0, stdout="o" * 900, stderr="e" * 50), "", 1000)
    assert "o" * 900 in text
    assert "e" * 50 in text


def test_cut_middle_keeps_head_and_tail() -> None:
    assert cut_middle("abcdef", 6) == "abcdef"
    assert cut_middle("abcdefgh", 4) == "ab\n[... 4 characters left out ...]\ngh"


def test_many_files_of_a_folder_become_one_line() -> None:
    paths = ["train.csv", "test.csv", *[f"images/{n}.png" for n in range(500)]]
    assert list_files(paths) == ["images/ (500 files)", "test.csv", "train.csv"]


def test_prompts_tell_the_rules_and_only_them() -> None:
    for feedback, words in (
        ("none", "No scores are shown"),
        ("public", "small part of the test rows"),
        ("oracle", "medals"),
    ):
        config = EpisodeConfig(grammar="fenced", feedback=feedback, max_turns=7)
        system, task = opening_messages(
            config,
            get_grammar("fenced"),
            "# Title\ntext {{ not a template }}",
            ["train.csv"],
            TaskLimits(step_wall_s=30),
        )
        assert (system.role, task.role) == ("system", "user")
        assert words in system.content
        assert "7 turns" in system.content
        assert "30 seconds" in system.content
        assert "```python" in system.content
        assert "{{ not a template }}" in task.content
        assert "- train.csv" in task.content
        assert "answers.csv" not in system.content + task.content
