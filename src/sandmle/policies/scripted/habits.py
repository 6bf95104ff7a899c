"""What all engineers do: look at the data, run a script with slips and repairs, check, hand in."""

import re
from collections.abc import Generator

from sandmle.policies.scripted.moves import Desk, Move, finish, muse, refused, run, score, submitted
from sandmle.policies.scripted.profile import Profile, read_profile
from sandmle.policies.scripted.scripts import write_script
from sandmle.policies.scripted.slips import draw_slip

Habit = Generator[Move, str, str]
"""Part of a plan that returns the last observation."""


def look(desk: Desk, *, muse_rate: float = 0.0) -> Generator[Move, str, Profile | None]:
    """Looks at the files once, a second time if the first look told nothing; returns what was seen."""
    if desk.chance("muse first", muse_rate):
        yield muse("I should think about what the task needs before I write any code. The metric is clear enough.")
    for thought in ("First I look at the files.", "That told me nothing; I look again."):
        observation = yield run(thought, write_script("look"))
        profile = read_profile(observation, desk.brief)
        if profile is not None:
            return profile
    return None


def attempt(
    desk: Desk,
    thought: str,
    code: str,
    profile: Profile | None = None,
    *,
    purpose: str = "",
    slip_rate: float = 0.0,
    muse_rate: float = 0.0,
) -> Habit:
    """Runs a script, now and then with a slip first that the observation makes the engineer mend.

    Returns:
        The last observation.
    """
    if desk.chance(f"muse {purpose}", muse_rate):
        yield muse(f"{thought} Let me write that down properly.")
    slip = draw_slip(desk, purpose, slip_rate, code, profile)
    if slip is not None:
        observation = yield run(thought, slip.code)
        if submitted(observation):
            return observation
        thought = f"{complaint(observation)} {slip.lesson}".strip()
    return (yield run(thought, code))


def submit_sample(
    desk: Desk,
    thought: str = "The sample submission has the right form: I hand it in as it is.",
    *,
    slip_rate: float = 0.0,
    muse_rate: float = 0.0,
) -> Habit:
    """Copies the sample submission."""
    return (yield from attempt(desk, thought, write_script("sample"), slip_rate=slip_rate, muse_rate=muse_rate))


def hand_in(desk: Desk, code: str | None, *, check_rate: float) -> Habit:
    """Checks the submission by asking for its score, mends it if it is not valid, and hands in.

    Args:
        desk: The episode.
        code: The script without slips; None when there is none to mend the submission with.
        check_rate: Probability that the engineer checks at all.
    """
    if desk.chance("check", check_rate):
        observation = yield score("I check that the submission is valid and what it scores.")
        if code is not None and refused(observation):
            yield run(f"{complaint(observation)} I write it again.", code)
    return (yield finish("The submission is written; I hand it in."))


def complaint(observation: str) -> str:
    """Returns the sentence in which an observation says what is wrong with the submission, or how a script broke."""
    lines = [line.strip() for line in observation.splitlines()]
    telling = [line for line in lines if "is not valid" in line or re.match(r"\w*(Error|Exception)\b", line)]
    return telling[-1][:200] if telling else ""
