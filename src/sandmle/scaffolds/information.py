"""What an agent may ask about a task: only what stands in its description, its public files and its rules."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from sandmle.env import Episode
from sandmle.env.prompting import cut_middle, list_files
from sandmle.grammars.scan import clean_text
from sandmle.policies.scripted.scripts import write_script
from sandmle.records import Direction, ExecStatus, canonical_json

_MAX_LOOK_CHARS = 8000


async def look_at_files(episode: Episode) -> str:
    """Returns what a fixed script prints of the task's tables: shapes, columns, examples; empty if it fails.

    It is the same look that the scripted engineers take first, and bounded like any script of the agent.
    """
    trial = await episode.try_script(write_script("look", root="input/"))
    if trial.result is None or trial.result.status is not ExecStatus.OK:
        return ""
    return cut_middle(clean_text(trial.result.stdout).strip(), _MAX_LOOK_CHARS)


async def tell(episode: Episode, info_type: str) -> str:
    """Returns the answer to ``request_info``; one sentence for a type that there is not."""
    answer = _ANSWERS.get(info_type)
    if answer is not None:
        return await answer(episode)
    if info_type != "all":
        return f"There is no information of the type {clean_text(info_type)[:40]!r}; ask for {', '.join(INFO_TYPES)}."
    parts = [f"## {name}\n{await each(episode)}" for name, each in _ANSWERS.items()]
    return "\n\n".join(parts)


async def _overview(episode: Episode) -> str:
    return clean_text(episode.bundle.description()).strip()


async def _sample(episode: Episode) -> str:
    script = """
with open("input/sample_submission.csv", encoding="utf-8", errors="replace") as file:
    print("".join(line[:500] for _, line in zip(range(5), file)))
"""
    trial = await episode.try_script(script)
    found = "" if trial.result is None else clean_text(trial.result.stdout).strip()
    return found or "There is no sample_submission.csv."


async def _structure(episode: Episode) -> str:
    files = episode.bundle.public_paths()
    return "\n".join([*list_files(files), "", await look_at_files(episode)]).strip()


async def _data_path(episode: Episode) -> str:
    del episode
    return "./input"


async def _output_path(episode: Episode) -> str:
    del episode
    return "./submission.csv"


async def _name(episode: Episode) -> str:
    return episode.bundle.spec.title


async def _metadata(episode: Episode) -> str:
    spec, config = episode.bundle.spec, episode.config
    return canonical_json(
        {
            "metric": spec.metric,
            "higher_is_better": spec.direction is Direction.MAXIMIZE,
            "n_train": spec.n_train or None,
            "n_test": spec.n_public + spec.n_private,
            "seconds_a_script": min(config.step_wall_s, spec.limits.step_wall_s),
            "memory_mb": spec.limits.memory_mb,
        }
    )


_ANSWERS: Mapping[str, Callable[[Episode], Awaitable[str]]] = MappingProxyType(
    {
        "overview": _overview,
        "sample_submission": _sample,
        "data_structure": _structure,
        "data_path": _data_path,
        "output_path": _output_path,
        "name": _name,
        "metadata": _metadata,
    }
)
INFO_TYPES: tuple[str, ...] = (*_ANSWERS, "all")
"""What ``request_info`` takes."""
