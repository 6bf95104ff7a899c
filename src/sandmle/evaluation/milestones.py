"""One scale for the scores of all tasks: where a score stands among the task's own thresholds."""

from itertools import pairwise

from sandmle.records import Direction, Thresholds

REACH = 2.0
"""Positions end this far below the median and above gold: out there, only "far" is meant."""


def position(score: float, thresholds: Thresholds, direction: Direction) -> float | None:
    """Returns where a score stands: median 0, bronze 1, silver 2, gold 3, straight lines in between and beyond.

    Args:
        score: Score on the hidden rows.
        thresholds: The task's thresholds.
        direction: Which way the metric is better.

    Returns:
        The position, cut at ``REACH`` below the median and above gold; None if the thresholds do not rise.
    """
    borders = thresholds.scores()
    gains = [direction.gain(border, borders[0]) for border in borders]  # median's is 0
    if any(later <= earlier for earlier, later in pairwise(gains)):
        return None
    gain = direction.gain(score, borders[0])
    # The stretches below the median and above gold go on at the mean slope of median to gold.
    slope = (len(borders) - 1) / gains[-1]
    if gain <= 0:
        return max(-REACH, gain * slope)
    if gain >= gains[-1]:
        return min(len(borders) - 1 + REACH, len(borders) - 1 + (gain - gains[-1]) * slope)
    step = next(index for index in range(len(gains) - 1) if gain < gains[index + 1])
    return step + (gain - gains[step]) / (gains[step + 1] - gains[step])
