"""Families of texts: each adds sentences to a row's note."""

import numpy as np
from typing_extensions import override

from sandmle.authoring.procedural.families.base import (
    Context,
    FloatArray,
    Insight,
    LatentFamily,
    Medium,
    Rows,
    Sample,
)
from sandmle.authoring.procedural.words import common_words


class _Text(LatentFamily):
    """A family whose features are latents of the text."""

    medium: Medium = "text"

    def _sample(self, sentences: list[list[str]], *latents: FloatArray) -> Sample:
        return Sample(latents=self.named(*latents), sentences=sentences)


class TopicWords(_Text):
    """What the text is about."""

    name = "topic_words"
    graded = True
    latents = ("first", "second", "third")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        topics = context.pool.vocabulary.topics
        names = [sorted(topics)[at] for at in rng.permutation(len(topics))[:4]]
        words = f"The topic counts ({', '.join(names)}), told by its words; a few words of other topics slip in."
        return Insight(self.name, (), words, {"topics": [list(topics[name]) for name in names]})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        topics = np.array(insight.params["topics"], dtype=object)
        main = rng.integers(4, size=rows.n)
        source = np.where(rng.random((rows.n, 5)) < 0.85, main[:, None], rng.integers(4, size=(rows.n, 5)))
        words = topics[source, rng.integers(topics.shape[1], size=(rows.n, 5))]
        sentences = [
            [f"the {a} and the {b} came up with the {c}", f"there is a line on the {d} and the {e}"]
            for a, b, c, d, e in words.tolist()
        ]
        return self._sample(sentences, *((main == at) * 2.3 - 0.58 for at in range(3)))


class NamedTeam(_Text):
    """Who handled it counts; each name has its own effect."""

    name = "named_team"
    graded = True
    latents = ("effect",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        names = [str(name) for name in rng.permutation(_TEAMS)[:6]]
        effects = np.linspace(-1.5, 1.5, 6)[rng.permutation(6)].round(2).tolist()
        words = f"The team that is named counts: {dict(zip(names, effects, strict=True))}."
        return Insight(self.name, (), words, {"names": names, "effects": effects})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        names, effects = insight.params["names"], np.array(insight.params["effects"])
        team = rng.integers(6, size=rows.n)
        sentences = [[f"it was handled by team {names[at]}"] for at in team]
        return self._sample(sentences, effects[team])


_TEAMS = ("Heron", "Lynx", "Otter", "Falcon", "Badger", "Marten", "Osprey", "Bison", "Ibex", "Plover")


class NegatedPraise(_Text):
    """What is said of one thing counts, and a negation turns it round."""

    name = "negated_praise"
    graded = False
    latents = ("polarity",)
    _NOT = ("was not", "was never", "was hardly")
    _PLAIN = ("was", "was really", "was again")

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        aspects = context.pool.vocabulary.aspects
        order = [aspects[at] for at in rng.permutation(len(aspects))]
        words = (
            f"What is said of the {order[0]} counts: praise or blame, turned round by a negation. Other things do not."
        )
        return Insight(self.name, (), words, {"aspect": order[0], "others": order[1:4]})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        words, others = common_words(), insight.params["others"]
        is_good, is_negated = rng.random((2, rows.n, 2)) < 0.5
        pick = rng.integers(len(words.good), size=(rows.n, 2))
        form, other = rng.integers(3, size=(rows.n, 2)), rng.integers(len(others), size=rows.n)
        sentences = []
        for row in range(rows.n):
            said = []
            for at, aspect in enumerate((insight.params["aspect"], others[other[row]])):
                verb = (self._NOT if is_negated[row, at] else self._PLAIN)[form[row, at]]
                adjective = (words.good if is_good[row, at] else words.bad)[pick[row, at]]
                said.append(f"the {aspect} {verb} {adjective}")
            sentences.append(said)
        return self._sample(sentences, np.where(is_good[:, 0] ^ is_negated[:, 0], 1.0, -1.0))


class OrderOfEvents(_Text):
    """Which of two events came first."""

    name = "order_of_events"
    graded = False
    latents = ("order",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        events = context.pool.vocabulary.events
        first, second, third = (events[at] for at in rng.permutation(len(events))[:3])
        words = f"Whether {first} came before or after {second} counts; where {third} came does not."
        return Insight(self.name, (), words, {"events": [first, second, third]})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        first, second, third = insight.params["events"]
        is_first, is_swapped, is_other = rng.random((3, rows.n)) < 0.5
        sentences = []
        for row in range(rows.n):
            early, late = (first, second) if is_first[row] else (second, first)
            told = f"{late} came after {early}" if is_swapped[row] else f"{early} came before {late}"
            extra = (first, third) if is_other[row] else (third, second)
            sentences.append([told, f"{extra[0]} came before {extra[1]}"])
        return self._sample(sentences, np.where(is_first, 1.0, -1.0))


class Quantity(_Text):
    """A time that the text states, in minutes or in hours."""

    name = "quantity"
    graded = False
    latents = ("size",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The time that it took counts, on a log scale, whether it is stated in minutes or in hours."
        return Insight(self.name, (), words, {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        minutes = np.round(np.exp(rng.uniform(np.log(15), np.log(900), size=rows.n)))
        in_hours = rng.random(rows.n) < 0.5
        minutes = np.where(in_hours, np.round(minutes / 6) * 6, minutes)
        label = rng.integers(100, 1000, size=rows.n)
        told = [f"{m / 60:.1f} hours" if h else f"{int(m)} minutes" for m, h in zip(minutes, in_hours, strict=True)]
        sentences = [[f"it took {time}", f"file number {number}"] for time, number in zip(told, label, strict=True)]
        return self._sample(sentences, (np.log(minutes) - np.log(116)) / 1.18)


class Emphasis(_Text):
    """The number of exclamation marks."""

    name = "emphasis"
    graded = False
    latents = ("marks",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The number of exclamation marks counts (0 to 5)."
        return Insight(self.name, (), words, {})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        marks = rng.integers(0, 6, size=rows.n)
        split = (rng.random(rows.n) * (marks + 1)).astype(int)
        sentences = [
            [f"please have a look{'!' * int(a)}", f"thanks for reading{'!' * int(m - a)}"]
            for m, a in zip(marks, split, strict=True)
        ]
        return self._sample(sentences, (marks - 2.5) / 1.7)


class RemarkCount(_Text):
    """How many items the list in the text has."""

    name = "remark_count"
    graded = False
    latents = ("count",)

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        words = "The number of items in the list of open points counts (1 to 6)."
        return Insight(self.name, (), words, {"aspects": list(context.pool.vocabulary.aspects)})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        aspects = np.array(insight.params["aspects"], dtype=object)
        count = rng.integers(1, 7, size=rows.n)
        order = np.argsort(rng.random((rows.n, max(6, len(aspects)))), axis=1) % len(aspects)
        sentences = [[f"open points: {'; '.join(aspects[order[row, : count[row]]])}"] for row in range(rows.n)]
        return self._sample(sentences, (count - 3.5) / 1.7)
