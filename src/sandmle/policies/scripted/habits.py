"""What all engineers do: look at the data, run a script with slips and repairs, check, hand in."""

import re
from collections.abc import Callable, Generator
from dataclasses import replace

from sandmle.policies.scripted.brief import Brief, brief_of_pieces, read_bounds
from sandmle.policies.scripted.moves import Desk, Move, finish, muse, refused, run, score, submitted
from sandmle.policies.scripted.profile import Profile, read_profile
from sandmle.policies.scripted.scripts import PIECES, unpack_script, write_script
from sandmle.policies.scripted.slips import draw_slip

Habit = Generator[Move, str, str]
"""Part of a plan that returns the last observation."""
Writer = Callable[[Profile], str]
"""Writes a script for what is known of the task."""


def look(desk: Desk, *, muse_rate: float = 0.0) -> Generator[Move, str, Profile | None]:
    """Looks at the files once, a second time if the first look told nothing; returns what was seen."""
    if desk.chance("muse first", muse_rate):
        yield muse("I should think about what the task needs before I write any code. The metric is clear enough.")
    for thought in ("First I look at the files.", "That told me nothing; I look again."):
        observation = yield run(thought, write_script("look", root="input/"))
        profile = read_profile(observation, desk.brief)
        if profile is not None:
            return (yield from _take_apart(desk)) if desk.brief.pieces else profile
    return None


def _take_apart(desk: Desk) -> Generator[Move, str, Profile | None]:
    """Makes a table of the rows' pieces and looks at it; returns what was seen of them."""
    brief = desk.brief
    code = f"{unpack_script(brief.pieces, brief.n_pieces)}\n\n{write_script('look', root=PIECES)}"
    thought = f"Each row is made of {brief.n_pieces} pieces: I take them apart and predict for each piece by itself."
    profile = read_profile((yield run(thought, code)), brief_of_pieces(brief))
    if profile is None:
        return None
    return profile_of_pieces(profile, brief)


def profile_of_pieces(seen: Profile, brief: Brief) -> Profile:
    """Returns what a look at the pieces told, for scripts that predict for them and put the predictions together."""
    return replace(seen, pieces=brief.pieces, root=PIECES, metric_name=brief.metric_name)


def attempt(
    desk: Desk,
    thought: str,
    write: Writer,
    profile: Profile,
    *,
    purpose: str = "",
    slip_rate: float = 0.0,
    muse_rate: float = 0.0,
) -> Habit:
    """Runs a script, now and then with a slip first, and mends what the observation complains of.

    Args:
        desk: The episode.
        thought: Why this script.
        write: Writes the script for what is known of the task.
        profile: What is known of the task.
        purpose: Seeds the slips.
        slip_rate: Probability of a slip.
        muse_rate: Probability of a turn that forgets to act.

    Returns:
        The last observation.
    """
    if desk.chance(f"muse {purpose}", muse_rate):
        yield muse(f"{thought} Let me write that down properly.")
    code = write(profile)
    observation = yield from run_with_slip(desk, thought, code, profile, purpose=purpose, slip_rate=slip_rate)
    learnt = with_bounds(profile, observation)
    if refused(observation) and learnt != profile:
        observation = yield run(f"{complaint(observation)} I keep the predictions within bounds.", write(learnt))
    return observation


def run_with_slip(
    desk: Desk, thought: str, code: str, profile: Profile | None = None, *, purpose: str, slip_rate: float
) -> Habit:
    """Runs a script, now and then with a slip first; returns the last observation."""
    slip = draw_slip(desk, purpose, slip_rate, code, profile)
    if slip is not None:
        observation = yield run(thought, slip.code)
        if submitted(observation):
            return observation
        thought = f"{complaint(observation)} {slip.lesson}".strip()
    return (yield run(thought, code))


def with_bounds(profile: Profile, observation: str) -> Profile:
    """Returns the profile with the bounds of predictions that a complaint names."""
    low, high = read_bounds(complaint(observation))
    return replace(
        profile,
        low=profile.low if low is None else low,
        high=profile.high if high is None else high,
    )


def submit_sample(
    desk: Desk,
    thought: str = "The sample submission has the right form: I hand it in as it is.",
    *,
    slip_rate: float = 0.0,
    muse_rate: float = 0.0,
) -> Habit:
    """Copies the sample submission."""
    if desk.chance("muse sample", muse_rate):
        yield muse("The sample submission has the right form already. I could just copy it.")
    return (yield from run_with_slip(desk, thought, write_script("sample"), purpose="sample", slip_rate=slip_rate))


def hand_in(desk: Desk, *, check_rate: float) -> Habit:
    """Hands in, now and then after a look at the score."""
    if desk.chance("check", check_rate):
        yield score("I check that the submission is valid and what it scores.")
    return (yield finish("The submission is written; I hand it in."))


def complaint(observation: str) -> str:
    """Returns the sentence in which an observation says what is wrong with the submission, or how a script broke."""
    lines = [line.strip() for line in observation.splitlines()]
    telling = [line for line in lines if "is not valid" in line or re.match(r"\w*(Error|Exception)\b", line)]
    return telling[-1][:200] if telling else ""


def read_score(observation: str) -> float | None:
    """Returns the score that an observation shows, or None."""
    found = re.search(r": (-?\d[\d.e+-]*) \((?:higher|lower) is better\)", observation)
    return float(found[1]) if found else None
