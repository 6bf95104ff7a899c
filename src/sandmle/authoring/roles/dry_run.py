"""What a run would ask and cost, before anything is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sandmle.authoring.roles.facts import PublicFacts, fitting_metrics, shape_of
from sandmle.authoring.roles.journal import read_recording
from sandmle.authoring.roles.models import list_prices
from sandmle.authoring.roles.options import LLMOptions, SpendLimits
from sandmle.authoring.roles.outputs import TaskIdea, baseline_file
from sandmle.authoring.roles.prompts import render
from sandmle.authoring.roles.publish import N_PUBLIC
from sandmle.grading import get_metric
from sandmle.records import Direction
from sandmle.seeds import load_seed

_EXAMPLE = "spaceship-titanic--0.jsonl"

TOKENS_OF_A_TASK = (13_000, 7_500)
"""Prompt and completion tokens of a task: twice what the shipped recordings take with one script sent back.

Counted at four characters a token, conversations sent whole at each turn; the rest is for models that think aloud.
"""


@dataclass(frozen=True)
class Estimate:
    """What a run would take.

    Attributes:
        n_tasks: Tasks.
        prompt_tokens, completion_tokens: Of all of them.
        usd: None where no price is known.
    """

    n_tasks: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None


def estimate(n_tasks: int, options: LLMOptions, limits: SpendLimits) -> Estimate:
    """Returns what a run would take.

    Raises:
        ConfigError: ``max_cost_usd`` is given but no price is known.
    """
    spoken, heard = (n_tasks * tokens for tokens in TOKENS_OF_A_TASK)
    prices = list_prices(options, limits)
    usd = None if prices is None else (spoken * prices[0] + heard * prices[1]) / 1e6
    return Estimate(n_tasks, spoken, heard, usd)


def first_prompts(seed_ids: Sequence[str]) -> dict[str, str]:
    """Returns the prompt that each seed's strategist would get."""
    return {seed_id: _joined(render("strategist", **shape_of(load_seed(seed_id)), taken=())) for seed_id in seed_ids}


def later_prompts() -> dict[str, str]:
    """Returns the prompts of the other roles, by role, for the task of a shipped recording: theirs need an idea."""
    path = recordings_dir() / _EXAMPLE
    head, lines, _ = read_recording(path)
    assert head is not None  # it is shipped with the package
    idea = TaskIdea.model_validate_json(lines[0].text)
    dna = load_seed(head.seed_id).dna
    metric = get_metric(dna.metric)
    facts = PublicFacts(
        idea=idea,
        metric={
            "name": metric.name,
            "title": metric.title,
            "words": metric.words,
            "formula": metric.formula,
            "better": "higher is better" if metric.direction is Direction.MAXIMIZE else "lower is better",
            "params": {},
        },
        label_shares=dict.fromkeys(idea.target.labels, 1 / max(1, len(idea.target.labels))),
        ranges={},
        sample_head=",".join([idea.id_column, *idea.target.columns]),
        media={},
    )
    return {
        "developer": _joined(render("developer", idea=idea, baseline_file=baseline_file, n_public=N_PUBLIC)),
        "mlops": _joined(render("mlops", idea=idea, dna=dna, metrics=fitting_metrics(idea))),
        "writer": _joined(render("writer", facts=facts)),
        "reviewer": _joined(render("reviewer", facts=facts, description="(the writer's text)")),
    }


def recordings_dir() -> Path:
    """Returns the folder of the recordings that come with the package."""
    return Path(str(resources.files("sandmle.authoring.roles"))) / "recordings"


def _joined(parts: tuple[str, str]) -> str:
    return "\n\n".join(parts)
