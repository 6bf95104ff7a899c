"""One small task for every metric, with a perfect and a bad submission, and helpers to build tasks in tests."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandmle.grading import AnswerKey, Predictions, ScoringRule, SubmissionProblem, get_metric, read_submission
from sandmle.records import (
    Direction,
    Modality,
    PredictionKind,
    Provenance,
    StructuralDNA,
    TargetSpec,
    TaskKind,
    TaskSpec,
    Threshold,
    Thresholds,
)
from sandmle.tasks import Bundle, BundleDraft, write_bundle

K = PredictionKind


def rule(metric: str, kind: PredictionKind, columns: str | tuple[str, ...] = "y", **more: Any) -> ScoringRule:
    names = (columns,) if isinstance(columns, str) else columns
    target = {name: more.pop(name) for name in ("labels", "low", "high", "max_items", "mask_shape") if name in more}
    return ScoringRule(
        metric=metric,
        direction=more.pop("direction", get_metric(metric).direction),
        id_column="id",
        target=TargetSpec(kind=kind, columns=names, **target),
        **more,
    )


def csv(text: str) -> bytes:
    """One row a line, cells separated by spaces; ``_`` stands for a space inside a cell, ``-`` for an empty cell."""
    rows = [
        ["" if cell == "-" else cell.replace("_", " ") for cell in line.split()] for line in text.strip().splitlines()
    ]
    return "".join(",".join(row) + "\n" for row in rows).encode()


def key_of(scoring: ScoringRule, answers: str | bytes) -> AnswerKey:
    return AnswerKey.parse(scoring, csv(answers) if isinstance(answers, str) else answers)


def read(key: AnswerKey, submission: str | bytes) -> Predictions:
    outcome = read_submission(key, csv(submission) if isinstance(submission, str) else submission)
    assert isinstance(outcome, Predictions), outcome
    return outcome


def refused(key: AnswerKey, submission: str | bytes) -> SubmissionProblem:
    outcome = read_submission(key, csv(submission) if isinstance(submission, str) else submission)
    assert isinstance(outcome, SubmissionProblem), "the submission was accepted"
    return outcome


def score(scoring: ScoringRule, answers: str | bytes, submission: str | bytes) -> float:
    key = key_of(scoring, answers)
    return key.score(read(key, submission))


def thresholds(median: float, gold: float) -> Thresholds:
    step = (gold - median) / 3
    borders = [Threshold(score=median + step * number, standard_error=0.01) for number in range(4)]
    return Thresholds(preset="calibrated", median=borders[0], bronze=borders[1], silver=borders[2], gold=borders[3])


def task(folder: Path, scoring: ScoringRule, answers: bytes, borders: Thresholds | None = None) -> Bundle:
    """Writes a task that consists of little more than its answers."""
    dna = StructuralDNA(
        modalities=(Modality.TABULAR,),
        task_kind=TaskKind.REGRESSION,
        prediction_kind=scoring.target.kind,
        metric=scoring.metric,
        direction=scoring.direction,
    )
    spec = TaskSpec(
        task_id="tiny",
        title="Tiny",
        domain="test",
        modalities=(Modality.TABULAR,),
        task_kind=TaskKind.REGRESSION,
        columns=(),
        n_train=1,
        n_public=0,
        n_private=1,
        thresholds=borders or thresholds(*((0.5, 0.9) if scoring.direction is Direction.MAXIMIZE else (0.9, 0.5))),
        dna=dna,
        provenance=Provenance(author="test", author_version="1", rng_seed=0),
        **{name: getattr(scoring, name) for name in ScoringRule.model_fields if name in TaskSpec.model_fields},
    )
    files = {"description.md": b"", "public/train.csv": b"", "public/test.csv": b""}
    files |= {"public/sample_submission.csv": b"", "private/answers.csv": answers}
    return write_bundle(BundleDraft(spec=spec, files=files), folder)


@dataclass(frozen=True)
class Example:
    """A task with a perfect and a bad submission, in the notation of :func:`csv`."""

    rule: ScoringRule
    answers: str
    perfect: str
    bad: str


_LABELS = ("cat", "dog", "owl")
_SHAPE = (4, 4)
_NUMBERS = Example(
    rule("rmse", K.VALUES), "id y\na 1\nb 2\nc 4\nd 8", "id y\na 1\nb 2\nc 4\nd 8", "id y\na 4\nb 9\nc 2\nd 1"
)


def _numbers(metric: str, **more: Any) -> Example:
    return Example(rule(metric, K.VALUES, **more), _NUMBERS.answers, _NUMBERS.perfect, _NUMBERS.bad)


def _with(metric: str, columns: str, role: str, flags: str, **more: Any) -> Example:
    answers = "\n".join(
        f"{line} {flag}" for line, flag in zip(_NUMBERS.answers.splitlines(), [columns, *flags], strict=True)
    )
    params = {role: columns, **more}
    scoring = rule(metric, K.VALUES, metric_params=params, answer_columns=(columns,))
    return Example(scoring, answers, _NUMBERS.perfect, _NUMBERS.bad)


def _labels(metric: str) -> Example:
    truth = "id y\na cat\nb dog\nc owl\nd cat"
    return Example(rule(metric, K.LABEL, labels=_LABELS), truth, truth, "id y\na dog\nb cat\nc cat\nd owl")


def _binary(metric: str, **more: Any) -> Example:
    extra = more.pop("extra", "")
    answers = "id y" + (f" {extra}" if extra else "")
    for row, label, flag in (("a", 1, 1), ("b", 0, 1), ("c", 1, 0), ("d", 0, 0)):
        answers += f"\n{row} {label}" + (f" {flag}" if extra else "")
    scoring = rule(metric, K.PROBABILITY, labels=("0", "1"), answer_columns=(extra,) if extra else (), **more)
    return Example(scoring, answers, "id y\na 1\nb 0\nc 1\nd 0", "id y\na 0.2\nb 0.9\nc 0.1\nd 0.8")


def _columns(metric: str, kind: PredictionKind) -> Example:
    truth = "id u v\na 1 0\nb 0 1\nc 1 0\nd 0 1"
    bad = "id u v\na 0.2 0.8\nb 0.9 0.1\nc 0.3 0.7\nd 0.6 0.4"
    return Example(rule(metric, kind, ("u", "v")), truth, truth, bad)


def _masks(metric: str) -> Example:
    truth = "id y\na 1_4\nb 6_2_10_2\nc -"
    return Example(rule(metric, K.MASK, mask_shape=_SHAPE), truth, truth, "id y\na 13_2\nb 6_1\nc 1_16")


def _boxes(metric: str) -> Example:
    truth = "id y\na x_1_0_0_4_4_z_1_5_5_2_2\nb x_1_1_1_3_3\nc -"
    bad = "id y\na z_0.9_0_0_4_4\nb x_0.5_7_7_3_3\nc x_0.8_0_0_1_1"
    return Example(rule(metric, K.BOXES, labels=("x", "z")), truth, truth, bad)


def _texts(metric: str) -> Example:
    truth = "id y\na the_big_dog\nb owl\nc -"
    return Example(rule(metric, K.TEXT), truth, truth, "id y\na a_cat\nb -\nc something")


EXAMPLES: dict[str, Example] = {
    "accuracy": _labels("accuracy"),
    "error_rate": _labels("error_rate"),
    "macro_f1": _labels("macro_f1"),
    "micro_f1": _labels("micro_f1"),
    "qwk": _labels("qwk"),
    "mcc": _labels("mcc"),
    "f1": Example(
        rule("f1", K.LABEL, labels=("no", "yes")),
        "id y\na yes\nb no\nc yes",
        "id y\na yes\nb no\nc yes",
        "id y\na no\nb yes\nc yes",
    ),
    "roc_auc": _binary("roc_auc"),
    "weighted_roc_auc": _binary("weighted_roc_auc"),
    "log_loss": _binary("log_loss"),
    "weighted_log_loss": _binary("weighted_log_loss"),
    "probabilistic_f1": _binary("probabilistic_f1"),
    "subgroup_auc": _binary("subgroup_auc", extra="g", metric_params={"subgroups": ["g"]}),
    "mean_column_roc_auc": _columns("mean_column_roc_auc", K.LABEL_PROBABILITIES),
    "flattened_roc_auc": _columns("flattened_roc_auc", K.LABEL_PROBABILITIES),
    "lwlrap": _columns("lwlrap", K.LABEL_PROBABILITIES),
    "kl_divergence": _columns("kl_divergence", K.CLASS_PROBABILITIES),
    "rmse": _NUMBERS,
    "mae": _numbers("mae"),
    "rounded_mae": _numbers("rounded_mae"),
    "mcrmse": _numbers("mcrmse"),
    "mean_column_rmsle": _numbers("mean_column_rmsle"),
    "r2": _numbers("r2"),
    "mape": _numbers("mape"),
    "smape": _numbers("smape"),
    "pearson": _numbers("pearson"),
    "mean_column_spearman": _numbers("mean_column_spearman"),
    "c_index": _numbers("c_index"),
    "masked_mae": _with("masked_mae", "s", "scored", "1101"),
    "group_log_mae": _with("group_log_mae", "g", "group", "ppqq"),
    "ndcg_at_k": _with("ndcg_at_k", "g", "group", "ppqq", k=2),
    "laplace_log_likelihood": Example(
        rule("laplace_log_likelihood", K.VALUES, ("y", "sd")),
        "id y\na 2000\nb 2500",
        "id y sd\na 2000 70\nb 2500 70",
        "id y sd\na 2300 70\nb 2100 400",
    ),
    "angular_error": Example(
        rule("angular_error", K.VALUES, ("azimuth", "zenith")),
        "id azimuth zenith\na 0.5 1.0\nb 3.0 2.0",
        "id azimuth zenith\na 0.5 1.0\nb 3.0 2.0",
        "id azimuth zenith\na 2.5 1.0\nb 0.0 1.0",
    ),
    "distance_percentiles": Example(
        rule("distance_percentiles", K.VALUES, ("lat", "lon")),
        "id lat lon\na 37.4 -122.1\nb 37.5 -122.2",
        "id lat lon\na 37.4 -122.1\nb 37.5 -122.2",
        "id lat lon\na 37.5 -122.1\nb 37.5 -122.0",
    ),
    "map_at_k": Example(
        rule("map_at_k", K.RANKED_LABELS, max_items=3, labels=_LABELS),
        "id y\na cat\nb dog_owl",
        "id y\na cat\nb owl_dog",
        "id y\na dog_owl_cat\nb cat",
    ),
    "kendall_tau": Example(
        rule("kendall_tau", K.PERMUTATION), "id y\na p_q_r\nb s_t", "id y\na p_q_r\nb s_t", "id y\na r_p_q\nb t_s"
    ),
    "levenshtein": _texts("levenshtein"),
    "normalised_levenshtein": _texts("normalised_levenshtein"),
    "word_jaccard": _texts("word_jaccard"),
    "span_f1": _texts("span_f1"),
    "mean_dice": _masks("mean_dice"),
    "global_dice": _masks("global_dice"),
    "mask_f_beta": _masks("mask_f_beta"),
    "mask_precision": _masks("mask_precision"),
    "dice_hausdorff": _masks("dice_hausdorff"),
    "box_map": _boxes("box_map"),
    "point_f1": _boxes("point_f1"),
}
