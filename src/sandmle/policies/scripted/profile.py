"""What the engineers make of their first look at the data: which column is what, and what form a prediction has."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sandmle.policies.scripted.brief import Brief


class Form(StrEnum):
    """The form of a prediction, as a data scientist would name it."""

    PROBABILITY = "probability"
    LABEL = "label"
    GRADE = "grade"
    ANGLES = "angles"
    CLASS_PROBABILITIES = "class_probabilities"
    RANKED_LABELS = "ranked_labels"
    LABEL_COLUMNS = "label_columns"
    LABEL_SET = "label_set"
    SHARES = "shares"
    VALUES = "values"
    VALUE_AND_SPREAD = "value_and_spread"
    UNKNOWN = "unknown"

    @property
    def is_classes(self) -> bool:
        """True when a row belongs to exactly one class."""
        return self in (Form.PROBABILITY, Form.LABEL, Form.CLASS_PROBABILITIES, Form.RANKED_LABELS)

    @property
    def has_text_answers(self) -> bool:
        """True when the answers in train.csv are labels, to be read as text."""
        return self.is_classes or self in (Form.GRADE, Form.LABEL_SET)

    @property
    def is_columns(self) -> bool:
        """True when a row has any number of labels."""
        return self in (Form.LABEL_COLUMNS, Form.LABEL_SET)


_LABEL_METRICS = ("accuracy", "macro_f1", "micro_f1", "f1", "f_half", "mcc", "qwk", "balanced_accuracy", "jaccard")
_SCORE_METRICS = ("roc_auc", "log_loss", "average_precision", "probabilistic_f1", "brier")
_IMAGE = re.compile(r"\.(png|jpe?g|bmp|tiff?)$", re.IGNORECASE)
_SOUND = re.compile(r"\.wav$", re.IGNORECASE)
_VIDEO_STRETCH = 3
"""From this ratio of width to height on, a picture is taken for the frames of a video side by side."""
_PLACE = re.compile(r"(?:^|_)(?:lat|lon|lng|latitude|longitude|easting|northing|x|y)(?:_|$)|coord", re.IGNORECASE)


@dataclass(frozen=True)
class Profile:
    """A task as seen from its public files.

    Attributes:
        id: The id column.
        form: The form of a prediction.
        metric: The metric as the engineers know it.
        targets: Columns of train.csv that hold the answers.
        predicted: Columns of the submission beside the id.
        numbers: Feature columns by kind, here plain numbers; the other lists likewise.
        groups: Columns whose values come back in the test: their averages can be learnt.
        strangers: Columns whose values repeat in train.csv but do not come back in the test.
        places: Number columns that name a place.
        series: Runs of number columns that are one series, a column for each point.
        repeats: Number columns that measure one thing several times.
        units: Number columns with the column that names their unit.
        low: Smallest value that may be predicted, as far as it is known.
        high: Largest value that may be predicted.
        pieces: What the pieces of a row are put together to; empty where rows are not taken apart.
        root: Folder of the tables.
    """

    id: str
    form: Form
    metric: str
    metric_name: str
    higher_is_better: bool
    targets: tuple[str, ...]
    predicted: tuple[str, ...]
    n_rows: int
    n_classes: int
    labels_are_numbers: bool
    positive: str
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    sounds: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    series: tuple[tuple[str, ...], ...] = ()
    repeats: tuple[tuple[str, ...], ...] = ()
    units: tuple[tuple[str, str], ...] = ()
    has_missing: bool = False
    low: float | None = None
    high: float | None = None
    videos: tuple[str, ...] = ()
    series_files: tuple[str, ...] = ()
    clouds: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    pieces: str = ""
    root: str = "input/"

    @property
    def features(self) -> tuple[str, ...]:
        """All feature columns."""
        points = (name for columns in self.series for name in columns)
        texts = (*self.categories, *self.dates, *self.codes, *self.texts, *self.traces)
        files = (*self.images, *self.sounds, *self.videos, *self.series_files, *self.clouds, *self.graphs)
        return (*self.numbers, *points, *texts, *files)


def read_profile(observation: str, brief: Brief) -> Profile | None:
    """Reads what ``look.py.j2`` printed; None when the essential lines are not there."""
    rows = _literal(observation, "rows:")
    predicted = _literal(observation, "sample columns:")
    row = _literal(observation, "sample row:")
    columns = [
        facts
        for line in re.findall(r"^\{'column': .*\}\s*$", observation, re.MULTILINE)
        if (facts := _parse(line)) is not None
    ]
    if not isinstance(rows, dict) or not isinstance(predicted, list) or len(predicted) < 2 or not columns:
        return None
    known = {facts["column"]: facts for facts in columns}
    targets = tuple(name for name, facts in known.items() if not facts["in_test"] and name != predicted[0])
    answers = _Answers(
        known=known,
        targets=targets,
        predicted=tuple(predicted[1:]),
        example=str(row[1]) if isinstance(row, list) and len(row) > 1 else "",
        sum_to_one=_literal(observation, "answers sum to one:") is True,
    )
    form = _form(brief, answers)
    targets = _own_targets(targets, tuple(predicted[1:])) if targets else ()
    kinds = _kinds(known, predicted[0], rows["train"])
    series, repeats = _runs(kinds["numbers"])
    kinds["numbers"] = tuple(name for name in kinds["numbers"] if not any(name in run for run in series))
    first = known.get(targets[0], {}) if targets else {}
    labels = [str(value) for value in first.get("values", ())]
    return Profile(
        id=predicted[0],
        form=form if targets else Form.UNKNOWN,
        metric=brief.metric or _usual_metric(form),
        metric_name=brief.metric_name,
        higher_is_better=brief.higher_is_better
        if brief.metric
        else form not in (Form.VALUES, Form.SHARES, Form.ANGLES),
        targets=targets,
        predicted=tuple(predicted[1:]),
        n_rows=rows["train"],
        n_classes=int(first.get("unique", 2)) if form.is_classes and len(targets) == 1 else len(targets),
        labels_are_numbers=first.get("type") == "number",
        positive=_positive(brief, labels),
        has_missing=any(facts["missing"] or facts.get("missing_in_test") for facts in known.values()),
        low=brief.low,
        high=brief.high,
        series=series,
        repeats=repeats,
        units=tuple((name, f"{name}_unit") for name in kinds["numbers"] if f"{name}_unit" in known),
        pieces="",
        root="input/",
        **kinds,
    )


def _literal(observation: str, head: str) -> Any:
    found = re.search(rf"^{re.escape(head)} (.*)$", observation, re.MULTILINE)
    return _parse(found[1]) if found else None


def _parse(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return None


def _usual_metric(form: Form) -> str:
    usual = {Form.PROBABILITY: "roc_auc", Form.LABEL: "accuracy", Form.CLASS_PROBABILITIES: "log_loss"}
    return usual.get(form, "rmse" if form is Form.VALUES else "log_loss")


@dataclass(frozen=True)
class _Answers:
    """What is known of the answers: their columns in train.csv and in the submission."""

    known: Mapping[str, Mapping[str, Any]]
    targets: tuple[str, ...]
    predicted: tuple[str, ...]
    example: str
    sum_to_one: bool


def _form(brief: Brief, answers: _Answers) -> Form:
    if not answers.targets:
        return Form.UNKNOWN
    if len(answers.predicted) > 1:
        return _form_of_many(brief, answers)
    name = answers.predicted[0] if answers.predicted[0] in answers.targets else answers.targets[0]
    facts = answers.known[name]
    if brief.metric == "map_at_k":
        return Form.RANKED_LABELS
    if facts["type"] == "text" and (facts["words"] > 1.05 or len(answers.example.split()) > 1):
        return Form.LABEL_SET
    if brief.metric in _SCORE_METRICS and facts["unique"] == 2:
        return Form.PROBABILITY
    if brief.metric == "qwk" and facts["type"] == "number":
        return Form.GRADE
    if facts["type"] == "text" or brief.metric in _LABEL_METRICS:
        return Form.LABEL
    return Form.VALUES


def _form_of_many(brief: Brief, answers: _Answers) -> Form:
    known, targets, predicted = answers.known, answers.targets, answers.predicted
    if not set(predicted) <= set(targets):
        if brief.metric == "laplace" or len(set(targets) & set(predicted)) == 1:
            return Form.VALUE_AND_SPREAD
        return Form.LABEL_COLUMNS if known[targets[0]].get("words", 1) > 1.05 else Form.CLASS_PROBABILITIES
    if brief.metric == "angular" and len(predicted) == 2:
        return Form.ANGLES
    if all(known[name]["unique"] <= 2 and known[name].get("whole", True) for name in predicted):
        return Form.CLASS_PROBABILITIES if answers.sum_to_one else Form.LABEL_COLUMNS
    return Form.SHARES if answers.sum_to_one or brief.metric in ("log_loss", "kl_divergence", "brier") else Form.VALUES


def _own_targets(targets: tuple[str, ...], predicted: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the answers' columns without others that only the training data has."""
    own = tuple(name for name in predicted if name in targets)
    return own or targets[:1]


def _positive(brief: Brief, labels: list[str]) -> str:
    """Returns the label whose probability is asked for; empty for the later of the two."""
    if len(labels) != 2:
        return ""
    near = re.findall(r"probability[^.\n]{0,120}", brief.text, re.IGNORECASE)
    for passage in near:
        named = [label for label in labels if re.search(rf"(?<![\w.]){re.escape(label)}(?![\w.])", passage)]
        if len(named) == 1:
            return named[0]
    return ""


def _kinds(known: Mapping[str, Mapping[str, Any]], id_column: str, n_rows: int) -> dict[str, tuple[str, ...]]:
    kinds: dict[str, list[str]] = {
        name: []
        for name in (
            "numbers",
            "categories",
            "dates",
            "codes",
            "texts",
            "images",
            "sounds",
            "traces",
            "videos",
            "series_files",
            "clouds",
            "graphs",
            "groups",
            "strangers",
            "places",
        )
    }
    for name, facts in known.items():
        if name == id_column or not facts["in_test"] or facts["unique"] < 2:
            continue
        kind = "numbers" if facts["type"] == "number" else _text_kind(facts, n_rows)
        kinds[kind].append(name)
        if kind == "numbers" and _PLACE.search(name):
            kinds["places"].append(name)
        repeats = facts["unique"] <= 0.6 * n_rows
        may_group = kind in ("categories", "codes") or (kind == "numbers" and facts["whole"])
        if may_group and repeats and facts["unique"] > 4:
            if facts["known_in_test"] >= 0.7:
                kinds["groups"].append(name)
            elif facts["known_in_test"] <= 0.1 and facts["type"] == "text":
                kinds["strangers"].append(name)
                kinds[kind].remove(name)
    return {name: tuple(columns) for name, columns in kinds.items()}


def _runs(numbers: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
    """Returns columns that differ in a running number only: long runs are series, short ones repeated measurements."""
    runs: dict[str, list[tuple[int, str]]] = {}
    for name in numbers:
        found = re.fullmatch(r"(.*?)[_ .-]?(\d+)", name)
        if found:
            runs.setdefault(found[1], []).append((int(found[2]), name))
    ordered = [tuple(name for _, name in sorted(run)) for run in runs.values()]
    return tuple(run for run in ordered if len(run) >= 12), tuple(run for run in ordered if 3 <= len(run) < 12)


def _file_kind(facts: Mapping[str, Any], example: str) -> str:
    if _SOUND.search(example):
        return "sounds"
    if _IMAGE.search(example):
        width, height = (*facts.get("size", ()), 1, 1)[:2]
        return "videos" if width >= _VIDEO_STRETCH * height else "images"
    if example.endswith(".json"):
        return "graphs"
    return "clouds" if "size" in facts or "x,y,z" in facts.get("file", "") else "series_files"


def _text_kind(facts: Mapping[str, Any], n_rows: int) -> str:
    example = facts["example"].strip()
    if facts["dates"] >= 0.9:
        return "dates"
    if facts.get("path") or _IMAGE.search(example) or _SOUND.search(example):
        return _file_kind(facts, example)
    if facts["numbers"] >= 0.9 and facts["words"] >= 6:
        return "traces"
    if facts["numbers"] >= 0.9 and re.search(r"[,;|].*[,;|].*[,;|]", example):
        return "traces"
    if facts["words"] >= 3 and facts["unique"] > 0.3 * n_rows:
        return "texts"
    if facts["unique"] <= max(15, 0.15 * n_rows):
        return "categories"
    return "codes"
