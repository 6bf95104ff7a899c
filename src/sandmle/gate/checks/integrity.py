"""Layout, hashes, and what the spec says of its tables against what they are."""

import pandas as pd

from sandmle.gate.base import Check, Finding, GateContext
from sandmle.grading import get_metric
from sandmle.grading.metrics import CUSTOM
from sandmle.tasks import check_bundle

_LEADERBOARDS = ("public", "private")


def run(context: GateContext) -> Finding:
    """Counts what is wrong with the bundle as a bundle; every other check relies on this one."""
    problems = check_bundle(context.bundle.root) or [*_table_problems(context), *_count_problems(context)]
    return Finding(not problems, problems[0] if problems else "", float(len(problems)), 0.0)


def _table_problems(context: GateContext) -> list[str]:
    spec = context.spec
    named = [spec.id_column, *(column.name for column in spec.columns if column.name != spec.id_column)]
    answered = spec.target.columns[: None if spec.metric == CUSTOM else get_metric(spec.metric).n_answer_columns]
    problems = []
    for path, frame, wanted in (
        ("public/train.csv", context.train, named),
        ("public/test.csv", context.test, named),
        ("private/answers.csv", context.table("private/answers.csv"), [spec.id_column, *answered, "leaderboard"]),
        (
            "public/sample_submission.csv",
            context.table("public/sample_submission.csv"),
            [spec.id_column, *spec.target.columns],
        ),
    ):
        missing = [name for name in wanted if name not in frame.columns]
        if missing:
            problems.append(f"{path} lacks the column {missing[0]!r}")
        elif not frame[spec.id_column].is_unique:
            twice = frame[spec.id_column][frame[spec.id_column].duplicated()].iloc[0]
            problems.append(f"{path} has the {spec.id_column} {twice!r} twice")
    problems.extend(
        f"test.csv has the column {name!r}, which is to be predicted"
        for name in spec.target.columns
        if name in context.test
    )
    problems.extend(
        f"test.csv has the column {name!r}, which {'task.yaml'} does not name"
        for name in context.test
        if name not in named
    )
    if not problems and not context.train_targets:
        problems.append("train.csv has no column beside those of test.csv, so there is nothing to learn from")
    return problems or _id_problems(context)


def _id_problems(context: GateContext) -> list[str]:
    name = context.spec.id_column
    wanted = set(context.test[name])
    problems = []
    for path in ("private/answers.csv", "public/sample_submission.csv"):
        found = set(context.table(path)[name])
        if found != wanted:
            odd = sorted(found ^ wanted)[0]
            problems.append(f"{path} and public/test.csv do not have the same ids; {odd!r} is in one of them only")
    both = set(context.train[name]) & wanted
    if both:
        problems.append(f"the {name} {sorted(both)[0]!r} is in train.csv and in test.csv")
    return problems


def _count_problems(context: GateContext) -> list[str]:
    spec = context.spec
    leaderboard: pd.Series = context.table("private/answers.csv").get("leaderboard", pd.Series(dtype=str))
    odd = sorted(set(leaderboard) - set(_LEADERBOARDS))
    if odd:
        return [f"answers.csv has the leaderboard {odd[0]!r}; known: public, private"]
    counts = {
        "n_train": (spec.n_train, len(context.train)),
        "n_public": (spec.n_public, int((leaderboard == "public").sum())),
        "n_private": (spec.n_private, int((leaderboard == "private").sum())),
    }
    return [
        f"task.yaml says {name} {said}, the tables hold {found}"
        for name, (said, found) in counts.items()
        if said != found
    ]


CHECK = Check("bundle_integrity", run, decides=True)
