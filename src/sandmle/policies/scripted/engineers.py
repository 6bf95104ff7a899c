"""The engineers: five of rising skill, and the tinkerer, whose skill is a matter of luck."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from sandmle.policies.scripted.explorer import explorer
from sandmle.policies.scripted.habits import attempt, hand_in, look, submit_sample
from sandmle.policies.scripted.moves import Desk, Engineer, Plan, run, submitted
from sandmle.policies.scripted.profile import Form, Profile
from sandmle.policies.scripted.scripts import write_script
from sandmle.policies.scripted.tinkerer import tinkerer


def sample(desk: Desk) -> Plan:
    """Hands in the sample submission."""
    yield from submit_sample(desk, slip_rate=0.2, muse_rate=0.3)
    yield from hand_in(desk, check_rate=0.0)


def average(desk: Desk) -> Plan:
    """Adds up the mean answers in bins of the three columns that tell most."""
    yield from _one_model(desk, "average", slip_rate=0.3, muse_rate=0.2, check_rate=0.5)


def linear(desk: Desk) -> Plan:
    """Fits a linear model to the raw columns."""
    yield from _one_model(desk, "linear", slip_rate=0.3, muse_rate=0.1, check_rate=0.7)


def boosted(desk: Desk) -> Plan:
    """Tunes gradient boosting by cross-validation on the task's metric."""
    yield from _one_model(desk, "boosted", slip_rate=0.2, muse_rate=0.05, check_rate=1.0)


ENGINEERS: Mapping[str, Engineer] = MappingProxyType(
    {
        "sample": sample,
        "average": average,
        "linear": linear,
        "boosted": boosted,
        "explorer": explorer,
        "tinkerer": tinkerer,
    }
)

_THOUGHTS = {
    "average": "I bin each column, take the three whose bins separate the answers best, and add up the bins' averages.",
    "linear": "A linear model on the raw columns, with one-hot categories, is a sound first submission.",
    "boosted": "I tune gradient boosting by cross-validation on {metric}, with a linear model as a check.",
}


def _one_model(desk: Desk, kind: str, *, slip_rate: float, muse_rate: float, check_rate: float) -> Plan:
    profile = yield from look(desk, muse_rate=muse_rate)
    if profile is None or profile.form is Form.UNKNOWN:
        yield from submit_sample(desk)
        yield from hand_in(desk, check_rate=0.0)
        return
    thought = _THOUGHTS[kind].format(metric=profile.metric_name)
    if kind == "linear" and profile.has_missing and desk.chance("forgets missing", 0.25):
        yield run(thought, _script(desk, kind, profile, forgets_missing=True))
        thought = "Some cells are empty, which the model does not take: I fill them with the column's median."
    elif kind == "boosted" and desk.chance("slow grid", 0.15):
        yield run(thought, _script(desk, kind, profile, slow_grid=True))
        thought = "That grid is far too large for the time a step has. A handful of settings will do."
    if kind != "boosted" and desk.chance("forgets bounds", 0.3):
        profile = replace(profile, low=None, high=None)
    observation = yield from attempt(
        desk, thought, partial(_script, desk, kind), profile, slip_rate=slip_rate, muse_rate=muse_rate
    )
    if not submitted(observation):
        yield from submit_sample(desk, "This does not get anywhere; the sample submission is at least valid.")
    yield from hand_in(desk, check_rate=check_rate)


def _script(desk: Desk, kind: str, profile: Profile, *, forgets_missing: bool = False, slow_grid: bool = False) -> str:
    many = profile.n_classes > 8
    return write_script(
        kind,
        p=profile,
        forgets_missing=forgets_missing,
        slow_grid=slow_grid,
        quick=many,
        careful=kind == "boosted",
        tuned=kind == "boosted",
        k=5,
        n_folds=3 if many else 5,
        seed=desk.rng_seed % 1000,
    )
