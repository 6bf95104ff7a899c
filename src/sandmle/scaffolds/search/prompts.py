"""The words of a tree search: one system message for all, one user message for each operator. Text in, text out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sandmle.env.config import EpisodeConfig
from sandmle.env.prompting import cut_middle, list_files
from sandmle.grammars.operators import SCORE_LINE, job_heading
from sandmle.grammars.scan import clean_text
from sandmle.records import Direction, Message, TaskSpec
from sandmle.scaffolds.prompting import render
from sandmle.scaffolds.search.memory import Complexity
from sandmle.scaffolds.search.tree import Tried

MAX_OUTPUT_CHARS = 5000
"""Longest output of a script that a prompt repeats; head and tail are kept."""
MAX_SUMMARY_CHARS = 600
"""Longest plan or analysis of an earlier script that a prompt tells."""
MAX_MEMORY_CHARS = 20_000
"""Longest list of earlier scripts; the oldest are left out."""


@dataclass(frozen=True)
class Shown:
    """A node as a prompt shows it."""

    plan: str
    analysis: str
    score: str | None
    code: str
    output: str
    fence: str


def system_message(
    spec: TaskSpec,
    config: EpisodeConfig,
    description: str,
    files: Sequence[str],
    overview: str,
    k_fold: int | None,
) -> Message:
    """Returns what all prompts of a search begin with: the rules, the task, a look at its files.

    Args:
        spec: The task; only its limits and direction are told.
        config: The rules of the episode.
        description: The task's text.
        files: Paths of its public files.
        overview: What the look at the files printed; empty for none.
        k_fold: Folds of the cross-validation that scripts are asked for; None leaves the choice to the model.
    """
    text = render(
        "search_system.j2",
        step_wall_s=f"{min(config.step_wall_s, spec.limits.step_wall_s):g}",
        memory_mb=spec.limits.memory_mb,
        k_fold=k_fold,
        score_line=SCORE_LINE,
        way="higher" if spec.direction is Direction.MAXIMIZE else "lower",
        description=clean_text(description).strip(),
        files=list_files(files),
        overview=clean_text(overview).strip(),
    )
    return Message(role="system", content=text)


def operator_message(
    operator: str,
    *,
    parents: Sequence[Tried] = (),
    memory: Sequence[Tried] = (),
    hint: Complexity | None = None,
) -> Message:
    """Returns the request for one script or one judgement.

    Args:
        operator: One of ``sandmle.grammars.operators.OPERATORS``.
        parents: The scripts that it starts from, shown whole.
        memory: Earlier scripts, of which plan and score are told.
        hint: How ambitious the script should be.
    """
    text = render(
        f"search_{operator}.j2",
        heading=job_heading(operator),
        parents=[_shown(each) for each in parents],
        memory=_latest([_shown(each) for each in memory]),
        hint=hint,
    )
    return Message(role="user", content=text)


def _latest(memory: list[Shown]) -> list[Shown]:
    """Returns the last entries that a prompt has room for, so that a long search does not outgrow the model."""
    room, start = MAX_MEMORY_CHARS, len(memory)
    while start and (room := room - len(memory[start - 1].plan) - len(memory[start - 1].analysis) - 50) >= 0:
        start -= 1
    return memory[start:]


def _shown(tried: Tried) -> Shown:
    node = tried.node
    longest = max((len(run) for run in re.findall(r"^ {0,3}(`{3,})", tried.code, re.MULTILINE)), default=2)
    return Shown(
        plan=cut_middle(" ".join(node.plan.split()), MAX_SUMMARY_CHARS),
        analysis=cut_middle(" ".join(node.analysis.split()), MAX_SUMMARY_CHARS),
        score=None if node.validation_score is None else f"{node.validation_score:.6g}",
        code=tried.code,
        output=cut_middle(tried.output, MAX_OUTPUT_CHARS),
        fence="`" * (longest + 1),
    )
