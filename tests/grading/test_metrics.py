"""Every metric: its best value, its direction, its name."""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.errors import ConfigError
from sandmle.grading import Metric, MetricUndefined, get_metric, metric_names, write_table
from sandmle.grading.metrics.base import OfMeans
from sandmle.records import Direction, PredictionKind
from sandmle.seeds import catalogue
from tests.grading.examples import EXAMPLES, K, key_of, read, refused, rule, score


def test_every_metric_has_an_example():
    assert sorted(EXAMPLES) == list(metric_names())


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_g35_a_perfect_submission_is_better_than_a_bad_one(name):
    example = EXAMPLES[name]
    metric = get_metric(name)
    perfect, bad = (score(example.rule, example.answers, text) for text in (example.perfect, example.bad))
    assert perfect == pytest.approx(metric.best, abs=1e-12)
    assert metric.direction.better(perfect, bad)


def test_g35_a_metric_without_direction_fails_at_load():
    fields = {"name": "m", "title": "m", "kinds": (K.VALUES,), "best": 0.0, "words": "", "formula": ""}
    calculation = OfMeans(lambda truth, prediction, params: prediction)
    with pytest.raises(TypeError, match="direction"):
        Metric(**fields, calculation=calculation)
    with pytest.raises(ConfigError, match="no direction"):
        Metric(**fields, calculation=calculation, direction=None)


def test_g37_the_direction_is_the_metrics_and_a_task_cannot_turn_it():
    with pytest.raises(ConfigError, match="'accuracy' is to maximize, the task says minimize"):
        key_of(rule("accuracy", K.LABEL, labels=("a", "b"), direction=Direction.MINIMIZE), "id y\nr a")


@pytest.mark.parametrize("record", catalogue(), ids=lambda record: record.id)
def test_every_seed_names_a_metric_that_fits_it(record):
    metric = get_metric(record.dna.metric)
    assert metric.direction is record.dna.direction
    assert record.dna.prediction_kind in metric.kinds


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_descriptions_are_whole(name):
    metric = get_metric(name)
    assert metric.name == name
    assert metric.title
    assert metric.words.endswith(".")
    assert metric.formula
    assert metric.formula.count("{") == metric.formula.count("}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("roc_acu", "unknown metric 'roc_acu'; did you mean 'roc_auc'"),
        ("custom", "evaluator.py"),
        ("math:pi", "points to a float, not to a Metric"),
        ("no_such_module:M", "cannot be loaded"),
    ],
)
def test_a_wrong_name_is_one_sentence(name, message):
    with pytest.raises(ConfigError, match=message):
        get_metric(name)


def test_dotted_path_is_the_escape_hatch():
    assert get_metric("sandmle.grading.metrics.auc:ROC_AUC").name == "roc_auc"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kk": 3}, "unknown parameter of metric 'ndcg_at_k' 'kk'"),
        ({"k": 3}, "needs the parameter 'group'"),
        ({"group": "q"}, "name it in answer_columns"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        key_of(rule("ndcg_at_k", K.VALUES, metric_params=params), "id y q\na 1 x")


def test_a_metric_refuses_a_kind_that_it_does_not_take():
    with pytest.raises(ConfigError, match="'rmse' takes values, the target is text"):
        key_of(rule("rmse", K.TEXT), "id y\na 1")


# Undefined: the task's fault.


@pytest.mark.parametrize("metric", ["roc_auc", "weighted_roc_auc"])
@pytest.mark.parametrize("label", ["0", "1"])
def test_g01_one_class_gives_no_auc(metric, label):
    answers = f"id y\na {label}\nb {label}\nc {label}"
    with pytest.raises(MetricUndefined, match="one class only"):
        score(rule(metric, K.PROBABILITY), answers, "id y\na 0.2\nb 0.5\nc 0.9")


@pytest.mark.parametrize("kind", [K.CLASS_PROBABILITIES, K.LABEL_PROBABILITIES])
def test_g02_a_class_missing_from_the_answers_makes_mean_auc_undefined(kind):
    answers = "id k0 k1 k2\na 1 0 0\nb 0 1 0\nc 0 1 0\nd 1 0 0"
    submission = "id k0 k1 k2\na 0.7 0.2 0.1\nb 0.2 0.6 0.2\nc 0.1 0.8 0.1\nd 0.5 0.3 0.2"
    with pytest.raises(MetricUndefined, match="column 'k2' hold one class only"):
        score(rule("mean_column_roc_auc", kind, ("k0", "k1", "k2")), answers, submission)


@pytest.mark.parametrize("cell", ["2", "1"])
def test_g14_kappa_of_constant_answers_is_undefined(cell):
    labels = ("0", "1", "2")
    with pytest.raises(MetricUndefined, match="kappa"):
        score(rule("qwk", K.LABEL, labels=labels), "id y\na 2\nb 2\nc 2", f"id y\na {cell}\nb {cell}\nc {cell}")


def test_g14_kappa_of_a_constant_prediction_is_0():
    assert score(rule("qwk", K.LABEL, labels=("0", "1")), "id y\na 0\nb 1", "id y\na 1\nb 1") == 0.0


def test_g16_matthews_correlation_of_one_class_is_undefined():
    scoring = rule("mcc", K.LABEL, labels=("0", "1"))
    with pytest.raises(MetricUndefined, match="Matthews"):
        score(scoring, "id y\na 1\nb 1\nc 1", "id y\na 1\nb 1\nc 1")
    assert score(scoring, "id y\na 1\nb 0\nc 1", "id y\na 1\nb 1\nc 1") == 0.0


@pytest.mark.parametrize(
    ("answers", "submission"),
    [("id y\na 5\nb 5\nc 5", "id y\na 5\nb 5\nc 6"), ("id y\na 5", "id y\na 4")],
)
def test_g17_r2_of_constant_answers_is_undefined(answers, submission):
    with pytest.raises(MetricUndefined, match="R2"):
        score(rule("r2", K.VALUES), answers, submission)


@pytest.mark.parametrize("metric", ["pearson", "mean_column_spearman"])
def test_constant_predictions_do_not_correlate_and_constant_answers_cannot(metric):
    assert score(rule(metric, K.VALUES), "id y\na 1\nb 2\nc 5", "id y\na 0.1\nb 0.1\nc 0.1") == 0.0
    with pytest.raises(MetricUndefined, match="constant"):
        score(rule(metric, K.VALUES), "id y\na 2\nb 2\nc 2", "id y\na 1\nb 2\nc 3")


@pytest.mark.parametrize(
    ("metric", "kind", "more", "answers", "submission"),
    [
        ("f1", K.LABEL, {"labels": ("0", "1")}, "id y\na 0\nb 0", "id y\na 0\nb 1"),
        ("probabilistic_f1", K.PROBABILITY, {}, "id y\na 0\nb 0", "id y\na 0\nb 1"),
        ("micro_f1", K.LABEL_SET, {"labels": ("p",)}, "id y\na -\nb -", "id y\na p\nb -"),
        ("macro_f1", K.LABEL_SET, {"labels": ("p",)}, "id y\na -\nb -", "id y\na -\nb -"),
        ("lwlrap", K.LABEL_PROBABILITIES, {}, "id y\na 0\nb 0", "id y\na 0\nb 1"),
        ("mape", K.VALUES, {}, "id y\na 0\nb 1", "id y\na 0\nb 1"),
        ("mean_column_rmsle", K.VALUES, {}, "id y\na 5\nb 1", None),
        ("c_index", K.VALUES, {}, "id y\na 5\nb 5", "id y\na 1\nb 2"),
        ("kendall_tau", K.PERMUTATION, {}, "id y\na p\nb q", "id y\na p\nb q"),
        ("global_dice", K.MASK, {"mask_shape": (2, 2)}, "id y\na -\nb -", "id y\na 1_1\nb -"),
        ("box_map", K.BOXES, {}, "id y\na -\nb -", "id y\na -\nb -"),
        ("point_f1", K.BOXES, {}, "id y\na -\nb -", "id y\na -\nb -"),
        ("span_f1", K.TEXT, {}, "id y\na -\nb -", "id y\na x\nb -"),
        ("normalised_levenshtein", K.TEXT, {}, "id y\na -\nb -", "id y\na x\nb -"),
    ],
)
def test_answers_without_a_number_are_undefined_never_0(metric, kind, more, answers, submission):
    if submission is None:
        refused(key_of(rule(metric, kind, **more), answers), "id y\na -5\nb 1")
        return
    with pytest.raises(MetricUndefined):
        score(rule(metric, kind, **more), answers, submission)


# Written policies.


def test_g05_certain_and_wrong_is_finite_and_pinned():
    scoring, answers = rule("log_loss", K.PROBABILITY), "id y\na 0\nb 1"
    assert score(scoring, answers, "id y\na 0\nb 0") == pytest.approx(17.26939, abs=1e-5)
    assert score(scoring, answers, "id y\na 0.0\nb 0.0") == score(scoring, answers, "id y\na 0\nb 0")
    wide = rule("log_loss", K.CLASS_PROBABILITIES, ("n", "p"))
    assert score(wide, "id n p\na 1 0\nb 0 1", "id n p\na 1 0\nb 1 0") == pytest.approx(17.26939, abs=1e-5)


@pytest.mark.parametrize("metric", ["log_loss", "kl_divergence"])
@pytest.mark.parametrize(("row", "total"), [("0.2 0.3", "0.5"), ("0 0", "0"), ("0.9 0.9", "1.8")])
def test_g04_rows_that_do_not_sum_to_one_are_refused(metric, row, total):
    key = key_of(rule(metric, K.CLASS_PROBABILITIES, ("u", "v")), "id u v\na 0 1\nb 1 0")
    problem = refused(key, f"id u v\na 0.5 0.5\nb {row}")
    assert problem.status == "bad_values"
    assert f"line 3 (id 'b') sums to {total} over the 2 class columns; it must sum to 1" in problem.message


def test_g04_rounded_rows_are_accepted_and_not_rescaled():
    columns = ("u", "v", "w")
    key = key_of(rule("log_loss", K.CLASS_PROBABILITIES, columns), "id u v w\na 1 0 0")
    assert key.score(read(key, "id u v w\na 0.3333 0.3333 0.3333")) == pytest.approx(-math.log(0.3333))


def test_g13_f1_counts_labels_of_answers_and_submission():
    scoring = rule("macro_f1", K.LABEL, labels=("0", "1"))
    key = key_of(scoring, "id y\na 0\nb 0\nc 1")
    problem = refused(key, "id y\na 0\nb 2\nc 1")
    assert "holds '2'; the labels are '0', '1'" in problem.message
    wide = key_of(rule("macro_f1", K.LABEL, labels=("0", "1", "2")), "id y\na 0\nb 0\nc 1")
    assert wide.score(read(wide, "id y\na 0\nb 2\nc 1")) == pytest.approx(0.5556, abs=1e-4)
    assert wide.score(read(wide, "id y\na 0\nb 0\nc 1")) == 1.0


def test_g19_a_repeated_item_is_credited_once():
    scoring = rule("map_at_k", K.RANKED_LABELS, labels=("a", "b"), max_items=5)
    assert score(scoring, "id y\nr a", "id y\nr a_a_a_a_a") == 1.0
    assert score(scoring, "id y\nr a_b", "id y\nr a_a_a_a_b") == pytest.approx((1 + 2 / 5) / 2)


def test_g19_map_stays_within_0_and_1():
    rng = np.random.default_rng(0)
    labels = tuple("abcd")
    for _ in range(50):
        wanted = "_".join(sorted({*rng.choice(labels, rng.integers(1, 5))}))
        given = "_".join(rng.choice(labels, rng.integers(1, 4)))
        value = score(
            rule("map_at_k", K.RANKED_LABELS, labels=labels, max_items=3), f"id y\nr {wanted}", f"id y\nr {given}"
        )
        assert 0 <= value <= 1


def test_g20_the_divisor_is_the_smaller_of_k_and_the_relevant():
    scoring = rule("map_at_k", K.RANKED_LABELS, labels=("a", "b", "c"), max_items=2)
    assert score(scoring, "id y\nr a_b_c", "id y\nr a_b") == 1.0
    assert score(scoring, "id y\nr a_b_c\ns a", "id y\nr a_b\ns -") == 0.5


def test_more_items_than_allowed_are_refused():
    key = key_of(rule("map_at_k", K.RANKED_LABELS, labels=("a", "b", "c"), max_items=2), "id y\nr a")
    assert "holds 3 labels; at most 2" in refused(key, "id y\nr a_b_c").message


def test_label_sets_may_be_open():
    for metric in ("micro_f1", "macro_f1"):
        assert score(rule(metric, K.LABEL_SET), "id y\na p_q\nb q", "id y\na q_p\nb q") == 1.0
        assert score(rule(metric, K.LABEL_SET), "id y\na p_q\nb q", "id y\na q_z\nb q") < 1.0


def test_macro_f1_of_answers_without_labels_is_undefined_whatever_is_given():
    with pytest.raises(MetricUndefined):
        score(rule("macro_f1", K.LABEL_SET, labels=("p",)), "id y\na -\nb -", "id y\na p\nb -")


def test_log_loss_of_shares_weighs_each_label_by_its_share():
    scoring = rule("log_loss", K.CLASS_PROBABILITIES, ("u", "v", "w"))
    found = score(scoring, "id u v w\na 0.25 0.75 0\nb 0 0 1", "id u v w\na 0.5 0.4 0.1\nb 0.2 0.2 0.6")
    assert found == pytest.approx(-(0.25 * math.log(0.5) + 0.75 * math.log(0.4) + math.log(0.6)) / 2)


def test_many_labels_and_near_constant_values_make_no_noise():
    labels = tuple(f"l{number}" for number in range(40))
    truth = "id y\n" + "\n".join(f"{row} {label}" for row, label in enumerate(labels))
    for metric in ("accuracy", "error_rate", "macro_f1", "micro_f1", "qwk", "mcc"):
        score(rule(metric, K.LABEL, labels=labels), truth, truth)
    score(rule("accuracy", K.TEXT), truth, truth)
    wide = rule("log_loss", K.CLASS_PROBABILITIES, labels)
    shares = np.eye(40)
    table = {"id": np.arange(40), **{label: shares[:, place] for place, label in enumerate(labels)}}
    near = {name: column * 0.9995 if name != "id" else column for name, column in table.items()}
    assert score(wide, write_table(table), write_table(near)) == pytest.approx(-math.log(0.9995))
    score(rule("pearson", K.VALUES), "id y\na 1\nb 2\nc 4", "id y\na 1\nb 1\nc 1.0000000000000002")


def test_grading_in_threads_leaves_the_warning_filters_as_they_were():
    labels = tuple(f"l{number}" for number in range(40))
    truth = "id y\n" + "\n".join(f"{row} {label}" for row, label in enumerate(labels))
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as threads:
        scores = list(threads.map(lambda _: score(rule("mcc", K.LABEL, labels=labels), truth, truth), range(40)))
    assert scores == pytest.approx([1.0] * 40)
    assert warnings.filters == before


_EXTREMES = (1e30, -1e30, 1e29, 5e-324, -5e-324, 1e-300, 0.0, -0.0, 1.0, 1.0 + 2**-52, -1.0, 1e15)
_OF_NUMBERS = sorted(
    name
    for name, example in EXAMPLES.items()
    if example.rule.target.kind in (K.VALUES, K.PROBABILITY, K.LABEL_PROBABILITIES)
)


@given(st.sampled_from(_OF_NUMBERS), st.lists(st.sampled_from(_EXTREMES), min_size=8, max_size=8))
def test_extreme_numbers_give_finite_scores(name, numbers):
    example = EXAMPLES[name]
    key = key_of(example.rule, example.answers)
    columns = example.rule.target.columns
    if get_metric(name).numbers != "finite":
        numbers = [min(abs(number), 1.0) for number in numbers]
    given_columns = {column: (numbers[place * 4 :] * 2)[: len(key.ids)] for place, column in enumerate(columns)}
    predictions = read(key, write_table({"id": list(key.ids), **given_columns}))
    assert math.isfinite(key.score(predictions))


def test_prediction_kinds_all_have_a_metric():
    assert {kind for name in metric_names() for kind in get_metric(name).kinds} == set(PredictionKind)
