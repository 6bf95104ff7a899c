"""Tabular families of which a solver on raw columns earns a good part."""

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
from sandmle.authoring.procedural.words import NumberColumn
from sandmle.records import ColumnSpec


def number_spec(number: NumberColumn) -> ColumnSpec:
    """Returns the public description of a number column."""
    return ColumnSpec(name=number.name, type="number", description=number.meaning, unit=number.unit)


class SparseLinear(Family):
    """A few columns count, each by itself, among others that do not."""

    name = "sparse_linear"
    medium: Medium = "tabular"
    graded = True

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        numbers = [context.pool.number() for _ in range(int(rng.integers(2, 4)))]
        names = ", ".join(number.name for number in numbers)
        return Insight(
            self.name, tuple(map(number_spec, numbers)), f"Each of {names} counts by itself.", {"numbers": numbers}
        )

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        return Sample({number.name: number.values(rng.normal(size=rows.n)) for number in insight.params["numbers"]})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        return column([number.standard(columns[number.name]) for number in insight.params["numbers"]])


class LogLinear(Family):
    """A product of powers of positive columns."""

    name = "log_linear"
    medium: Medium = "tabular"
    graded = True

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        numbers = [context.pool.number(log=True) for _ in range(2)]
        powers = [float(np.round(rng.uniform(0.6, 1.4) * sign, 2)) for sign in (1, rng.choice([-1, 1]))]
        formula = " * ".join(f"{number.name}^{power}" for number, power in zip(numbers, powers, strict=True))
        words = f"What counts is the size of {formula}, on a log scale."
        return Insight(self.name, tuple(map(number_spec, numbers)), words, {"numbers": numbers, "powers": powers})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        return Sample({number.name: number.values(rng.normal(size=rows.n)) for number in insight.params["numbers"]})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        numbers, powers = insight.params["numbers"], insight.params["powers"]
        parts = [power * n.standard(columns[n.name]) for n, power in zip(numbers, powers, strict=True)]
        return column([np.sum(parts, axis=0) / np.sqrt(np.sum(np.square(powers)))])


class CategoryLevels(Family):
    """Each value of a category has an effect of its own."""

    name = "category_levels"
    medium: Medium = "tabular"
    graded = True

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        name, meaning, values = context.pool.take("categories")
        number = context.pool.number()
        effects = np.linspace(-1.4, 1.4, len(values))[rng.permutation(len(values))]
        table = dict(zip(values, np.round(effects, 2).tolist(), strict=True))
        spec = ColumnSpec(name=name, type="category", description=meaning)
        words = f"{name} counts by its value {table}; {number.name} counts by itself."
        return Insight(self.name, (spec, number_spec(number)), words, {"name": name, "table": table, "number": number})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        values = np.array(list(insight.params["table"]), dtype=object)
        number = insight.params["number"]
        return Sample(
            {
                insight.params["name"]: values[rng.integers(len(values), size=rows.n)],
                number.name: number.values(rng.normal(size=rows.n)),
            }
        )

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        table, number = insight.params["table"], insight.params["number"]
        effects = [table.get(value, np.nan) for value in columns[insight.params["name"]]]
        return column([np.array(effects), number.standard(columns[number.name])])


class DecisionList(Family):
    """The first condition that holds decides."""

    name = "decision_list"
    medium: Medium = "tabular"
    graded = True

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        numbers = [context.pool.number() for _ in range(3)]
        cuts = [float(number.values(np.array([rng.uniform(0.1, 0.7)]))[0]) for number in numbers]
        levels = np.array([1.5, -1.2, 0.6, -0.4])[rng.permutation(4)].tolist()
        steps = [f"if {n.name} > {cut}: {level}" for n, cut, level in zip(numbers, cuts, levels[:3], strict=True)]
        words = f"The first condition that holds decides: {'; '.join(steps)}; else {levels[3]}."
        params = {"numbers": numbers, "cuts": cuts, "levels": levels}
        return Insight(self.name, tuple(map(number_spec, numbers)), words, params)

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        return Sample({number.name: number.values(rng.normal(size=rows.n)) for number in insight.params["numbers"]})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        numbers, cuts, levels = (insight.params[key] for key in ("numbers", "cuts", "levels"))
        tests = [columns[n.name] > cut for n, cut in zip(numbers, cuts, strict=True)]
        unknown = np.any([np.isnan(columns[n.name]) for n in numbers], axis=0)
        value = np.select(tests, levels[:3], levels[3]).astype(float)
        return column([np.where(unknown, np.nan, value)])
