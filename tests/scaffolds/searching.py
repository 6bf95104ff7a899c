"""A policy that gives prepared scripts to a tree search, and a tree from a few words."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sandmle.env import Episode, EpisodeConfig
from sandmle.grammars.operators import read_job, render_analysis, render_script
from sandmle.policies import SamplingParams
from sandmle.policies.proposer.policy import analyze
from sandmle.records import Completion, Direction, Message, Operator, SearchNode, Trajectory, Usage
from sandmle.scaffolds import open_scaffold
from sandmle.scaffolds.search.tree import Tree, Tried
from sandmle.tasks import Bundle
from tests.env.fakes import FakeSandbox


def script(score: object = None, *orders: str, file: str = "oracle.csv") -> str:
    """A script in the fake sandbox's orders: submits a file and prints a validation score."""
    lines = [f"submit {file}", *orders]
    return "\n".join(lines if score is None else [*lines, f"print Validation score: {score}"])


class Jobs:
    """Gives one prepared script a request; ``analyze`` is read from the output, or answered as told."""

    name = "jobs"

    def __init__(
        self,
        scripts: Iterable[str | BaseException],
        read: Callable[[str], str] | None = None,
        usage: Usage | None = None,
    ) -> None:
        self._scripts = iter(scripts)
        self._read = read or (lambda prompt: render_analysis(analyze(prompt)))
        self._usage = usage or Usage(requests=1, completion_tokens=10)
        self.jobs: list[str] = []
        self.prompts: list[tuple[Message, ...]] = []
        self.seeds: list[int] = []

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        job = read_job(transcript[-1].content)
        assert job is not None
        self.jobs.append(job)
        self.prompts.append(transcript)
        self.seeds.append(sampling.rng_seed)
        if job == "analyze":
            return Completion(text=self._read(transcript[-1].content), usage=self._usage)
        reply = next(self._scripts)
        if isinstance(reply, BaseException):
            raise reply
        text = reply if reply.startswith("RAW ") or not reply else render_script("I try.", reply)
        return Completion(text=text, usage=self._usage)

    async def aclose(self) -> None:
        return


async def searched(
    bundle: Bundle,
    grader: Any,
    policy: Any,
    scaffold: str = "aide",
    *,
    options: dict[str, Any] | None = None,
    journal: Path | None = None,
    sandbox: FakeSandbox | None = None,
    clock: Callable[[], float] | None = None,
    **settings: Any,
) -> Trajectory:
    extra = {} if clock is None else {"clock": clock}
    episode = Episode(
        bundle,
        sandbox=sandbox or FakeSandbox(),
        grader=grader,
        config=EpisodeConfig(**settings),
        rng_seed=5,
        journal=journal,
        **extra,
    )
    try:
        made = await open_scaffold(scaffold, options).run(episode, policy, SamplingParams(rng_seed=5), attempt=1)
    finally:
        await episode.aclose()
    assert Trajectory.model_validate_json(made.to_json()) == made
    return made


def tree_of(
    words: Sequence[tuple[Operator, tuple[int, ...], float | None]], direction: Direction = Direction.MAXIMIZE
) -> Tree:
    """A tree from operator, parents and score; no score is a broken script."""
    tree = Tree(direction)
    for operator, parents, score in words:
        node = SearchNode(
            index=len(tree),
            operator=operator,
            parents=parents,
            step=len(tree),
            validation_score=score,
            is_buggy=score is None,
        )
        tree.tried.append(Tried(node, "code", "output", None if score is None else b"x"))
    return tree
