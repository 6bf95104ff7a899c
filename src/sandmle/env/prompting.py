"""Words for the agent: prompts and observations. Text in, text out."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from sandmle.env.config import EpisodeConfig
from sandmle.grammars import Grammar
from sandmle.grammars.scan import clean_text
from sandmle.records import ExecResult, ExecStatus, Message, TaskLimits

_MAX_LISTED = 30
_HEADLINES = {
    ExecStatus.OK: "The script ended normally after {seconds}.",
    ExecStatus.ERROR: "The script failed ({code}) after {seconds}.",
    ExecStatus.TIMEOUT: "The script was stopped at its time limit after {seconds}.",
    ExecStatus.OOM: "The script was stopped after {seconds}: it used too much memory.",
    ExecStatus.OUTPUT_LIMIT: "The script was stopped after {seconds}: it printed too much.",
    ExecStatus.LIMIT: "The script hit a limit after {seconds}.",
}


def opening_messages(
    config: EpisodeConfig, grammar: Grammar, description: str, files: Sequence[str], limits: TaskLimits
) -> tuple[Message, ...]:
    """Returns the system and the user message that start an episode.

    Args:
        config: The rules.
        grammar: How replies are written.
        description: The task's text.
        files: Paths of the files below ``./input``.
        limits: The task's own limits.
    """
    system = _render(
        "system.j2",
        max_turns=config.max_turns,
        step_wall_s=f"{min(config.step_wall_s, limits.step_wall_s):g}",
        memory_mb=limits.memory_mb,
        feedback=config.feedback,
        max_feedback=config.max_feedback,
        instructions=grammar.instructions(),
    )
    task = _render("task.j2", description=clean_text(description).strip(), files=list_files(files))
    return (Message(role="system", content=system), Message(role="user", content=task))


def list_files(paths: Sequence[str]) -> list[str]:
    """Returns one line a file, with folders of many files drawn together into one line."""
    folders = Counter(path.rpartition("/")[0] for path in paths)
    lines: list[str] = []
    for path in sorted(paths):
        folder = path.rpartition("/")[0]
        line = path if not folder or folders[folder] <= 3 else f"{folder}/ ({folders[folder]} files)"
        if line not in lines[-1:]:
            lines.append(line)
    if len(lines) > _MAX_LISTED:
        lines = [*lines[:_MAX_LISTED], f"... and {len(lines) - _MAX_LISTED} more"]
    return lines


def run_text(result: ExecResult, submission: str, max_chars: int) -> str:
    """Returns what the agent reads about an execution: how it ended, what it printed, what became of its submission.

    Args:
        result: What the sandbox said.
        submission: One sentence on submission.csv.
        max_chars: Longest output shown, both streams together.
    """
    stdout, stderr = clean_text(result.stdout).rstrip(), clean_text(result.stderr).rstrip()
    # stderr holds the traceback: it may use half, and what stdout leaves free.
    stdout_room = max(max_chars // 2, max_chars - len(stderr))
    stdout = cut_middle(stdout, stdout_room)
    stderr = cut_middle(stderr, max_chars - min(len(stdout), stdout_room))
    code = "no exit code" if result.exit_code is None else f"exit code {result.exit_code}"
    headline = _HEADLINES[result.status].format(seconds=_seconds(result.wall_s), code=code)
    if result.detail:
        headline = f"{headline} {result.detail}"
    return _render("run.j2", headline=headline, stdout=stdout, stderr=stderr, submission=submission)


def observation_text(body: str, notes: Sequence[str], turns_left: int | None) -> str:
    """Returns the whole observation of a turn."""
    return _render("observation.j2", body=body, notes=notes, turns_left=turns_left)


def cut_middle(text: str, max_chars: int) -> str:
    """Returns text of about ``max_chars`` at most: head and tail, with a mark that says how much is missing."""
    if len(text) <= max_chars:
        return text
    head, tail = max_chars // 2, max_chars - max_chars // 2
    missing = len(text) - head - tail
    return f"{text[:head]}\n[... {missing} characters left out ...]\n{text[-tail:]}"


def _seconds(wall_s: float) -> str:
    return f"{wall_s:.0f} s" if wall_s >= 1 else "less than 1 s"


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values).strip("\n")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("sandmle.env", "prompts"),
        undefined=StrictUndefined,
        autoescape=False,
        auto_reload=False,
        keep_trailing_newline=False,
    )
