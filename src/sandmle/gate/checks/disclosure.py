"""No answers, answer paths, numbers of the maker or milestones in anything that an agent can read (case N01)."""

import itertools
import re

import numpy as np
import pandas as pd

from sandmle.gate.base import RULE_FILE, Check, Finding, GateContext

_SECRET_WORDS = re.compile(
    r"answers?\.csv|oracle\.csv|evaluator\.py|ladder\.json|rule\.md|gate\.json|task\.yaml|\bprivate/|\bprovenance/"
    r"|\brng_seed\b|\brandom_state\b|\brandom seed\b",
    re.IGNORECASE,
)
_SECRET_NAMES = re.compile(
    r"answer|solution|oracle|label|evaluator|ladder|rule|gate|private|secret|seed", re.IGNORECASE
)
_RUN_LENGTH = 24
"""So many answers in a row in a text are no coincidence."""
_FEWEST_DIGITS = 3
_MOST_DISTINCT = 0.98
_LISTED = re.compile(r"\s*(\||[-*] `|`|[\w]+,)")
"""Lines of a list or table of columns, and of the example submission."""


def run(context: GateContext) -> Finding:
    """Counts what should be hidden and is not."""
    problems = [
        *_target_columns(context),
        *_answer_columns(context),
        *_loose_files(context),
        *_secret_words(context),
        *_answer_runs(context),
        *_milestones(context),
        *_singled_out(context),
    ]
    return Finding(not problems, problems[0] if problems else "", float(len(problems)), 0.0)


def _target_columns(context: GateContext) -> list[str]:
    hidden = [*context.spec.target.columns, "leaderboard", *context.spec.answer_columns]
    named = {column.name for column in context.spec.columns}
    return [f"test.csv has the column {name!r}" for name in hidden if name in context.test and name not in named]


def _answer_columns(context: GateContext) -> list[str]:
    """Finds a column of a public table that is the answers under another name, in place or reversed."""
    problems = []
    sample = context.table("public/sample_submission.csv").set_index(context.spec.id_column, drop=False)
    sample = sample.loc[list(context.test[context.spec.id_column])]
    for target in context.answers.columns.intersection([*context.spec.target.columns, "leaderboard"]):
        codes, levels = pd.factorize(context.answers[target])
        if len(levels) < 2:
            continue
        # Columns of which hardly a cell comes twice all have one pattern: only their cells tell.
        by_pattern = len(levels) < _MOST_DISTINCT * len(codes)
        for path, frame in (("test.csv", context.test), ("sample_submission.csv", sample)):
            for name in frame.columns.difference([context.spec.id_column]):
                other, other_levels = pd.factorize(frame[name])
                same = np.array_equal(codes, other) and len(other_levels) == len(levels)
                if same and (by_pattern or np.array_equal(context.answers[target], frame[name])):
                    problems.append(f"the column {name!r} of {path} is {target!r} of answers.csv, renamed")
    return problems


def _loose_files(context: GateContext) -> list[str]:
    named = {cell for name in context.media_columns for frame in (context.train, context.test) for cell in frame[name]}
    loose = [name for name in context.media if name not in named]
    return [
        f"public/{name} is named by no row and called like something hidden"
        for name in loose
        if _SECRET_NAMES.search(name)
    ]


def _secret_words(context: GateContext) -> list[str]:
    problems = []
    for path, text in context.public_texts.items():
        found = _SECRET_WORDS.search(text)
        if found:
            problems.append(f"{path} says {found.group()!r}")
        if (
            re.search(rf"(?<!\d){context.spec.provenance.rng_seed}(?!\d)", text)
            and context.spec.provenance.rng_seed > 9999
        ):
            problems.append(f"{path} gives the author's rng_seed")
    return problems


def _answer_runs(context: GateContext) -> list[str]:
    """Finds a stretch of the answers, in the order of test.csv or of the ids, written out in a text."""
    problems = []
    targets = context.answers.columns.intersection(list(context.spec.target.columns))
    by_id = context.answers.sort_values(context.spec.id_column)
    for path, text in context.public_texts.items():
        cells = _run_of(text)
        for frame, target in itertools.product((context.answers, by_id), targets):
            # A cell may be many words, as masks are, or none.
            stretch = _run_of(" ".join(frame[target][:_RUN_LENGTH]))
            if stretch.count("\x1f") > _RUN_LENGTH and stretch in cells:
                problems.append(f"{path} holds the answers of {target!r}")
    return problems


def _run_of(text: str) -> str:
    """Returns the words and numbers of a text, each between two marks."""
    return "\x1f" + "\x1f".join(re.findall(r"[^\s,;:\[\](){}\"']+", text)) + "\x1f"


def _milestones(context: GateContext) -> list[str]:
    """Finds a milestone's score in the description, written with three significant digits or more."""
    spec = context.spec
    counts = {float(spec.n_train), float(spec.n_public), float(spec.n_private), float(spec.n_public + spec.n_private)}
    problems = []
    for written in re.findall(r"(?<![\w.])-?\d+\.\d+(?![\w.]*\d)", context.bundle.description()):
        value, decimals = float(written), len(written.partition(".")[2])
        if value in counts or len(written.replace(".", "").lstrip("-").strip("0")) < _FEWEST_DIGITS:
            continue
        for name in ("median", "bronze", "silver", "gold"):
            if round(getattr(spec.thresholds, name).score, decimals) == value:
                problems.append(f"description.md gives the score of {name}, {written}")
    return problems


def _singled_out(context: GateContext) -> list[str]:
    """Finds columns that the hidden rule names and that the description talks of outside its list of columns."""
    if not (context.bundle.root / RULE_FILE).is_file():
        return []
    rule = set(re.findall(r"\w+", context.read(RULE_FILE).decode(errors="replace")))
    named = [column.name for column in context.spec.columns if column.name in rule and "_" in column.name]
    own = {*context.spec.target.columns, *context.spec.answer_columns, *context.group_columns}
    prose = [line for line in context.bundle.description().splitlines() if not _LISTED.match(line)]
    said = set(re.findall(r"\w+", "\n".join(prose)))
    told = [name for name in named if name in said and name not in own]
    # A text that goes through most columns singles none out.
    return [f"description.md singles out the column {told[0]!r}"] if 0 < len(told) <= 0.5 * len(named) else []


CHECK = Check("disclosure", run)
