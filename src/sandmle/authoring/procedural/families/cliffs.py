"""Tabular families that are worth little until they are seen, and nearly everything after."""

import numpy as np
from typing_extensions import override

from sandmle.authoring.procedural.families.base import (
    Columns,
    Context,
    Family,
    FloatArray,
    Insight,
    Medium,
    Rows,
    Sample,
    column,
)
from sandmle.authoring.procedural.families.graded import number_spec
from sandmle.records import ColumnSpec


class Ratio(Family):
    """Only the ratio of two columns counts; each alone tells little."""

    name = "ratio"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        upper, lower = context.pool.number(log=True), context.pool.number(log=True)
        spread = float(np.round(rng.uniform(0.25, 0.4), 3))
        words = f"What counts is the ratio {upper.name} / {lower.name}, whatever the size of both."
        specs = (number_spec(upper), number_spec(lower))
        return Insight(self.name, specs, words, {"upper": upper, "lower": lower, "spread": spread})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        upper, lower, spread = (insight.params[key] for key in ("upper", "lower", "spread"))
        size = rng.uniform(-1.5, 1.5, size=rows.n)
        return Sample(
            {
                lower.name: lower.values(size),
                upper.name: upper.values(size * 0.9 + spread * rng.normal(size=rows.n)),
            }
        )

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        upper, lower, spread = (insight.params[key] for key in ("upper", "lower", "spread"))
        gap = upper.standard(columns[upper.name]) - 0.9 * lower.standard(columns[lower.name])
        return column([gap / spread])


class Checker(Family):
    """Two columns cut the plane into a chequered board."""

    name = "checker"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        first, second = context.pool.number(log=False), context.pool.number(log=False)
        cuts = [float(n.values(np.array([rng.uniform(-0.3, 0.3)]))[0]) for n in (first, second)]
        words = (
            f"Rows with {first.name} above {cuts[0]} and {second.name} below {cuts[1]}, or the other way round, "
            "differ from those where both are above or both are below."
        )
        specs = (number_spec(first), number_spec(second))
        return Insight(self.name, specs, words, {"numbers": [first, second], "cuts": cuts})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        return Sample({number.name: number.values(rng.normal(size=rows.n)) for number in insight.params["numbers"]})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        numbers, cuts = insight.params["numbers"], insight.params["cuts"]
        sides = [np.sign(columns[n.name] - cut + 1e-9) for n, cut in zip(numbers, cuts, strict=True)]
        return column([sides[0] * sides[1]])


class Periodic(Family):
    """The hour of the day, the day of the week or the season counts."""

    name = "periodic"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        name, meaning = context.pool.take("dates")
        period = str(rng.choice(["hour", "weekday", "season"]))
        phase = float(np.round(rng.uniform(0, 2 * np.pi), 3))
        words = f"{name} counts by its {period}, as a wave of one period with phase {phase}."
        spec = ColumnSpec(name=name, type="datetime", description=meaning)
        return Insight(self.name, (spec,), words, {"name": name, "period": period, "phase": phase})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        start = np.datetime64("2021-01-01T00:00", "m")
        minutes = rows.day * 1440 + rng.integers(0, 1440, size=rows.n)
        return Sample({insight.params["name"]: start + minutes.astype(np.int64)})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        when = columns[insight.params["name"]].astype("datetime64[m]")
        missing = np.isnat(when)
        minute = np.where(missing, 0, when.astype(np.int64))
        length = {"hour": 1440.0, "weekday": 7 * 1440.0, "season": 365.25 * 1440.0}[insight.params["period"]]
        angle = 2 * np.pi * (minute % length) / length + insight.params["phase"]
        wave = np.sqrt(2.0) * column([np.sin(angle), np.cos(angle)])
        wave[missing] = np.nan
        return np.asarray(wave)


class DateGap(Family):
    """The time between two dates counts, not the dates."""

    name = "date_gap"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        (first, first_meaning), (second, second_meaning) = context.pool.take("dates"), context.pool.take("dates")
        longest = float(rng.choice([10, 30, 60]))
        words = f"What counts is the time from {first} to {second}."
        specs = tuple(
            ColumnSpec(name=name, type="datetime", description=meaning)
            for name, meaning in ((first, first_meaning), (second, second_meaning))
        )
        return Insight(self.name, specs, words, {"first": first, "second": second, "longest": longest})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        start = np.datetime64("2021-01-01T00:00", "m")
        begin = start + (rows.day * 1440 + rng.integers(0, 1440, size=rows.n)).astype(np.int64)
        gap = (rng.uniform(0.02, 1.0, size=rows.n) * insight.params["longest"] * 1440).astype(np.int64)
        return Sample({insight.params["first"]: begin, insight.params["second"]: begin + gap})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        first, second = (columns[insight.params[key]].astype("datetime64[m]") for key in ("first", "second"))
        missing = np.isnat(first) | np.isnat(second)
        days = np.where(missing, np.nan, (second - first).astype(np.int64) / 1440)
        return column([(days / insight.params["longest"] - 0.51) * 3.5])


class StructuredCode(Family):
    """Parts of a code mean something: a letter, the parity of a digit."""

    name = "structured_code"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        name, meaning = context.pool.take("codes")
        letters = [str(letter) for letter in rng.permutation(list("ABCDEFGHKLMNPRST"))[:6]]
        words = (
            f"In {name} (letter, three digits, letter) the last letter counts if it is among {letters[:3]}, "
            "and the second digit counts by whether it is even."
        )
        spec = ColumnSpec(name=name, type="code", description=meaning)
        return Insight(self.name, (spec,), words, {"name": name, "letters": letters})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        letters = np.array(insight.params["letters"])
        first, last = letters[rng.integers(6, size=(2, rows.n))]
        digits = rng.integers(0, 1000, size=rows.n)
        codes = [f"{a}{number:03d}-{b}" for a, number, b in zip(first, digits, last, strict=True)]
        return Sample({insight.params["name"]: np.array(codes, dtype=object)})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        codes = columns[insight.params["name"]]
        lucky = set(insight.params["letters"][:3])
        letter = np.array([np.nan if not code else (1.0 if code[-1] in lucky else -1.0) for code in codes])
        parity = np.array([np.nan if not code else (1.0 if int(code[2]) % 2 == 0 else -1.0) for code in codes])
        return column([letter, parity])
