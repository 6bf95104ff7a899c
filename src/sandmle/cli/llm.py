"""What ``sandmle generate --author llm`` adds: the author from options, the dry run, the live line."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sandmle.cli.output import console, print_json
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.authoring.pipeline import AuthorFactory
    from sandmle.authoring.roles.options import LLMOptions, SpendLimits
    from sandmle.records import ThresholdPreset

SHIPPED = "shipped"
"""Stands for the recordings that come with the package."""


def replay_folder(name: str | None) -> Path | None:
    """Returns the folder of recordings.

    Raises:
        ConfigError: There is no such folder, or no recording in it.
    """
    if name is None:
        return None
    from sandmle.authoring.roles.dry_run import recordings_dir
    from sandmle.authoring.roles.journal import recordings_in

    folder = recordings_dir() if name == SHIPPED else Path(name)
    recordings_in(folder)
    return folder


def recorded_seeds(folder: Path) -> list[str]:
    """Returns the seeds that a folder has recordings of, each once."""
    from sandmle.authoring.roles.journal import recordings_in

    return list(dict.fromkeys(head.seed_id for head in recordings_in(folder).values()))


def read_prices(text: str | None) -> dict[str, float]:
    """Returns prices from ``IN,OUT``.

    Raises:
        ConfigError: They are not two numbers.
    """
    if text is None:
        return {}
    try:
        spoken, heard = (float(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--prices {text!r} is not two numbers; write US dollars for a million tokens, like 0.25,2"
        ) from error
    if min(spoken, heard) < 0:
        raise ConfigError(f"--prices {text!r} is below zero")
    return {"usd_per_million_prompt": spoken, "usd_per_million_completion": heard}


@dataclass(frozen=True)
class LLMPlan:
    """A run of the author, as its options ask for it."""

    names: list[str]
    count: int
    options: "LLMOptions"
    limits: "SpendLimits"
    replay: Path | None

    def author_factory(self, out: Path, preset: "ThresholdPreset", record: Path | None) -> "AuthorFactory":
        """Returns what makes the author in every worker, after seeing that it can work at all.

        Raises:
            ConfigError: No key, no such provider, no price where one is needed.
        """
        from sandmle.authoring.roles.author import WORK_DIR, LLMAuthor

        factory = partial(
            LLMAuthor,
            out.resolve() / WORK_DIR,
            self.options,
            limits=self.limits,
            preset=preset,
            replay=self.replay,
            record=record,
        )
        factory().check()
        return factory


def plan_run(
    names: list[str], count: int | None, options: "LLMOptions", limits: "SpendLimits", replay: str | None
) -> LLMPlan:
    """Returns the plan of a run; a replay of all seeds takes those that were recorded.

    Raises:
        ConfigError: There is neither a model nor a recording, or no count.
    """
    folder = replay_folder(replay)
    if folder is not None:
        names = recorded_seeds(folder) if names == ["all"] else names
        return LLMPlan(names, count or len(names), options.replace(model="replay"), limits, folder)
    if not options.model:
        raise ConfigError("--author llm needs --model PROVIDER:NAME, or --replay shipped to go without a model")
    if count is None:
        raise ConfigError("how many tasks? give --count N")
    return LLMPlan(names, count, options, limits, None)


def show_dry_run(seeds: tuple[str, ...], plan: LLMPlan, as_json: bool) -> None:
    """Prints the first prompts and the estimated cost; asks nobody."""
    from sandmle.authoring.roles.dry_run import estimate, first_prompts, later_prompts

    shown = seeds[: min(plan.count, len(seeds))]
    found = estimate(plan.count, plan.options, plan.limits)
    prompts, later = first_prompts(shown if as_json else shown[:1]), later_prompts()
    if as_json:
        print_json({"estimate": vars(found), "prompts": prompts, "later_prompts": later})
        return
    screen = console()
    for seed_id, text in prompts.items():
        screen.print(f"--- the strategist's prompt for {seed_id} ---\n{text}\n", markup=False)
    for role, text in later.items():
        screen.print(f"--- the {role}'s prompt, for the task of a shipped recording ---\n{text}\n", markup=False)
    cost = "cost unknown (give --prices IN,OUT)" if found.usd is None else f"about {found.usd:.2f} USD"
    tokens = f"{found.prompt_tokens} prompt and {found.completion_tokens} completion tokens"
    screen.print(f"{found.n_tasks} tasks, about {tokens}, {cost}", markup=False)
