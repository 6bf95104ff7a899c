"""Mistakes that engineers make now and then, seeded by the attempt, and what they say when they mend them."""

import re
from dataclasses import dataclass

from sandmle.policies.scripted.moves import Desk
from sandmle.policies.scripted.profile import Profile


@dataclass(frozen=True)
class Slip:
    """A script with a mistake in it.

    Attributes:
        name: What kind of mistake it is.
        code: The script with the mistake.
        lesson: What the engineer says when it has seen the consequence.
    """

    name: str
    code: str
    lesson: str


def draw_slip(desk: Desk, purpose: str, rate: float, code: str, profile: Profile | None) -> Slip | None:
    """Returns a mistake with the probability ``rate``, or None."""
    if not desk.chance(f"slip {purpose}", rate):
        return None
    slips = [slip for slip in (_wrong_column(code, profile), _typo(code), _index(code)) if slip is not None]
    if not slips:
        return None
    return slips[int(desk.dice(f"which slip {purpose}").integers(len(slips)))]


def _wrong_column(code: str, profile: Profile | None) -> Slip | None:
    if profile is None or not profile.targets:
        return None
    column = profile.targets[0]
    guess = "target" if column != "target" else "label"
    wrong = re.sub(rf"(train\[|targets = \[){re.escape(repr(column))}", rf"\g<1>{guess!r}", code)
    if wrong == code:
        return None
    return Slip(
        "wrong column", wrong, f"There is no column {guess!r}: the answers are in {column!r}. I put that right."
    )


def _typo(code: str) -> Slip | None:
    for right, wrong in (
        ("np.zeros(", "np.zeroes("),
        (".to_numpy(float)", ".to_array(float)"),
        ("pd.concat(", "pd.concatenate("),
    ):
        if right in code:
            return Slip(
                "typo",
                code.replace(right, wrong, 1),
                f"The function is called {right.strip('.(')}, not {wrong.strip('.(')}.",
            )
    return None


def _index(code: str) -> Slip | None:
    right, wrong = 'to_csv("submission.csv", index=False)', 'to_csv("submission.csv")'
    if right not in code:
        return None
    return Slip(
        "index column",
        code.replace(right, wrong),
        "The file has an index column that does not belong there; I write it without.",
    )
