"""The policy: replays an engineer over the transcript and writes its next move in the wanted grammar.

An engineer is a generator that yields moves and is sent observations. The policy keeps nothing between calls: it
starts the engineer anew and sends it every observation of the transcript, so that the same transcript and ``rng_seed``
give the same reply in any process.
"""

from collections.abc import Sequence

from sandmle.errors import unknown_name
from sandmle.grammars import Grammar, get_grammar
from sandmle.policies.base import SamplingParams
from sandmle.policies.scripted.brief import read_brief
from sandmle.policies.scripted.engineers import ENGINEERS
from sandmle.policies.scripted.moves import Desk, Engineer, Move, Plan, finish
from sandmle.records import Completion, Message, Usage

SCRIPTED_NAMES: tuple[str, ...] = tuple(ENGINEERS)
"""All engineers."""
LADDER: tuple[str, ...] = ("sample", "average", "linear", "boosted", "explorer")
"""Those that make a scale to read others against, from the weakest to the strongest."""


class ScriptedPolicy:
    """An engineer that needs no model."""

    def __init__(self, name: str, engineer: Engineer, grammar: Grammar) -> None:
        self.name = f"scripted:{name}"
        self._engineer = engineer
        self._grammar = grammar

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the engineer's next reply."""
        task, observations = _split(transcript)
        move = _replay(self._engineer(Desk(read_brief(task), sampling.rng_seed)), observations)
        text = move.thought if move.action is None else self._grammar.render(move.thought, move.action)
        return Completion(text=text, usage=Usage(requests=1))

    async def aclose(self) -> None:
        """Does nothing: there is nothing to release."""


def open_scripted(name: str, grammar: str = "react") -> ScriptedPolicy:
    """Returns a scripted engineer.

    Args:
        name: One of ``SCRIPTED_NAMES``.
        grammar: The grammar that its replies are written in.

    Raises:
        ConfigError: There is no engineer or no grammar of that name.
    """
    if name not in ENGINEERS:
        raise unknown_name("scripted engineer", name, ENGINEERS)
    return ScriptedPolicy(name, ENGINEERS[name], get_grammar(grammar))


def _split(transcript: Sequence[Message]) -> tuple[str, list[str]]:
    """Returns the user's messages before the first reply as one text, and those that answer replies."""
    start = next((at for at, message in enumerate(transcript) if message.role == "assistant"), len(transcript))
    task = "\n".join(message.content for message in transcript[:start] if message.role == "user")
    return task, [message.content for message in transcript[start:] if message.role == "user"]


def _replay(plan: Plan, observations: Sequence[str]) -> Move:
    """Returns the move that follows the observations; an engineer that is done hands in."""
    try:
        move = next(plan)
        for observation in observations:
            move = plan.send(observation)
    except StopIteration:
        return finish("There is nothing left to try: I hand in what is there.")
    return move
