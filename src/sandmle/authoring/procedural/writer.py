"""The Technical Writer: the description that the agent reads. The hidden rule is not among its inputs."""

import re

import jinja2
import numpy as np

from sandmle.authoring.plan import Facts, TaskPlan
from sandmle.authoring.procedural.publish import metric_params
from sandmle.authoring.procedural.words import vocabulary_of
from sandmle.authoring.randomness import rng_for
from sandmle.grading import get_metric
from sandmle.records import ColumnSpec, Direction, PredictionKind, TaskKind, TaskLimits


def describe(plan: TaskPlan, facts: Facts, limits: TaskLimits) -> str:
    """Returns description.md."""
    rng = rng_for("writer", plan.task_id)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sandmle.authoring.procedural", "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    vocabulary = vocabulary_of(plan.domain)
    metric = get_metric(plan.metric)
    columns = _listed(facts.columns)
    text = environment.get_template("description.md.j2").render(
        plan=plan,
        facts=facts,
        limits=limits,
        metric=metric,
        params=metric_params(plan),
        better="higher" if plan.direction is Direction.MAXIMIZE else "lower",
        place=_pick(vocabulary.places, rng),
        notes=_notes(plan, facts, rng),
        remarks=_remarks(plan, rng),
        layout=_pick(("table", "table", "list", "groups"), rng),
        columns=columns,
        grouped=_by_type(columns),
        targets=_targets(plan),
        form=_form(plan),
        pick=lambda *options: _pick(options, rng),
        n_test=plan.n_public + plan.n_private,
        title=plan.title[0].upper() + plan.title[1:],
        sections=_sections(rng),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _sections(rng: np.random.Generator) -> list[str]:
    """Returns the sections between background and rules, in an order that people might choose."""
    orders = (
        ("data", "evaluation", "submission"),
        ("evaluation", "data", "submission"),
        ("data", "submission", "evaluation"),
        ("evaluation", "submission", "data"),
    )
    return [*_pick(orders, rng), *(["hints"] if rng.random() < 0.5 else [])]


def _notes(plan: TaskPlan, facts: Facts, rng: np.random.Generator) -> list[str]:
    """Returns what the background says of the way in which test rows differ, and of what pictures show."""
    image = _pick(vocabulary_of(plan.domain).images, rng)
    notes = []
    if any(folder == "images" for folder, _, _ in facts.files):
        notes.append(f"Each row has a picture: {image.subject} ({image.detail}).")
    if plan.noise.twin_share:
        notes.append("Some rows of a table are near copies of others.")
    if plan.label_families:
        families: dict[int, list[str]] = {}
        for label, family in zip(plan.target.labels, plan.label_families, strict=True):
            families.setdefault(family, []).append(f"`{label}`")
        told = "; ".join(" and ".join(labels) for labels in families.values())
        notes.append(f"Some labels are close relatives: {told}.")
    if plan.dna.time_ordered:
        notes.append("The test rows were recorded after the training rows.")
    if plan.dna.groups:
        notes.append(f"No `{facts.columns[0].name}` of the training rows occurs in the test rows.")
    return notes


def _remarks(plan: TaskPlan, rng: np.random.Generator) -> list[str]:
    """Returns answers to what people usually ask; none of them depends on the hidden rule."""
    said = [
        f"`{plan.id_column}` is drawn at random and tells nothing.",
        "The rows of both tables are shuffled." if not plan.dna.time_ordered else "Rows are shuffled, times are not.",
        f"A submission that lacks a row of test.csv is refused; all {plan.n_public + plan.n_private} are needed.",
        "You may hand in as often as you like; the last file counts.",
        "Only what you write into the working directory is kept from one script to the next.",
        "The libraries that you would expect for tables, texts and pictures are installed.",
        "There are more test rows than training rows: labels are dear, rows are cheap.",
    ]
    return [said[at] for at in rng.permutation(len(said))[: int(rng.integers(3, 5))]]


def _targets(plan: TaskPlan) -> list[tuple[str, str, str]]:
    """Returns name, kind with unit, and meaning of each target column of train.csv."""
    kind = f"target, {plan.target_unit}" if plan.target_unit else "target"
    names = plan.target.columns[: get_metric(plan.metric).n_answer_columns]
    if plan.target.kind is PredictionKind.VALUES or len(names) == 1:
        meaning = f"Only in train.csv: {plan.target_words}"
        parts = ("", *(f", {name.rsplit('_', 1)[-1]}" for name in names[1:]))
        return [(name, kind, f"{meaning}{part}") for name, part in zip(names, parts, strict=True)]
    return [(name, kind, f"Only in train.csv: for {name.replace('_', ' ')}") for name in names]


_HEADINGS = {
    "number": "Numbers",
    "integer": "Numbers",
    "category": "Categories and codes",
    "code": "Categories and codes",
    "boolean": "Categories and codes",
    "datetime": "Dates and times",
    "text": "Texts",
    "path": "Files",
}


def _by_type(columns: list[tuple[str, str, str]]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for column in columns:
        groups.setdefault(_HEADINGS[column[1].split(", ")[0]], []).append(column)
    return list(groups.items())


def _form(plan: TaskPlan) -> str:
    if plan.dna.task_kind is TaskKind.SPAN_EXTRACTION:
        empty = "; where no sentence does, the cell is empty" if plan.metric == "span_f1" else ""
        return f"A prediction is one sentence of the passage, copied word by word{empty}."
    if plan.target.kind is PredictionKind.TEXT:
        return "A prediction is one word for each piece, in their order, separated by spaces."
    return _FORMS[plan.target.kind]


def _pick(options, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    return options[int(rng.integers(len(options)))]


_FORMS: dict[PredictionKind, str] = {
    PredictionKind.LABEL: "A prediction is one label of the label set.",
    PredictionKind.PROBABILITY: "A prediction is the probability of the positive label, a number from 0 to 1.",
    PredictionKind.CLASS_PROBABILITIES: "Each column holds the probability of one label; each row sums to 1.",
    PredictionKind.LABEL_PROBABILITIES: "Each column holds the probability of one label, from 0 to 1, on its own.",
    PredictionKind.VALUES: "Predictions are finite numbers.",
    PredictionKind.LABEL_SET: "A prediction is any number of labels in one cell, separated by spaces; it may be empty.",
    PredictionKind.MASK: (
        "A prediction is a mask as run lengths: pairs of start and length, separated by spaces; pixels are counted "
        "from 1 down the columns, the left column first. An empty cell is an empty mask."
    ),
    PredictionKind.BOXES: (
        "A prediction is any number of boxes in one cell, each as label, confidence (0 to 1), left, top, width and "
        "height in pixels, all separated by spaces."
    ),
    PredictionKind.PERMUTATION: "A prediction is all letters of the row's entries in order, separated by spaces.",
    PredictionKind.RANKED_LABELS: "A prediction is labels in one cell, separated by spaces, the most likely first.",
}


def _listed(columns: tuple[ColumnSpec, ...]) -> list[tuple[str, str, str]]:
    """Returns name, type with unit, and meaning of each column; the samples of a trace become one line."""
    lines: list[tuple[str, str, str]] = []
    trace = [column for column in columns if column.name.startswith("t_") and column.name[2:].isdigit()]
    for column in columns:
        if column in trace:
            if column is trace[0]:
                meaning = column.description.rsplit(",", 1)[0]
                name = f"{trace[0].name} ... {trace[-1].name}"
                lines.append((name, f"number, {column.unit}", f"{meaning}: {len(trace)} samples in order of time"))
            continue
        kind = f"{column.type}, {column.unit}" if column.unit else column.type
        lines.append((column.name, kind, column.description))
    return lines
