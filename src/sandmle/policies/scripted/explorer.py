"""The strongest engineer: looks, compares blocks of features by cross-validation, blends models on those that help."""

import re
from functools import partial

from sandmle.policies.scripted.habits import attempt, hand_in, look, read_score, submit_sample, with_bounds
from sandmle.policies.scripted.moves import Desk, Plan, run, score, submitted
from sandmle.policies.scripted.profile import Form, Profile
from sandmle.policies.scripted.scripts import write_script

NATIVE_BLOCKS = ("dates", "codes", "texts", "images", "traces", "graphs", "clouds", "videos", "places", "repeats")
"""Blocks that turn a column no model can read into numbers."""


def explorer(desk: Desk) -> Plan:
    """Explores the data, engineers features, selects and blends by cross-validation on the task's metric."""
    profile = yield from look(desk, muse_rate=0.03)
    if profile is None or profile.form is Form.UNKNOWN:
        yield from submit_sample(desk)
        yield from hand_in(desk, check_rate=0.0)
        return
    blocks = possible_blocks(profile)
    thought = f"{describe(profile)} I compare blocks of features by cross-validation on {profile.metric_name}."
    write = partial(_script, desk, "features", blocks)
    observation = yield from attempt(desk, thought, write, profile, purpose="features", slip_rate=0.15)
    profile = with_bounds(profile, observation)
    simple, first = write(profile), None
    if submitted(observation):
        first = read_score((yield score("A first model stands. I ask what it scores, to have something to beat.")))
    kept = helpful_blocks(observation, blocks)
    thought = f"These blocks help: {', '.join(kept) or 'none'}. I blend several models on them."
    write = partial(_script, desk, "blend", kept)
    observation = yield from attempt(desk, thought, write, profile, purpose="blend", slip_rate=0.1)
    if not submitted(observation):
        write = partial(_script, desk, "boosted", ())
        observation = yield from attempt(desk, "The blend broke; a tuned boosted model has to do.", write, profile)
    if not submitted(observation):
        yield from submit_sample(desk, "That broke as well; the sample submission is at least valid.")
    second = read_score((yield score("I check that the submission is valid and what it scores.")))
    if first is not None and second is not None and (second < first) == profile.higher_is_better:
        yield run("The blend scores worse than the simple model did: I go back to that.", simple)
    yield from hand_in(desk, check_rate=0.0)


def possible_blocks(profile: Profile) -> tuple[str, ...]:
    """Returns the blocks of features that the columns allow."""
    has = {
        "dates": bool(profile.dates),
        "codes": bool(profile.codes),
        "texts": bool(profile.texts),
        "images": bool(profile.images),
        "traces": bool(profile.series or profile.traces or profile.sounds or profile.series_files),
        "graphs": bool(profile.graphs),
        "clouds": bool(profile.clouds),
        "videos": bool(profile.videos),
        "repeats": bool(profile.repeats),
        "places": len(profile.places) >= 2,
        "entities": bool(profile.groups or profile.strangers),
        "curves": bool(profile.numbers),
        "pairs": len(profile.numbers) >= 2,
        "crosses": bool(profile.categories and profile.numbers) or len(profile.categories) >= 2,
    }
    return tuple(name for name, is_there in has.items() if is_there)


def helpful_blocks(observation: str, blocks: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the blocks that cross-validation chose, and those without which columns go unread."""
    found = re.search(r"blocks: \[(.*)\]", observation)
    chosen = re.findall(r"\w+", found[1]) if found else []
    return tuple(name for name in blocks if name in NATIVE_BLOCKS or name in chosen)


def describe(profile: Profile) -> str:
    """Returns what the data hold, in a sentence."""
    kinds = ("numbers", "categories", "dates", "codes", "texts", "images", "sounds", "traces", "series", "groups")
    media = ("videos", "series_files", "clouds", "graphs")
    counts = [f"{len(getattr(profile, kind))} {kind}" for kind in (*kinds, *media) if getattr(profile, kind)]
    return f"The data hold {', '.join(counts)}; a prediction is of the form {profile.form.value}."


def _script(desk: Desk, template: str, blocks: tuple[str, ...], profile: Profile) -> str:
    many = profile.n_classes > 8 or len(profile.predicted) > 8
    return write_script(
        template,
        p=profile,
        blocks=blocks,
        native=[name for name in blocks if name in NATIVE_BLOCKS],
        thrift=0.8,
        k=5,
        n_folds=3 if many else 5,
        seed=desk.rng_seed % 1000,
        slow_grid=False,
        quick=many,
        careful=True,
        tuned=True,
        bags=2 if profile.n_classes > 2 or len(profile.predicted) > 2 else 4,
    )
