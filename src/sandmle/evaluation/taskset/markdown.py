"""The data card as Markdown, and in short for a terminal."""

from collections.abc import Iterable, Sequence

from sandmle.evaluation.formats import NOTHING, number_text
from sandmle.evaluation.statistics import Spread
from sandmle.evaluation.taskset.card import Distribution, TaskSetCard
from sandmle.evaluation.taskset.retraining import RetrainingSummary
from sandmle.evaluation.text import clean_line
from sandmle.records import Medal

_MOST_VALUES = 12
Table = tuple[Sequence[str], list[Sequence[str]]]
"""Column names, and rows."""


def card_markdown(card: TaskSetCard) -> str:
    """Returns the whole card."""
    parts = [f"# Data card: {clean_line(card.name)}", "", f"{card.n_tasks} tasks.", ""]
    for title, note, table in card_table(card):
        parts += [f"## {title}", ""]
        parts += [note, ""] if note else []
        parts += [*_rows(table), ""]
    if card.problems:
        parts += ["## Left out", "", *(f"- {clean_line(problem)}" for problem in card.problems), ""]
    parts += ["## Tasks", "", *_rows(task_table(card)), ""]
    return "\n".join(parts)


def card_table(card: TaskSetCard) -> list[tuple[str, str, Table]]:
    """Returns the card's tables but for the list of tasks: title, note and cells."""
    tables: list[tuple[str, str, Table]] = []
    if card.funnel is not None:
        stages: list[Sequence[str]] = [(name.replace("_", " "), str(n)) for name, n in card.funnel.stages.items()]
        note = f"{card.funnel.n_accepted} of {card.funnel.n_proposed} proposals were kept."
        tables.append(("Funnel", note, (("stage", "proposals"), stages)))
        losses: list[Sequence[str]] = [(name, str(n)) for name, n in card.funnel.losses.items()]
        if losses:
            tables.append(("Losses", "", (("lost to", "proposals"), losses)))
    for name, found in card.distributions.items():
        note = f"Entropy {found.entropy_bits:.2f} of at most {found.highest_bits:.2f} bits."
        tables.append((f"By {name}", note, (("value", "tasks", "share"), _distribution(found, card.n_tasks))))
    medals = [medal.value for medal in Medal]
    reach: list[Sequence[str]] = [
        (each.tier.value.replace("_", " "), str(each.n_baselines), *(f"{each.shares[name]:.0%}" for name in medals))
        for each in card.reach
    ]
    tables.append(
        (
            "Difficulty",
            "Highest medal of the author's baselines on its calibration rows.",
            (("tier", "n", *medals), reach),
        )
    )
    spreads: list[Sequence[str]] = [
        ("independent solver, wall s", *_spread(card.solver_wall_s)),
        ("independent solver, CPU s", *_spread(card.solver_cpu_s)),
        ("making and judging, CPU s", *_spread(card.making_cpu_s)),
        ("size, KiB", *_spread(card.size_kb)),
        ("likeness of the nearest description", *_spread(card.descriptions.nearest)),
    ]
    tables.append(("Time, size and likeness", _likeness(card), (("what", "n", "mean", "median", "p95"), spreads)))
    if card.retraining is not None:
        tables.append(("Retraining", _RETRAINING, (("what", "value"), _retraining(card.retraining))))
    return tables


def task_table(card: TaskSetCard) -> Table:
    """Returns the list of tasks."""
    rows: list[Sequence[str]] = [
        (
            each.task_id,
            each.task_hash[:12],
            each.seed_id or NOTHING,
            each.modality,
            each.task_kind,
            each.metric,
            each.family,
        )
        for each in card.tasks
    ]
    return ("task", "hash", "seed", "modality", "kind", "metric", "family"), rows


_RETRAINING = (
    "Plain solvers, trained on train.csv and again on as many rows of the test; both fits are scored on the same rows."
)


def _retraining(found: RetrainingSummary) -> list[Sequence[str]]:
    return [
        ("tasks (left out)", f"{found.n_tasks} ({found.n_left_out})"),
        ("solvers", str(found.n_solvers)),
        ("same medal both times", number_text(found.same_medal)),
        ("same level, median counted", number_text(found.same_level)),
        ("the same by chance", number_text(found.same_level_by_chance)),
        ("tasks on which no two solvers change places, by level", number_text(found.same_order)),
        ("rank correlation, one task (ceiling)", number_text(found.rank_same_task)),
        ("rank correlation, one family", number_text(found.rank_same_family)),
        ("rank correlation, two families", number_text(found.rank_other_family)),
    ]


def _likeness(card: TaskSetCard) -> str:
    return (
        f"{card.descriptions.n_near} descriptions have a near-duplicate (80 % of their four-word shingles in common)."
    )


def _distribution(found: Distribution, total: int) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [
        (name, str(count), f"{count / total:.0%}") for name, count in list(found.counts.items())[:_MOST_VALUES]
    ]
    rest = list(found.counts.values())[_MOST_VALUES:]
    if rest:
        rows.append((f"{len(rest)} others", str(sum(rest)), f"{sum(rest) / total:.0%}"))
    return rows


def _spread(values: Spread) -> tuple[str, str, str, str]:
    return (str(values.n), number_text(values.mean), number_text(values.median), number_text(values.p95))


def _rows(table: Table) -> Iterable[str]:
    header, rows = table
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(clean_line(cell).replace('|', '/') for cell in row)} |"
