"""The description names what an agent needs: columns, metric, direction, labels (case N17)."""

import re
from collections.abc import Sequence

import pandas as pd
from PIL import Image

from sandmle.gate.base import Check, Finding, GateContext, words_of
from sandmle.records import Direction, PredictionKind

_MOST_LABELS_SPELT_OUT = 12
_SHARE = re.compile(r"`([^`\n]+)`:? \(?(\d+(?:\.\d+)?) ?%")
_SHARE_TOLERANCE = 0.6
"""Percentage points: a share may be rounded to whole ones."""
_RANGE = re.compile(r"`([^`\n]+)` lies between (-?\d+(?:\.\d+)?) and (-?\d+(?:\.\d+)?)")
_PICTURE_SIZE = re.compile(r"(\d+) x (\d+) pixels")
_DIRECTION_WORDS = {
    Direction.MAXIMIZE: (
        "higher is better",
        "higher values are better",
        "higher scores are better",
        "the higher the better",
        "maximi",
    ),
    Direction.MINIMIZE: (
        "lower is better",
        "lower values are better",
        "lower scores are better",
        "the lower the better",
        "minimi",
    ),
}


def run(context: GateContext) -> Finding:
    """Counts what the description leaves out or says wrongly."""
    text = context.bundle.description()
    problems = [f"description.md does not name {what}" for what in _missing(context, text)]
    wrong = Direction.MINIMIZE if context.spec.direction is Direction.MAXIMIZE else Direction.MAXIMIZE
    said = [phrase for phrase in _DIRECTION_WORDS[wrong] if phrase in text.lower()]
    if said:
        problems.append(f"description.md says {said[0]!r}, but the metric is to {context.spec.direction.value}")
    problems += [*_wrong_shares(context, text), *_wrong_counts(context, text), *_wrong_ranges(context, text)]
    problems += [*_wrong_example(context, text), *_wrong_pictures(context, text)]
    return Finding(not problems, problems[0] if problems else "", float(len(problems)), 0.0)


def _wrong_shares(context: GateContext, text: str) -> list[str]:
    """Finds shares of labels, written as "`label` 12.5 %", that are not those of the training rows (case N05)."""
    target, train = context.spec.target, context.train
    name = target.columns[0]
    problems = []
    for label, written in _SHARE.findall(text):
        if label in target.columns and len(target.columns) > 1 and label in train:
            real = float(pd.to_numeric(train[label], errors="coerce").mean())
        elif label in target.labels and name in train:
            real = float(train[name].str.split().map(lambda found, label=label: label in found).mean())
        else:
            continue
        if abs(100 * real - float(written)) > _SHARE_TOLERANCE:
            problems.append(f"description.md gives {label!r} {written} % of the training rows, it has {real:.1%}")
    return problems


def _wrong_counts(context: GateContext, text: str) -> list[str]:
    """Finds numbers of rows, written in a line that names a table, that are not the table's."""
    real = {"train.csv": len(context.train), "test.csv": len(context.test)}
    problems = []
    for name, count in real.items():
        for line in text.splitlines():
            found = re.search(rf"{re.escape(name)}\W+(\d+) (?:\w+ )?rows", line)
            if found and int(found[1]) != count:
                problems.append(f"description.md gives {name} {found[1]} rows, it has {count}")
    return problems


def _wrong_ranges(context: GateContext, text: str) -> list[str]:
    """Finds ranges, written as "`column` lies between 1 and 2", that are not those of the training rows."""
    problems = []
    for name, low, high in _RANGE.findall(text):
        if name not in context.train:
            continue
        numbers = pd.to_numeric(context.train[name], errors="coerce")
        if abs(numbers.min() - float(low)) > 1e-6 or abs(numbers.max() - float(high)) > 1e-6:
            problems.append(
                f"description.md puts {name!r} between {low} and {high}, not {numbers.min()} and {numbers.max()}"
            )
    return problems


def _wrong_example(context: GateContext, text: str) -> list[str]:
    """Holds the head of an example submission against the columns that a submission has."""
    wanted = ",".join([context.spec.id_column, *context.spec.target.columns])
    blocks = re.findall(r"```csv\n(.*?)\n", text)
    return [f"description.md shows a submission with the columns {head!r}" for head in blocks if head != wanted]


def _wrong_pictures(context: GateContext, text: str) -> list[str]:
    """Holds the sizes of pictures, written as "24 x 24 pixels", against one file of each folder."""
    told = {(int(width), int(height)) for width, height in _PICTURE_SIZE.findall(text)}
    problems = []
    for name in context.media_columns:
        path = context.media.get(context.test[name].iloc[0])
        if not told or path is None or path.suffix.lower() != ".png":
            continue
        with Image.open(path) as picture:
            if picture.size not in told:
                size = "{} x {}".format(*picture.size)
                problems.append(f"description.md does not give the size of the pictures in {name!r}, {size} pixels")
    return problems


def _missing(context: GateContext, text: str) -> list[str]:
    spec = context.spec
    target = spec.target
    names = [*dict.fromkeys([spec.id_column, *context.test.columns, *context.train_targets, *target.columns])]
    if target.kind in (PredictionKind.CLASS_PROBABILITIES, PredictionKind.LABEL_PROBABILITIES):
        names = [name for name in names if name not in target.columns or len(target.columns) <= _MOST_LABELS_SPELT_OUT]
    missing = [f"the column {name!r}" for name in _ends_of_families(names) if not _named(name, text)]
    if target.kind is PredictionKind.LABEL and len(target.labels) <= _MOST_LABELS_SPELT_OUT:
        missing += [f"the label {label!r}" for label in target.labels if not _named(label, text)]
    if not _names_metric(context, text):
        missing.append(f"the metric {spec.metric!r}")
    if not any(phrase in text.lower() for phrase in _DIRECTION_WORDS[spec.direction]):
        missing.append("which direction of the metric is better")
    return missing


def _ends_of_families(names: Sequence[str]) -> list[str]:
    """Leaves out the middle of families of numbered columns: a text may name them by the first and the last."""
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    return [name for family in families.values() for name in dict.fromkeys([family[0], family[-1]])]


def _named(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _names_metric(context: GateContext, text: str) -> bool:
    """Tells whether the metric's name, or most words of its title, are in the text."""
    said = set(words_of(text))
    metric = context.grader.key.metric
    title = [word for word in words_of(metric.title) if len(word) > 2]
    spelt = set(words_of(metric.name.replace("_", " ")))
    return spelt <= said or sum(word in said for word in title) >= 0.6 * len(title) > 0


CHECK = Check("description_consistent", run)
