"""The Technical Writer: the description that the agent reads. The hidden rule is not among its inputs."""

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
    environment.filters["words"] = lambda name: str(name).replace("_", " ")
    vocabulary = vocabulary_of(plan.domain)
    metric = get_metric(plan.metric)
    text = environment.get_template("description.md.j2").render(
        plan=plan,
        facts=facts,
        limits=limits,
        metric=metric,
        params=metric_params(plan),
        better="higher" if plan.direction is Direction.MAXIMIZE else "lower",
        place=_pick(vocabulary.places, rng),
        image=_pick(vocabulary.images, rng),
        columns=_grouped(facts.columns),
        form=_form(plan),
        pick=lambda *options: _pick(options, rng),
        n_test=plan.n_public + plan.n_private,
        title=plan.title[0].upper() + plan.title[1:],
        shuffled=[str(name) for name in rng.permutation(["data", "evaluation"])],
    )
    return text.strip() + "\n"


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


def _grouped(columns: tuple[ColumnSpec, ...]) -> list[tuple[str, str, str]]:
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
