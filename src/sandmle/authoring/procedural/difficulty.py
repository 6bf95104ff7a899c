"""How hard a task is to be: by name, or as a number from 0 to 1."""

import itertools
from dataclasses import dataclass

from sandmle.errors import ConfigError, unknown_name


@dataclass(frozen=True)
class Knobs:
    """What a difficulty stands for."""

    graded_share: tuple[float, float]
    """Range of the share of the signal that raw columns give away."""
    n_cliffs: tuple[float, ...]
    """Chances of 1, 2, 3, ... insights that are worth little until they are seen."""
    slope_factor: float
    n_train: tuple[int, int]


DIFFICULTIES: dict[str, Knobs] = {
    "easy": Knobs((0.55, 0.65), (0.7, 0.3), 1.2, (160, 200)),
    "medium": Knobs((0.46, 0.58), (0.35, 0.45, 0.2), 1.0, (150, 200)),
    "hard": Knobs((0.34, 0.42), (0.0, 0.3, 0.4, 0.3), 0.85, (70, 140)),
}


_LEVELS = {0.0: "easy", 0.5: "medium", 1.0: "hard"}


def named_difficulty(difficulty: str | float) -> str:
    """Returns a difficulty as text: a name, or a number from 0 (easy) over 0.5 (medium) to 1 (hard).

    Raises:
        ConfigError: It is neither.
    """
    if difficulty in DIFFICULTIES:
        return str(difficulty)
    try:
        level = float(difficulty)
    except ValueError:
        raise unknown_name("difficulty", str(difficulty), DIFFICULTIES) from None
    if not 0 <= level <= 1:
        raise ConfigError(f"difficulty {difficulty} is not between 0 and 1; give easy, medium, hard or such a number")
    return _LEVELS.get(level, f"{level:g}")


def knobs_of(difficulty: str) -> Knobs:
    """Returns the knobs of a difficulty: those of a name, or for a number those between its neighbours."""
    if difficulty in DIFFICULTIES:
        return DIFFICULTIES[difficulty]
    level = 2 * float(difficulty)
    first, second = (DIFFICULTIES[name] for name in (("easy", "medium") if level < 1 else ("medium", "hard")))
    share = level if level < 1 else level - 1

    def between(low: tuple[float, ...], high: tuple[float, ...]) -> tuple[float, ...]:
        pairs = itertools.zip_longest(low, high, fillvalue=0.0)
        return tuple((1 - share) * before + share * after for before, after in pairs)

    low, high = between(first.graded_share, second.graded_share)
    chances = between(first.n_cliffs, second.n_cliffs)
    fewest, most = between(first.n_train, second.n_train)
    slope = (1 - share) * first.slope_factor + share * second.slope_factor
    return Knobs((low, high), tuple(chance / sum(chances) for chance in chances), slope, (round(fewest), round(most)))
