"""Single columns without meaning for the target: what hides the ones that count. They are never drawn as insights."""

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
)
from sandmle.authoring.procedural.families.graded import number_spec
from sandmle.records import ColumnSpec


class _Plain(Family):
    medium: Medium = "tabular"
    graded = False

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        """Returns no feature # [n_rows, 0]."""
        return np.empty((len(next(iter(columns.values()))), 0))


class SingleNumber(_Plain):
    """A number."""

    name = "single_number"

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        number = context.pool.number()
        return Insight(self.name, (number_spec(number),), "It does not count.", {"number": number})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        number = insight.params["number"]
        return Sample({number.name: number.values(rng.normal(size=rows.n))})


class SingleCategory(_Plain):
    """A category."""

    name = "single_category"

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        name, meaning, values = context.pool.take("categories")
        spec = ColumnSpec(name=name, type="category", description=meaning)
        return Insight(self.name, (spec,), "It does not count.", {"name": name, "values": values})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        values = np.array(insight.params["values"], dtype=object)
        return Sample({insight.params["name"]: values[rng.integers(len(values), size=rows.n)]})


class SingleDate(_Plain):
    """A date."""

    name = "single_date"

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        name, meaning = context.pool.take("dates")
        spec = ColumnSpec(name=name, type="datetime", description=meaning)
        return Insight(self.name, (spec,), "It does not count.", {"name": name})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        start = np.datetime64("2021-01-01T00:00", "m")
        minutes = (rows.day * 1440 + rng.integers(0, 1440, size=rows.n)).astype(np.int64)
        return Sample({insight.params["name"]: start + minutes})
