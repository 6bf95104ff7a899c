"""Which tasks a train_step works on: every task in turn, or (curriculum) those whose groups differ in reward."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandmle.records import sha256_of


@dataclass
class TaskSchedule:
    """Draws tasks by ``rng_seed`` and train_step alone, so that a resumed run draws the same.

    Without curriculum all tasks come once, in a drawn order, before any comes again. With it a task is drawn by its
    learnability: the share of its groups so far that had at least two different rewards, with one group of each kind
    assumed beforehand, so that no task is ever lost from sight.
    """

    tasks: Sequence[str]
    rng_seed: int = 0
    curriculum: bool = False
    _n_groups: dict[str, int] = field(default_factory=dict)
    _n_signal: dict[str, int] = field(default_factory=dict)

    def draw(self, train_step: int, count: int) -> list[str]:
        """Returns the tasks of a train_step, numbered from 0; fewer tasks than ``count`` come more than once."""
        if self.curriculum:
            return self._by_learnability(train_step, count)
        return [self._at(train_step * count + place) for place in range(count)]

    def learn(self, signals: Mapping[str, bool]) -> None:
        """Takes in which tasks' groups of a train_step had a signal."""
        for task, has_signal in signals.items():
            self._n_groups[task] = self._n_groups.get(task, 0) + 1
            self._n_signal[task] = self._n_signal.get(task, 0) + has_signal

    def learnability(self, task: str) -> float:
        """Returns the weight of a task in the draw, between 0 and 1."""
        return (self._n_signal.get(task, 0) + 1) / (self._n_groups.get(task, 0) + 2)

    def _at(self, place: int) -> str:
        round_, index = divmod(place, len(self.tasks))
        order = sorted(self.tasks)
        self._rng("order", round_).shuffle(order)
        return order[index]

    def _by_learnability(self, train_step: int, count: int) -> list[str]:
        rng = self._rng("curriculum", train_step)
        drawn: list[str] = []
        while len(drawn) < count:
            # Weighted sampling without replacement: the largest of u ** (1 / weight) (Efraimidis and Spirakis 2006).
            keys = {task: rng.random() ** (1 / self.learnability(task)) for task in sorted(self.tasks)}
            drawn.extend(sorted(keys, key=lambda task: (-keys[task], task))[: count - len(drawn)])
        return drawn

    def _rng(self, purpose: str, number: int) -> random.Random:
        return random.Random(sha256_of([purpose, self.rng_seed, number]))
