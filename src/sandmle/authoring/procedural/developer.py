"""The ML Developer: from the plan to data, by drawing the insights, sampling what they live in, and the target."""

import numpy as np

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.dataset import CALIBRATION, TEST, TRAIN, Dataset
from sandmle.authoring.procedural.families import FAMILIES, Context, Insight, Rows, Sample
from sandmle.authoring.procedural.families.base import FloatArray, Medium, taken
from sandmle.authoring.procedural.heads import Realised, Scene, head_for
from sandmle.authoring.procedural.media import assemble, draw_image_shape
from sandmle.authoring.procedural.signal import Effect, combine, draw_effect, standardised
from sandmle.authoring.procedural.strategist import PIECE_SIDE
from sandmle.authoring.procedural.words import Pool, vocabulary_of
from sandmle.authoring.randomness import rng_for
from sandmle.errors import AuthoringError
from sandmle.records import ColumnSpec

_SPAN_DAYS = 730.0
_TRAIN_END_DAY = 500.0
_ROWS_PER_ENTITY = 6
_MEASURING_ERROR: dict[Medium, float] = {
    "tabular": 0.0,
    "text": 0.0,
    "letters": 0.1,
    "graph": 0.1,
    "trace": 0.15,
    "sound": 0.2,
    "cloud": 0.2,
    "image": 0.25,
    "video": 0.3,
}
# Rows drawn beyond what is needed, so that duplicates can be thrown out.
_SPARE_SHARE = 0.05


def develop(plan: TaskPlan, rng_key: tuple[str | int, ...]) -> Dataset:
    """Returns all rows of a task.

    Args:
        plan: The plan.
        rng_key: Names the random numbers of this task; equal keys give equal data.

    Raises:
        AuthoringError: The draw is unusable: a label is missing somewhere, or too many rows are alike.
    """
    rows = _rows(plan, rng_for(*rng_key, "rows"))
    pieces = rows.split(plan.n_pieces)
    rng = rng_for(*rng_key, "insights")
    pool = Pool(vocabulary_of(plan.domain), rng, taken=_taken(plan))
    entity_spec = _entity_column(plan, pool)
    context = _context(plan, pool, entity_spec, rng)
    insights = tuple(FAMILIES[part.family].draw(rng, context) for part in plan.insights)
    samples = [
        # Tables describe whole rows, all other media their pieces.
        FAMILIES[insight.family].sample(
            insight,
            rng_for(*rng_key, "sample", at),
            rows if FAMILIES[insight.family].medium == "tabular" else pieces,
        )
        for at, insight in enumerate(insights)
    ]
    if plan.noise.twin_share:
        twins = _twins(plan, rows, rng_for(*rng_key, "twins"))
        samples = [taken(sample, twins) for sample in samples]
    clean = {name: values for sample in samples for name, values in sample.columns.items()}
    if entity_spec is not None:
        clean[entity_spec.name] = _tokens(rows.entity, rng_for(*rng_key, "entities"))
    latents = {name: values for sample in samples for name, values in sample.latents.items()}
    known = {**_repeated(clean, plan.n_pieces), **latents}
    effects, signal = _signal(plan, insights, known, pieces, rng_for(*rng_key, "effects"))
    head = head_for(plan)
    noise = _noise(plan, pieces, head.n_outputs, rng_for(*rng_key, "noise"))
    realised = head.realise(signal, noise, rng_for(*rng_key, "target"), pieces)

    specs, columns = _published(plan, insights, clean, entity_spec, context, rows, rng_key)
    by_medium: dict[Medium, list[Sample]] = {}
    for insight, sample in zip(insights, samples, strict=True):
        if FAMILIES[insight.family].medium != "tabular":
            by_medium.setdefault(FAMILIES[insight.family].medium, []).append(sample)
    media = assemble(plan, context, by_medium, pieces, rng_for(*rng_key, "media"))
    inputs = _repeated(columns, plan.n_pieces)
    aware = _measured(insights, {**inputs, **latents}, rng_for(*rng_key, "measured"))
    dataset = Dataset(
        plan=plan,
        head=head,
        rows=pieces,
        specs=(*specs, *media.specs),
        columns=columns | media.columns,
        files=tuple(media.files),
        input_specs=(*specs, *media.input_specs),
        inputs=inputs | media.inputs,
        blocks=tuple(media.blocks),
        scene=Scene(rows.n, media.names, media.board),
        insights=insights,
        aware=aware,
        y=realised.y,
        oracle=realised.oracle,
        rule=_rule(plan, insights, effects, realised),
    )
    dataset = _without_duplicates(dataset)
    _check_labels(dataset)
    return dataset


def _context(plan: TaskPlan, pool: Pool, entity: ColumnSpec | None, rng: np.random.Generator) -> Context:
    return Context(
        pool=pool,
        n_groups=int(rng.integers(10, 17)),
        entity_column=entity.name if entity else "",
        image_shape=draw_image_shape(rng) if plan.n_pieces == 1 else (PIECE_SIDE, PIECE_SIDE, 1),
        trace_length=32,
        sound_length=800 if plan.n_pieces == 1 else 400,
    )


def _twins(plan: TaskPlan, rows: Rows, rng: np.random.Generator) -> np.ndarray:
    """Returns for every row the row whose contents it has: mostly itself, else another one of its table."""
    source = np.arange(rows.n)
    for part in (TRAIN, TEST, CALIBRATION):
        there = rng.permutation(np.flatnonzero(rows.part == part))
        n_twins = int(plan.noise.twin_share * len(there))
        source[there[:n_twins]] = rng.choice(there[n_twins:], n_twins)
    return source


def _repeated(columns: dict[str, np.ndarray], n_pieces: int) -> dict[str, np.ndarray]:
    """Returns columns of rows as columns of their pieces."""
    return {name: np.repeat(values, n_pieces) for name, values in columns.items()}


def _taken(plan: TaskPlan) -> tuple[str, ...]:
    side = tuple(column.name for column in plan.side_columns)
    return (*plan.target.columns, *plan.target.labels, plan.id_column, *side)


def _rows(plan: TaskPlan, rng: np.random.Generator) -> Rows:
    spare = 1 + _SPARE_SHARE
    counts = [int(n * spare) for n in (plan.n_train, plan.n_public + plan.n_private, plan.n_calibration)]
    part = np.repeat([TRAIN, TEST, CALIBRATION], counts)
    entity = np.full(len(part), -1)
    if plan.dna.groups:
        start = 0
        for which, count in zip((TRAIN, TEST, CALIBRATION), counts, strict=True):
            n_entities = max(4, count // _ROWS_PER_ENTITY)
            entity[part == which] = start + rng.integers(n_entities, size=count)
            start += n_entities
    day = rng.integers(0, int(_SPAN_DAYS), size=len(part)).astype(float)
    if plan.dna.time_ordered:
        share = day / _SPAN_DAYS
        day = np.where(part == TRAIN, share * _TRAIN_END_DAY, _TRAIN_END_DAY + share * (_SPAN_DAYS - _TRAIN_END_DAY))
    return Rows(part=part, entity=entity, day=np.floor(day))


def _entity_column(plan: TaskPlan, pool: Pool) -> ColumnSpec | None:
    if not plan.dna.groups:
        return None
    name, meaning = pool.take("groups")
    return ColumnSpec(name=name, type="category", description=f"{meaning}; the test rows belong to others")


def _tokens(numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns a random name for every number, so that its order tells nothing."""
    names = rng.permutation(36**4)[: int(numbers.max()) + 1]
    return np.array([_base36(int(names[number]) + 36**4) for number in numbers], dtype=object)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def _signal(
    plan: TaskPlan,
    insights: tuple[Insight, ...],
    columns: dict[str, np.ndarray],
    rows: Rows,
    rng: np.random.Generator,
) -> tuple[list[Effect], FloatArray]:
    n_outputs = head_for(plan).n_outputs
    effects, contributions = [], []
    for insight in insights:
        features = FAMILIES[insight.family].features(insight, columns)
        effect = draw_effect(rng, features.shape[1], n_outputs, plan.label_families)
        effects.append(effect)
        contributions.append(standardised(effect.raw(features), rows))
    interaction = None
    if plan.interaction_share > 0 and len(insights) > 1:
        interaction = (0, len(insights) - 1, plan.interaction_share)
    return effects, combine(contributions, [part.share for part in plan.insights], interaction, rows)


def _measured(
    insights: tuple[Insight, ...], columns: dict[str, np.ndarray], rng: np.random.Generator
) -> tuple[FloatArray, ...]:
    """Returns the insights' features as a solver gets them: pictures and traces are measured with error."""
    found = []
    for insight in insights:
        family = FAMILIES[insight.family]
        features = family.features(insight, columns)
        found.append(features + _MEASURING_ERROR[family.medium] * rng.normal(size=features.shape))
    return tuple(found)


def _noise(plan: TaskPlan, rows: Rows, n_outputs: int, rng: np.random.Generator) -> FloatArray:
    noise = rng.normal(size=(rows.n, n_outputs))
    share = plan.noise.group_share
    if share > 0 and plan.dna.groups:
        of_entity = rng.normal(size=(int(rows.entity.max()) + 1, n_outputs))
        noise = np.sqrt(1 - share) * noise + np.sqrt(share) * of_entity[rows.entity]
    return noise


def _published(
    plan: TaskPlan,
    insights: tuple[Insight, ...],
    clean: dict[str, np.ndarray],
    entity: ColumnSpec | None,
    context: Context,
    rows: Rows,
    rng_key: tuple[str | int, ...],
) -> tuple[list[ColumnSpec], dict[str, np.ndarray]]:
    """Adds columns that do not count, shuffles the order of columns and spoils cells as the plan says."""
    rng = rng_for(*rng_key, "nuisance")
    columns = dict(clean)
    specs = [spec for insight in insights for spec in insight.columns]
    for kind in _nuisance_kinds(plan, context, rng):
        family = FAMILIES[kind]
        extra = family.draw(rng, context)
        specs += list(extra.columns)
        columns |= family.sample(extra, rng, rows).columns
    for side in plan.side_columns:
        values = np.array(side.values, dtype=object)
        columns[side.name] = values[rng.integers(len(values), size=rows.n)]
        specs.append(ColumnSpec(name=side.name, type=side.type, description=side.meaning))
    specs = [specs[at] for at in rng.permutation(len(specs))]
    if entity is not None:
        specs.insert(0, entity)
    spoil_rng = rng_for(*rng_key, "spoil")
    kept = {side.name for side in plan.side_columns} | ({entity.name} if entity else set())
    for spec in specs:
        if spec.name not in kept:
            columns[spec.name] = _spoilt(columns[spec.name], spec, plan, spoil_rng)
    return specs, columns


def _nuisance_kinds(plan: TaskPlan, context: Context, rng: np.random.Generator) -> list[str]:
    if not any(FAMILIES[part.family].medium == "tabular" for part in plan.insights):
        return []
    menu = [("single_number", "numbers", 2), ("single_category", "categories", 1), ("single_date", "dates", 1)]
    kinds: list[str] = []
    if plan.dna.time_ordered and context.pool.count("dates"):
        kinds.append("single_date")
    while len(kinds) < plan.n_nuisance:
        name, source, weight = menu[int(rng.choice(3, p=[0.6, 0.25, 0.15]))]
        if context.pool.count(source) - kinds.count(name) < weight:
            if context.pool.count("numbers") - kinds.count("single_number") < 1:
                break
            name = "single_number"
        kinds.append(name)
    return kinds


def _spoilt(values: np.ndarray, spec: ColumnSpec, plan: TaskPlan, rng: np.random.Generator) -> np.ndarray:
    spoilt = values.copy()
    slipped = rng.random(len(values)) < plan.noise.outlier_share
    missing = rng.random(len(values)) < plan.noise.missing_share
    if spec.type in ("number", "integer"):
        spoilt = spoilt.astype(float)
        spoilt[slipped] = np.round(spoilt[slipped] * 10, 6)
        spoilt[missing] = np.nan
    elif spec.type == "datetime":
        spoilt[missing] = np.datetime64("NaT")
    else:
        spoilt[missing] = ""
    return spoilt


def _without_duplicates(dataset: Dataset) -> Dataset:
    """Drops rows that look like an earlier one, then the spare ones.

    Raises:
        AuthoringError: Too few rows are left.
    """
    plan = dataset.plan
    keep = np.ones(dataset.n_rows, dtype=bool)
    if not dataset.files:
        seen: set[tuple[object, ...]] = set()
        cells = zip(*(dataset.columns[spec.name].astype(str).tolist() for spec in dataset.specs), strict=True)
        for at, cell in enumerate(cells):
            keep[at] = cell not in seen
            seen.add(cell)
    wanted = {TRAIN: plan.n_train, TEST: plan.n_public + plan.n_private, CALIBRATION: plan.n_calibration}
    chosen: list[np.ndarray] = []
    for which, count in wanted.items():
        there = dataset.rows_where(which)
        found = there[keep[there]][:count]
        if len(found) < count:
            raise AuthoringError(f"{count - len(found)} rows too few are left once duplicates are dropped")
        chosen.append(found)
    return dataset.take(np.concatenate(chosen))


def _check_labels(dataset: Dataset) -> None:
    """Sees that every label occurs often enough to be learned and graded (cases N04, N07).

    Raises:
        AuthoringError: A label is too rare somewhere.
    """
    labels, plan = dataset.plan.target.labels, dataset.plan
    n_levels = max(len(labels), len(plan.label_shares))
    if dataset.head.mode == "classes":
        n_levels = dataset.head.n_levels()
    if n_levels == 0:
        return
    for part, least in ((TRAIN, 5), (TEST, 12), (CALIBRATION, 12)):
        y = dataset.y[dataset.where(part)]
        if dataset.head.mode == "labels":
            counts = np.minimum((y > 0).sum(axis=0), (y < 1).sum(axis=0))
        else:
            counts = np.bincount(y.ravel().astype(int), minlength=n_levels)
        if counts.min() < least:
            where = ("training", "test", "calibration")[part]
            raise AuthoringError(f"a label occurs only {int(counts.min())} times in the {where} rows")


def _rule(plan: TaskPlan, insights: tuple[Insight, ...], effects: list[Effect], realised: Realised) -> str:
    lines = ["# The hidden rule", ""]
    for part, insight, effect in zip(plan.insights, insights, effects, strict=True):
        lines += [
            f"- **{insight.family}**, {part.share:.0%} of the signal's variance. {insight.words}",
            f"  Its features' effects: {effect.words()}.",
        ]
    if plan.interaction_share:
        first, last = insights[0].family, insights[-1].family
        lines.append(f"- The product of {first} and {last} makes up {plan.interaction_share:.0%}.")
    lines += ["", realised.words, ""]
    if plan.substitutions:
        lines += ["## What stands in for the seed's own form", ""]
        lines += [f"- {note}" for note in plan.substitutions]
        lines.append("")
    return "\n".join(lines)


__all__ = ["Sample", "develop"]
