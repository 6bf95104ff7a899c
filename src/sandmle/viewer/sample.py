"""Chooses which trajectories a page holds: all of them if they fit, else a fair sample that fits."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sandmle.evaluation.runs import Episode, Run

MAX_TRANSCRIPT_BYTES = 2_300_000
Source = tuple[Run, Episode]


@dataclass(frozen=True)
class Sample:
    """The rendered trajectories, in the order of the page, and a sentence on what is shown."""

    fragments: tuple[str, ...]
    note: str


def sample_episodes(sources: Sequence[Source], render: Callable[[Run, Episode, str], str], max_bytes: int) -> Sample:
    """Renders episodes until the page is full.

    First attempts come before second ones, and within an attempt the order is a fixed shuffle, so that a sample holds
    all kinds of tasks and policies.

    Args:
        sources: All episodes in the order in which they are to be shown.
        render: Makes the HTML of one, given its anchor.
        max_bytes: Bound on the sum of the fragments' sizes.
    """
    order = sorted(range(len(sources)), key=lambda index: (sources[index][1].attempt, _shuffle_key(*sources[index])))
    fragments: dict[int, str] = {}
    size = 0
    for index in order:
        fragment = render(*sources[index], f"episode-{index + 1}")
        size += len(fragment.encode("utf-8", "replace"))
        if size > max_bytes:
            break
        fragments[index] = fragment
    shown = tuple(fragments[index] for index in sorted(fragments))
    if len(shown) == len(sources):
        note = (
            f"All {len(shown)} recorded episodes. Long texts are cut in the middle; trajectories.jsonl has all of it."
        )
    else:
        note = (
            f"A sample of {len(shown)} of {len(sources)} recorded episodes, so that this file stays small: first "
            "attempts first, drawn evenly over tasks and policies. All of them are in trajectories.jsonl."
        )
    return Sample(shown, note)


def _shuffle_key(run: Run, episode: Episode) -> str:
    name = f"{run.label}\0{episode.policy}\0{episode.task_id}"
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
