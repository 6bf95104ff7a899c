"""Standard errors: the fast formulas against many bootstrap resamples, and against repeated draws."""

import time
from dataclasses import replace

import numpy as np
import pytest

from sandmle.grading import MetricUndefined, get_metric, write_table
from sandmle.grading.metrics.base import Boxes, OfMeans, Truth, objects
from sandmle.grading.spread import _bootstrap, standard_error
from sandmle.records import TargetSpec
from tests.grading.examples import EXAMPLES, K, key_of, read, rule

N = 300


def _labels(rng, name):
    n_labels = 2 if name == "f1" else 3
    truth = rng.integers(0, n_labels, N)
    return truth, np.where(rng.random(N) < 0.6, truth, rng.integers(0, n_labels, N)), {}


def _chances(rng, name):
    truth = (rng.random(N) < 0.4).astype(float)
    extras = {"subgroups": rng.random((N, 2)) < 0.5} if name == "subgroup_auc" else {}
    return truth, 1 / (1 + np.exp(-(2 * truth - 1 + rng.normal(0, 1.5, N)))), extras


def _columns(rng, name):
    truth = np.eye(3)[rng.integers(0, 3, N)]
    given = truth + 3 * rng.dirichlet(np.ones(3), N)
    return truth, given / given.sum(axis=1, keepdims=True), {}


def _values(rng, name):
    n_columns = len(EXAMPLES[name].rule.target.columns)
    truth = rng.uniform(1, 3, (N, n_columns))
    given = np.abs(truth + rng.normal(0, 0.5, truth.shape))
    if name == "laplace_log_likelihood":
        return truth[:, :1] * 1000, np.column_stack([given[:, 0] * 1000, np.full(N, 300.0)]), {}
    if name == "ndcg_at_k":
        truth = rng.integers(0, 3, (N, 1)).astype(float)
        return truth, truth + rng.normal(0, 1, (N, 1)), {"group": np.repeat(np.arange(N // 6), 6)}
    extras = {"group_log_mae": {"group": rng.integers(0, 3, N)}, "masked_mae": {"scored": rng.random(N) < 0.5}}
    return truth, given, extras.get(name, {})


def _ranked(rng, name):
    labels = ("a", "b", "c")
    truth = objects([(str(label),) for label in rng.choice(labels, N)])
    return truth, objects([tuple(map(str, rng.permutation(labels))) for _ in range(N)]), {}


def _orders(rng, name):
    orders = [np.argsort(np.arange(6) + rng.normal(0, 2, 6)) for _ in range(N)]
    return objects([tuple("abcdef")] * N), objects([tuple("abcdef"[place] for place in order) for order in orders]), {}


def _texts(rng, name):
    words = np.array(["ash", "oak", "elm", "fir", ""])
    truth = objects([" ".join(rng.choice(words, 4)) for _ in range(N)])
    return truth, objects([text if rng.random() < 0.4 else " ".join(rng.choice(words, 4)) for text in truth]), {}


def _masks(rng, name):
    starts = rng.integers(0, 26, N)
    moved = (starts + rng.integers(-4, 5, N)).clip(0, 26)
    return objects([np.array([[start, 9]]) for start in starts]), objects([np.array([[at, 9]]) for at in moved]), {}


def _boxes(rng, name):
    def box(label, left, top, size, confidence):
        corners = np.array([[left, top, left + size, top + size]], dtype=float)
        return Boxes((label,), np.array([confidence]), corners)

    true = [box("xz"[pick], 2 * pick, 2 * pick, 4 - pick, 1.0) for pick in rng.integers(0, 2, N)]
    given = [box(str(rng.choice(["x", "z"])), rng.integers(0, 3), 1, 4, round(rng.random(), 2)) for _ in range(N)]
    return objects(true), objects(given), {}


MAKERS = {
    K.LABEL: _labels,
    K.PROBABILITY: _chances,
    K.LABEL_PROBABILITIES: _columns,
    K.CLASS_PROBABILITIES: _columns,
    K.VALUES: _values,
    K.RANKED_LABELS: _ranked,
    K.PERMUTATION: _orders,
    K.TEXT: _texts,
    K.MASK: _masks,
    K.BOXES: _boxes,
}


def case(name):
    """A task of 300 rows with a middling prediction: metric, truth, prediction, parameters."""
    metric, kind = get_metric(name), EXAMPLES[name].rule.target.kind
    truth, given, extras = MAKERS[kind](np.random.default_rng(sorted(EXAMPLES).index(name)), name)
    columns = ("u", "v", "w") if MAKERS[kind] is _columns else EXAMPLES[name].rule.target.columns
    labels = ("a", "b") if name == "f1" else ("a", "b", "c")
    target = TargetSpec(kind=kind, columns=columns, labels=labels, mask_shape=(6, 6))
    return (
        metric,
        Truth(truth, target, extras),
        given,
        {**metric.defaults, **({"k": 3} if "k" in metric.defaults else {})},
    )


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_fast_standard_errors_agree_with_the_bootstrap(name):
    metric, truth, given, params = case(name)
    fast = standard_error(metric, truth, given, params, rng_seed=0, resamples=200)
    groups = truth.extras["group"] if name == "ndcg_at_k" else None
    if groups is not None:
        metric = replace(metric, unit="group")
    slow = _bootstrap(metric, truth, given, params, groups, np.random.default_rng(1), 80)
    assert fast > 0
    assert fast == pytest.approx(slow, rel=0.3)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_spread_is_of_the_very_score(name):
    """Where the spread comes from means over rows, they make up the library's score."""
    metric, truth, given, params = case(name)
    means = getattr(metric.calculation.spread, "__self__", None)
    if isinstance(means, OfMeans):
        assert means.score(truth, given, params) == pytest.approx(metric.score(truth, given, params), rel=1e-12)


def test_the_error_of_auc_is_the_spread_over_fresh_draws():
    rng = np.random.default_rng(0)
    scoring, scores, errors = rule("roc_auc", K.PROBABILITY), [], []
    for _ in range(300):
        truth = (rng.random(400) < 0.3).astype(int)
        key = key_of(scoring, write_table({"id": np.arange(400), "y": truth}))
        predictions = read(key, write_table({"id": np.arange(400), "y": truth + rng.normal(0, 1.2, 400)}))
        scores.append(key.score(predictions))
        errors.append(key.standard_error(predictions, n_rows=400, rng_seed=0))
    assert np.mean(errors) == pytest.approx(np.std(scores), rel=0.12)


def test_rows_of_a_group_count_together():
    # Every row five times: the same information as the rows once.
    rng = np.random.default_rng(0)
    errors = rng.normal(0, 1, 100)
    scoring = rule("mcrmse", K.VALUES, metric_params={"group": "g"}, answer_columns=("g",))
    key = key_of(scoring, write_table({"id": np.arange(500), "y": np.zeros(500), "g": np.repeat(np.arange(100), 5)}))
    grouped = key.standard_error(
        read(key, write_table({"id": np.arange(500), "y": np.repeat(errors, 5)})), n_rows=500, rng_seed=0
    )
    single = key_of(rule("mcrmse", K.VALUES), write_table({"id": np.arange(100), "y": np.zeros(100)}))
    alone = single.standard_error(
        read(single, write_table({"id": np.arange(100), "y": errors})), n_rows=100, rng_seed=0
    )
    assert grouped == pytest.approx(alone, rel=0.02)


def test_scaling_to_the_rows_of_the_test():
    example = EXAMPLES["rmse"]
    key = key_of(example.rule, example.answers)
    predictions = read(key, example.bad)
    one, four = (key.standard_error(predictions, n_rows=n_rows, rng_seed=0) for n_rows in (100, 400))
    assert one == pytest.approx(2 * four)


def test_the_bootstrap_depends_on_its_rng_seed_only():
    metric, truth, given, params = case("weighted_roc_auc")
    errors = [standard_error(metric, truth, given, params, rng_seed=seed, resamples=20) for seed in (3, 3, 4)]
    assert errors[0] == errors[1] != errors[2]


def test_a_bootstrap_that_mostly_misses_a_class_is_undefined():
    metric = get_metric("weighted_roc_auc")
    truth = Truth(np.array([1.0, 0.0]), TargetSpec(kind=K.PROBABILITY, columns=("y",)))
    # Half of all resamples of two rows hold one class only; 18 of these 40 do not.
    with pytest.raises(MetricUndefined, match="most resamples"):
        standard_error(metric, truth, np.array([0.1, 0.2]), metric.defaults, rng_seed=0, resamples=40)


def test_one_row_has_no_spread():
    key = key_of(rule("rmse", K.VALUES), "id y\na 1")
    with pytest.raises(MetricUndefined, match="one row"):
        key.standard_error(read(key, "id y\na 2"), n_rows=10, rng_seed=0)


@pytest.mark.parametrize("name", ["roc_auc", "log_loss", "rmse"])
def test_errors_of_3000_rows_are_cheap(name):
    rng = np.random.default_rng(0)
    scoring = EXAMPLES[name].rule
    truth = rng.normal(0, 1, 3000) if name == "rmse" else (rng.random(3000) < 0.5).astype(int)
    key = key_of(scoring, write_table({"id": np.arange(3000), "y": truth}))
    predictions = read(key, write_table({"id": np.arange(3000), "y": rng.random(3000)}))
    start_s = time.process_time()
    for _ in range(5):
        key.standard_error(predictions, n_rows=1000, rng_seed=0)
    assert (time.process_time() - start_s) / 5 < 0.05  # a few milliseconds in truth
