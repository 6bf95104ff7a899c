"""Tabular families of relations: in a group, between repeated readings, between value and unit, in space."""

from dataclasses import replace

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

_UNITS: dict[str, tuple[str, float]] = {
    "kg": ("g", 1000.0),
    "g": ("mg", 1000.0),
    "km": ("m", 1000.0),
    "cm": ("mm", 10.0),
    "m": ("cm", 100.0),
    "h": ("min", 60.0),
    "min": ("s", 60.0),
    "ms": ("s", 0.001),
    "days": ("h", 24.0),
    "L": ("mL", 1000.0),
    "mL": ("L", 0.001),
    "mg": ("ug", 1000.0),
    "EUR": ("cent", 100.0),
    "kWh": ("Wh", 1000.0),
    "MB": ("KB", 1000.0),
}
"""Smaller or larger units by unit, and the factor to them."""


class RelativeToGroup(Family):
    """A value counts relative to what is usual in the row's group."""

    name = "relative_to_group"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        number = context.pool.number(log=False)
        specs = [number_spec(number)]
        group = context.entity_column
        if not group:
            group, meaning = context.pool.take("groups")
            specs.append(ColumnSpec(name=group, type="category", description=meaning))
        names = [
            f"{letter}{digit}"
            for letter, digit in zip(rng.permutation(list("bcdfghjkmnpqrstv")), rng.integers(10, 100, 16), strict=True)
        ]
        params = {"number": number, "group": group, "own": len(specs) > 1, "names": names[: context.n_groups]}
        words = f"What counts is {number.name} minus the mean of {number.name} over all rows of the same {group}."
        return Insight(self.name, tuple(specs), words, params)

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        params = insight.params
        number, names = params["number"], np.array(params["names"], dtype=object)
        member = rng.integers(len(names), size=rows.n) if params["own"] else rows.entity
        usual = rng.uniform(-1.5, 1.5, size=int(member.max()) + 1)
        columns = {number.name: number.values(usual[member] + 0.45 * rng.normal(size=rows.n))}
        if params["own"]:
            columns[params["group"]] = names[member]
        return Sample(columns)

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        number = insight.params["number"]
        values = number.standard(columns[number.name].astype(float))
        groups, member = np.unique(columns[insight.params["group"]].astype(str), return_inverse=True)
        # The median is not moved by slipped decimal points.
        usual = np.array([_median(values[member == group]) for group in range(len(groups))])
        unknown = columns[insight.params["group"]].astype(str) == ""
        return column([np.where(unknown, np.nan, np.clip((values - usual[member]) / 0.45, -4, 4))])


def _median(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else 0.0


class Replicates(Family):
    """The spread of repeated readings counts, not their level."""

    name = "replicates"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        number = replace(context.pool.number(log=False))
        names = [f"{number.name}_{at}" for at in range(1, 5)]
        specs = tuple(
            ColumnSpec(name=name, type="number", description=f"{number.meaning}, reading {at}", unit=number.unit)
            for at, name in enumerate(names, 1)
        )
        words = f"What counts is the spread of {names[0]} to {names[-1]} (log of their standard deviation)."
        return Insight(self.name, specs, words, {"number": number, "names": names})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        number = insight.params["number"]
        level, width = rng.uniform(-1.2, 1.2, size=rows.n), np.exp(0.6 * rng.normal(size=rows.n) - 1.5)
        finer = replace(number, digits=number.digits + 1)
        return Sample({name: finer.values(level + width * rng.normal(size=rows.n)) for name in insight.params["names"]})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        number = insight.params["number"]
        readings = np.column_stack([number.standard(columns[name].astype(float)) for name in insight.params["names"]])
        return column([np.clip((np.log(readings.std(axis=1) + 0.01) + 1.7) / 0.7, -3, 3)])


class UnitMixUp(Family):
    """A value counts once it is brought to one unit; the unit stands in a column beside it."""

    name = "unit_mix_up"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        number = context.pool.number(log=True, units=tuple(_UNITS))
        other, factor = _UNITS[number.unit]
        unit_column = f"{number.name}_unit"
        specs = (
            ColumnSpec(name=number.name, type="number", description=f"{number.meaning}; unit in {unit_column}"),
            ColumnSpec(name=unit_column, type="category", description=f"Unit of {number.name}"),
        )
        words = f"What counts is {number.name} once all of it is in {number.unit} (1 {number.unit} = {factor} {other})."
        return Insight(
            self.name, specs, words, {"number": number, "unit_column": unit_column, "other": other, "factor": factor}
        )

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        number, other, factor = (insight.params[key] for key in ("number", "other", "factor"))
        is_other = rng.random(rows.n) < 0.5
        values = number.values(rng.normal(size=rows.n))
        published = np.where(is_other, np.round(values * factor, 4), values)
        units = np.where(is_other, other, number.unit).astype(object)
        return Sample({number.name: published, insight.params["unit_column"]: units})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        number, other, factor = (insight.params[key] for key in ("number", "other", "factor"))
        units = columns[insight.params["unit_column"]]
        values = columns[number.name].astype(float)
        same = np.where(units == other, values / factor, values)
        return column([np.where(units == "", np.nan, np.clip(number.standard(same), -4, 4))])


class Interaction(Family):
    """Two columns count only together, by their product."""

    name = "interaction"
    medium: Medium = "tabular"
    graded = False

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        first, second = context.pool.number(), context.pool.number()
        words = f"What counts is the product of {first.name} and {second.name}, each taken from its middle."
        return Insight(self.name, (number_spec(first), number_spec(second)), words, {"numbers": [first, second]})

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        return Sample({number.name: number.values(rng.normal(size=rows.n)) for number in insight.params["numbers"]})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        first, second = (n.standard(columns[n.name].astype(float)) for n in insight.params["numbers"])
        return column([np.clip(first * second, -4, 4)])


class Geo(Family):
    """Nearness to one of two places counts; the places are not told."""

    name = "geo"
    medium: Medium = "tabular"
    graded = True

    @override
    def draw(self, rng: np.random.Generator, context: Context) -> Insight:
        latitude, longitude, meaning = context.pool.take("places_columns")
        middle = [float(np.round(rng.uniform(36, 58), 3)), float(np.round(rng.uniform(-8, 28), 3))]
        centres = np.round(np.array(middle) + rng.uniform(-0.35, 0.35, size=(2, 2)), 3).tolist()
        number = context.pool.number()
        specs = (
            ColumnSpec(name=latitude, type="number", description=f"{meaning}, latitude", unit="deg"),
            ColumnSpec(name=longitude, type="number", description=f"{meaning}, longitude", unit="deg"),
            number_spec(number),
        )
        words = (
            f"What counts is the distance from ({latitude}, {longitude}) to the nearer of {centres}; "
            f"{number.name} counts by itself."
        )
        params = {"names": (latitude, longitude), "middle": middle, "centres": centres, "number": number}
        return Insight(self.name, specs, words, params)

    @override
    def sample(self, insight: Insight, rng: np.random.Generator, rows: Rows) -> Sample:
        places = np.array(insight.params["middle"]) + rng.uniform(-0.6, 0.6, size=(rows.n, 2))
        number = insight.params["number"]
        columns = {name: np.round(places[:, at], 4) for at, name in enumerate(insight.params["names"])}
        return Sample({**columns, number.name: number.values(rng.normal(size=rows.n))})

    @override
    def features(self, insight: Insight, columns: Columns) -> FloatArray:
        names, number = insight.params["names"], insight.params["number"]
        places = np.column_stack([columns[name].astype(float) for name in names])
        far = [np.linalg.norm(places - np.array(centre), axis=1) for centre in insight.params["centres"]]
        near = np.clip((np.min(far, axis=0) - 0.42) / 0.2, -4, 4)
        return column([near, number.standard(columns[number.name].astype(float))])
