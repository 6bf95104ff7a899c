"""What an engineer does in a turn, and the episode as the engineer sees it."""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from sandmle.grammars import Action
from sandmle.policies.scripted.brief import Brief
from sandmle.records import ActionKind

SUBMITTED = "wrote submission.csv"
"""What every script prints last, once it has written a submission."""


@dataclass(frozen=True)
class Move:
    """One turn.

    Attributes:
        thought: The reasoning in front of the action.
        action: What to do; None for a turn that forgets to act.
    """

    thought: str
    action: Action | None


Plan = Generator[Move, str, None]
"""An engineer at work: yields moves, is sent what came back."""
Engineer = Callable[["Desk"], Plan]


@dataclass(frozen=True)
class Desk:
    """What an engineer knows when it starts: the task's description, and its own dice.

    Attributes:
        brief: What the description says of metric and files.
        rng_seed: The attempt's seed.
    """

    brief: Brief
    rng_seed: int

    def dice(self, purpose: str) -> np.random.Generator:
        """Returns random numbers that depend on the attempt and the purpose only."""
        return np.random.default_rng([self.rng_seed % 2**63, *purpose.encode()])

    def chance(self, purpose: str, probability: float) -> bool:
        """Tells whether something happens that does so with a given probability."""
        return bool(self.dice(purpose).random() < probability)

    def choose(self, purpose: str, options: tuple[str, ...]) -> str:
        """Picks one of several texts."""
        return options[int(self.dice(purpose).integers(len(options)))]


def run(thought: str, code: str) -> Move:
    """Returns the move that runs a script."""
    return Move(thought, Action(ActionKind.RUN, code))


def score(thought: str) -> Move:
    """Returns the move that asks for feedback."""
    return Move(thought, Action(ActionKind.SCORE))


def finish(thought: str) -> Move:
    """Returns the move that hands in."""
    return Move(thought, Action(ActionKind.FINISH))


def muse(thought: str) -> Move:
    """Returns a move that forgets to act: a turn out of form."""
    return Move(thought, None)


def submitted(observation: str) -> bool:
    """Tells from an observation whether the script came to its end and wrote a submission."""
    return SUBMITTED in observation and not refused(observation)


def refused(observation: str) -> bool:
    """Tells from an observation whether submission.csv is there but has the wrong form."""
    return "is not valid" in observation
