"""The Data Strategist: from a seed's DNA to the plan of a task in a domain of its own."""

import numpy as np

from sandmle.authoring.plan import InsightPlan, NoisePlan, SideColumn, TaskPlan
from sandmle.authoring.procedural.difficulty import Knobs, knobs_of
from sandmle.authoring.procedural.families import families_of
from sandmle.authoring.procedural.families.base import Medium
from sandmle.authoring.procedural.media.board import board_shape
from sandmle.authoring.procedural.substitution import PIECEWISE, drawable, media_of
from sandmle.authoring.procedural.words import Vocabulary, vocabularies
from sandmle.authoring.randomness import digest_of, rng_for
from sandmle.errors import AuthoringError
from sandmle.grading import get_metric
from sandmle.records import PredictionKind, SeedRecord, StructuralDNA, TargetSpec, TaskKind

PIECE_SIDE = 12
"""Height and width of a piece's own picture."""
_MOST_GRADED = 0.68
_WITH_FILES = frozenset[Medium]({"image", "sound", "video", "cloud"})
_TWO_CLASS_METRICS = ("auc", "log_loss", "accuracy", "f1", "mcc", "error_rate")


def make_plan(seed: SeedRecord, rng_seed: int, *, version: str, difficulty: str, attempt: int) -> TaskPlan:
    """Returns the plan of one task.

    Args:
        seed: The seed.
        rng_seed: Tells tasks of one seed apart.
        version: Of the author; another version draws other tasks.
        difficulty: Name of the knobs.
        attempt: Counts the redraws after a plan that gave no usable data.
    """
    rng = rng_for("plan", version, seed.id, rng_seed, difficulty, attempt)
    knobs = knobs_of(difficulty)
    dna, notes = drawable(seed.dna)
    vocabulary = _domain(rng)
    entity = vocabulary.entities[int(rng.integers(len(vocabulary.entities)))]
    insights, interaction = _insights(dna, rng, knobs)
    n_pieces, grid = _pieces(dna, rng)
    target, words, unit, shares = _target(dna, vocabulary, rng, grid)
    tag = digest_of("task", version, seed.id, rng_seed, difficulty).hex()[:6]
    n_train = int(rng.integers(*knobs.n_train, endpoint=True))
    if len(shares) > 3 or dna.imbalance == "strong":
        n_train = max(n_train, 180)
    if n_pieces > 1:
        n_train = max(60, round(0.6 * n_train))  # each row teaches as much as its pieces
    # Scores that count hits spread most, so that more rows must be graded to tell solvers apart.
    counts_hits = dna.prediction_kind in (PredictionKind.LABEL, PredictionKind.RANKED_LABELS)
    two_classes = any(part in dna.metric for part in _TWO_CLASS_METRICS) and len(shares) <= 2
    n_private, n_calibration = _sizes(media_of(dna), n_pieces, grid, spreads_much=counts_hits or two_classes)
    return TaskPlan(
        task_id=f"{vocabulary.domain.split('_')[0]}-{entity.word}-{tag}",
        title=f"{entity.many}: {words.removeprefix('the ').removeprefix('whether ')}",
        seed_id=seed.id,
        rng_seed=rng_seed,
        domain=vocabulary.domain,
        entity=entity.one,
        entity_plural=entity.many,
        dna=dna,
        substitutions=notes,
        metric=dna.metric,
        metric_params=_metric_params(dna, target),
        direction=dna.direction,
        id_column=entity.id,
        target=target,
        target_words=words,
        target_unit=unit,
        label_shares=shares,
        label_families=_label_families(dna, target),
        side_columns=_side_columns(dna, vocabulary, rng),
        insights=insights,
        interaction_share=interaction,
        noise=_noise(dna, knobs),
        n_pieces=n_pieces,
        grid=grid,
        is_round=dna.task_kind is TaskKind.SEGMENTATION and bool(rng.integers(2)),
        series_form="files" if rng.random() < 0.5 else "columns",
        n_nuisance=int(rng.integers(2, 6)),
        n_train=n_train,
        n_public=100 if n_pieces > 1 else 200 if _WITH_FILES & set(media_of(dna)) else 300,
        n_private=n_private,
        n_calibration=n_calibration,
    )


def _sizes(media: tuple[Medium, ...], n_pieces: int, grid: tuple[int, int], *, spreads_much: bool) -> tuple[int, int]:
    """Returns the numbers of private test rows and of calibration rows.

    Milestones must lie further apart than luck reaches, which takes many rows; a row with files costs most.
    """
    has_files = bool(_WITH_FILES & set(media))
    if n_pieces > 1:
        return 1000, 700 if grid != (1, 1) else 1500
    if spreads_much:
        return (1500, 2500) if has_files else (2500, 3000)
    return (1000, 2000) if has_files else (1200, 3000)


def _pieces(dna: StructuralDNA, rng: np.random.Generator) -> tuple[int, tuple[int, int]]:
    """Returns how many pieces a row is made of, and the rows and columns in which they stand in a picture."""
    if dna.task_kind not in PIECEWISE:
        return 1, (1, 1)
    if dna.task_kind is TaskKind.SEQ2SEQ:
        n_pieces = int(rng.integers(4, 6))
        return n_pieces, (1, n_pieces)
    if dna.task_kind in (TaskKind.SEGMENTATION, TaskKind.DETECTION):
        # Boxes cost most to score, so that there are fewer of them.
        grid = ((2, 2), (2, 3))[int(rng.integers(2)) if dna.task_kind is TaskKind.SEGMENTATION else 0]
        return grid[0] * grid[1], grid
    n_pieces = int(rng.integers(4, 6))
    return n_pieces, (1, 1)


def _domain(rng: np.random.Generator) -> Vocabulary:
    found = vocabularies()
    shares = np.array([vocabulary.share for vocabulary in found])
    return found[int(rng.choice(len(found), p=shares / shares.sum()))]


def _insights(dna: StructuralDNA, rng: np.random.Generator, knobs: Knobs) -> tuple[tuple[InsightPlan, ...], float]:
    media = media_of(dna)
    if dna.task_kind in _WITHIN_ROW:
        # What is the same for all pieces of a row cannot order them.
        media = tuple(medium for medium in media if medium != "tabular") or media
    n_cliffs = 1 + int(rng.choice(len(knobs.n_cliffs), p=knobs.n_cliffs))
    graded_share = float(rng.uniform(*knobs.graded_share))
    # Raw pixels, raw words and many labels give less away, so more of the signal is of the graded kind.
    one_of_many = dna.prediction_kind in (PredictionKind.LABEL, PredictionKind.RANKED_LABELS) and dna.n_classes != 2
    graded_share += 0.1 * (media[0] in ("image", "text")) + 0.12 * one_of_many
    # The logarithm stretches the way to the best, so that half of the signal is far less than half of the score.
    graded_share += 0.12 * (dna.metric == "group_log_mae")
    graded_share = min(graded_share, _MOST_GRADED)
    n_graded = 2 if n_cliffs == 1 or rng.random() < 0.4 else 1
    graded_names = _draw_families(media, n_graded, rng, graded=True)
    cliff_names = _draw_families(media, n_cliffs, rng, graded=False)
    interaction = float(np.round(rng.uniform(0.05, 0.1), 3)) if rng.random() < 0.4 else 0.0
    plans = []
    for names, share in ((graded_names, graded_share), (cliff_names, 1 - graded_share)):
        weights = rng.uniform(0.8, 1.25, size=len(names))
        parts = np.round(share * (1 - interaction) * weights / weights.sum(), 3)
        plans += [InsightPlan(family=name, share=part) for name, part in zip(names, parts.tolist(), strict=True)]
    return tuple(plans), interaction


def _draw_families(media: tuple[Medium, ...], count: int, rng: np.random.Generator, *, graded: bool) -> list[str]:
    """Draws distinct families, taking turns between the media, the leading one first."""
    decks = {}
    for medium in media:
        names = [family.name for family in families_of(medium, graded=graded)]
        decks[medium] = [names[at] for at in rng.permutation(len(names))]
    drawn: list[str] = []
    while len(drawn) < count and any(decks.values()):
        for medium in media:
            if decks[medium] and len(drawn) < count:
                drawn.append(decks[medium].pop())
    if not drawn:
        raise AuthoringError(f"no family of hidden rules for {', '.join(media)} data")
    return drawn


def _target(
    dna: StructuralDNA, vocabulary: Vocabulary, rng: np.random.Generator, grid: tuple[int, int]
) -> tuple[TargetSpec, str, str, tuple[float, ...]]:
    """Returns the target, what it means, its unit and the wanted shares of its labels."""
    form, words = dna.prediction_kind, vocabulary.targets
    n = dna.n_classes or 0
    if dna.task_kind in PIECEWISE:
        return _piece_target(dna, vocabulary, rng, grid)
    if dna.task_kind is TaskKind.ORDINAL:
        name, meaning = _pick(words.ordinal, rng)
        shares = _shares(n, dna, rng, bell=True)
        if form is PredictionKind.VALUES:
            return TargetSpec(kind=form, columns=(name,), low=0.0, high=1.0), meaning, "", shares
        labels = tuple(str(level) for level in range(1, n + 1))
        return TargetSpec(kind=form, columns=(name,), labels=labels), meaning, "", shares
    if form is PredictionKind.VALUES:
        return _value_target(dna, vocabulary, rng)
    if dna.task_kind is TaskKind.BINARY:
        name, meaning = _pick(words.binary, rng)
        labels = ("0", "1") if form is PredictionKind.PROBABILITY or rng.random() < 0.5 else ("no", "yes")
        return TargetSpec(kind=form, columns=(name,), labels=labels), meaning, "", _binary_shares(dna, rng)
    if form in (PredictionKind.LABEL_SET, PredictionKind.LABEL_PROBABILITIES):
        name, meaning, values = _pick(words.labels, rng)
        labels = tuple(values[at] for at in sorted(rng.permutation(len(values))[:n].tolist()))
        low, high = {"none": (0.3, 0.5), "mild": (0.2, 0.45), "strong": (0.15, 0.4)}[dna.imbalance]
        shares = tuple(np.round(rng.uniform(low, high, size=n), 3).tolist())
        columns = (name,) if form is PredictionKind.LABEL_SET else labels
        return TargetSpec(kind=form, columns=columns, labels=labels), meaning, "", shares
    name, meaning, values = _pick(words.classes, rng)
    labels = tuple(sorted(values[at] for at in rng.permutation(len(values))[:n].tolist()))
    columns = labels if form is PredictionKind.CLASS_PROBABILITIES else (name,)
    most = 5 if form is PredictionKind.RANKED_LABELS else None
    return TargetSpec(kind=form, columns=columns, labels=labels, max_items=most), meaning, "", _shares(n, dna, rng)


def _piece_target(
    dna: StructuralDNA, vocabulary: Vocabulary, rng: np.random.Generator, grid: tuple[int, int]
) -> tuple[TargetSpec, str, str, tuple[float, ...]]:
    form, words = dna.prediction_kind, vocabulary.targets
    if form is PredictionKind.MASK:
        name, _ = _pick(words.binary, rng)
        low, high = {"none": (0.4, 0.5), "mild": (0.35, 0.42), "strong": (0.28, 0.35)}[dna.imbalance]
        share = float(np.round(rng.uniform(low, high), 3))
        shape = board_shape(grid, (PIECE_SIDE, PIECE_SIDE))
        target = TargetSpec(kind=form, columns=(f"{name}_mask",), mask_shape=shape)
        return target, f"which pieces of the picture are {name.replace('_', ' ')}", "", (round(1 - share, 3), share)
    if form is PredictionKind.PERMUTATION:
        name, meaning = _pick(words.ordinal, rng)
        return TargetSpec(kind=form, columns=(f"{name}_order",)), f"the order of the entries by {meaning}", "", ()
    if dna.task_kind is TaskKind.SPAN_EXTRACTION:
        name, meaning = _pick(words.binary, rng)
        return TargetSpec(kind=form, columns=(f"{name}_span",)), f"the sentence that tells {meaning}", "", ()
    n = dna.n_classes or 3
    name, meaning, values = _pick(words.classes if form is PredictionKind.TEXT else words.labels, rng)
    labels = tuple(sorted(values[at] for at in rng.permutation(len(values))[:n].tolist()))
    if form is PredictionKind.TEXT:
        target = TargetSpec(kind=form, columns=(f"{name}_sequence",), labels=labels)
        return target, f"{meaning} for each piece, in their order", "", _shares(n, dna, rng)
    none = float(np.round(rng.uniform(0.15, 0.3), 3))
    shares = (none, *(round(share * (1 - none), 4) for share in _shares(n, dna, rng)))
    return TargetSpec(kind=form, columns=(f"{name}_boxes",), labels=labels), f"where {meaning} show", "", shares


def _value_target(
    dna: StructuralDNA, vocabulary: Vocabulary, rng: np.random.Generator
) -> tuple[TargetSpec, str, str, tuple[float, ...]]:
    values = vocabulary.targets.value
    name, unit, meaning, low, high = values[int(rng.integers(len(values)))]
    form = PredictionKind.VALUES
    if dna.metric == "angular_error":
        return TargetSpec(kind=form, columns=("azimuth", "zenith")), f"the direction that explains {meaning}", "rad", ()
    if dna.metric == "distance_percentiles":
        return TargetSpec(kind=form, columns=("true_lat", "true_lon")), f"the position behind {meaning}", "deg", ()
    if dna.metric == "laplace_log_likelihood":
        return TargetSpec(kind=form, columns=(name, "confidence"), low=0.0, high=high), meaning, unit, ()
    if dna.n_targets > 1:
        parts = ("early", "middle", "late", "final")[: dna.n_targets]
        columns = tuple(f"{name}_{part}" for part in parts)
        return TargetSpec(kind=form, columns=columns, low=low, high=high), meaning, unit, ()
    return TargetSpec(kind=form, columns=(name,), low=low, high=high), meaning, unit, ()


def _pick(entries: tuple, rng: np.random.Generator) -> tuple:  # type: ignore[type-arg]
    return tuple(entries[int(rng.integers(len(entries)))])


def _label_families(dna: StructuralDNA, target: TargetSpec) -> tuple[int, ...]:
    """Returns the family of each label where labels nest: families of two or three in a row."""
    n = len(target.labels)
    if not dna.hierarchy or dna.task_kind not in (TaskKind.MULTICLASS, TaskKind.RANKING) or n < 4:
        return ()
    return tuple(min(at // 2, n // 2 - 1) for at in range(n))


def _binary_shares(dna: StructuralDNA, rng: np.random.Generator) -> tuple[float, ...]:
    low, high = {"none": (0.4, 0.55), "mild": (0.22, 0.3), "strong": (0.12, 0.16)}[dna.imbalance]
    positive = float(np.round(rng.uniform(low, high), 3))
    return (round(1 - positive, 3), positive)


def _shares(n: int, dna: StructuralDNA, rng: np.random.Generator, *, bell: bool = False) -> tuple[float, ...]:
    """Returns shares of n labels that fall off as the DNA's imbalance says, none below a third of an even share."""
    fall = {"none": 1.0, "mild": 0.85, "strong": 0.7}[dna.imbalance]
    weights = np.maximum(fall ** np.arange(n), 0.3) * rng.uniform(0.9, 1.1, size=n)
    if bell:
        order = np.argsort(np.abs(np.arange(n) - (n - 1) / 2), kind="stable")
        weights[order] = np.sort(weights)[::-1]
    else:
        weights = weights[rng.permutation(n)]
    shares = np.maximum(weights / weights.sum(), 1 / (3 * n))
    return tuple(np.round(shares / shares.sum(), 4).tolist())


def _noise(dna: StructuralDNA, knobs: Knobs) -> NoisePlan:
    of_labels = {"none": 6.0, "mild": 4.5, "strong": 3.2}[dna.label_noise]
    of_values = {"none": 4.0, "mild": 3.0, "strong": 2.2}[dna.label_noise]
    drawn = dna.task_kind not in (TaskKind.ORDINAL,) and dna.prediction_kind is not PredictionKind.VALUES
    return NoisePlan(
        signal=round((of_labels if drawn else of_values) * knobs.slope_factor, 3),
        missing_share={"none": 0.0, "mild": 0.03, "strong": 0.08}[dna.missing_values],
        outlier_share={"none": 0.0, "mild": 0.01, "strong": 0.03}[dna.outliers],
        group_share=0.3 if dna.groups else 0.0,
        # Twins of bare tables would be equal rows.
        twin_share=0.1 if dna.near_duplicates and media_of(dna) != ("tabular",) else 0.0,
    )


def _metric_params(dna: StructuralDNA, target: TargetSpec) -> dict[str, object]:
    if dna.metric == "map_at_k":
        return {"k": target.max_items}
    if dna.metric == "laplace_log_likelihood" and target.high is not None:
        width = target.high - (target.low or 0.0)
        return {"sigma_min": round(0.02 * width, 4), "error_max": round(0.5 * width, 4)}
    return {}


def _side_columns(dna: StructuralDNA, vocabulary: Vocabulary, rng: np.random.Generator) -> tuple[SideColumn, ...]:
    """Returns a public column for each further column that the metric needs."""
    columns: list[SideColumn] = []
    categories = [vocabulary.categories[at] for at in rng.permutation(len(vocabulary.categories))]
    for role in get_metric(dna.metric).roles:
        if not role.required:
            continue
        if role.kind == "group":
            name, meaning, values = categories.pop()
            columns.append(SideColumn(role=role.name, name=name, meaning=meaning, type="category", values=values))
            continue
        flags = _FLAGS[: 2 if role.many else 1]
        columns += [
            SideColumn(role=role.name, name=name, meaning=meaning, type="boolean", values=("0", "1"))
            for name, meaning in flags
        ]
    return tuple(columns)


_WITHIN_ROW = (TaskKind.ORDERING, TaskKind.SPAN_EXTRACTION)
_FLAGS = (
    ("in_focus", "1 if the row belongs to the focus group of the study, else 0"),
    ("second_site", "1 if the row was recorded at the second site, else 0"),
)
