"""The tinkerer: puts scripts together from parts drawn at random; they name no column and read any table by kind."""

from typing import Any

from sandmle.policies.scripted.habits import hand_in, read_score, run_with_slip, submit_sample
from sandmle.policies.scripted.moves import Desk, Plan, run, score, submitted
from sandmle.policies.scripted.scripts import write_script

FEATURES = (
    "numbers",
    "categories",
    "words of texts",
    "pairs of words",
    "letters of codes",
    "lengths",
    "dates",
    "curves",
    "products",
    "categories times numbers",
    "rows of the same entity",
)
MODELS = ("mean of the answers", "one tree", "nearest neighbours", "ridge regression", "forest", "boosting")
"""Their predictions are averaged."""


def tinkerer(desk: Desk) -> Plan:
    """Tries some kinds of features with some models, without a look at the columns; now and then tries twice."""
    if desk.brief.pieces:  # rows have to be taken apart, which needs a look at them
        yield from submit_sample(desk)
        yield from hand_in(desk, check_rate=0.0)
        return
    first = tinkerer_script(desk, "first")
    thought = "The files tell which columns there are: I read them by kind and fit what I have at hand."
    observation = yield from run_with_slip(desk, thought, first, purpose="first", slip_rate=0.15)
    if not submitted(observation):
        yield from submit_sample(desk, "This does not get anywhere; the sample submission is at least valid.")
    elif desk.chance("second", 0.3):
        before = read_score((yield score("I ask what this scores, to have something to beat.")))
        second = tinkerer_script(desk, "second")
        thought = "Other features and other models may do better."
        observation = yield from run_with_slip(desk, thought, second, purpose="second", slip_rate=0.15)
        after = read_score((yield score("I check that the submission is valid and what it scores.")))
        low, high = (after, before) if desk.brief.higher_is_better else (before, after)
        is_worse = low is not None and high is not None and low < high
        if is_worse or not submitted(observation):
            yield run("That is worse: I go back to the first.", first)
    yield from hand_in(desk, check_rate=0.3)


def tinkerer_script(desk: Desk, purpose: str, *, scored: bool = False) -> str:
    """Returns a script of parts drawn by the attempt's dice.

    Args:
        desk: The episode.
        purpose: Seeds the draw.
        scored: Whether the script measures its models by cross-validation, as ``best``.
    """
    dice = desk.dice(f"parts {purpose}")
    n_models = int(dice.choice([1, 2, 3], p=[0.6, 0.25, 0.15]))
    drawn = set(dice.choice(MODELS, n_models, replace=False))
    parts: dict[str, Any] = {
        "features": [name for name in FEATURES if dice.random() < 0.5],
        "keep": int(dice.choice([0, 15, 60, 150], p=[0.4, 0.2, 0.2, 0.2])),
        "models": [name for name in MODELS if name in drawn],
        "alpha": int(dice.choice([3, 30, 300])),
        "n_trees": int(dice.choice([20, 80, 240])),
    }
    return write_script("tinkerer", scored=scored, **parts)
