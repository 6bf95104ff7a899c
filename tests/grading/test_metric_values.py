"""Values of metrics against scikit-learn, scipy, or a hand-made figure."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from sandmle.grading import get_metric
from sandmle.grading.metrics.base import Truth, objects
from sandmle.grading.metrics.masks import mask_pixels
from sandmle.records import TargetSpec
from tests.grading.examples import K, rule, score

RNG = np.random.default_rng(7)
N = 400


def value(metric, kind, truth, prediction, *, labels=(), extras=None, **params):
    columns = tuple(f"c{number}" for number in range(truth.shape[1])) if truth.ndim == 2 else ("y",)
    found = get_metric(metric)
    target = TargetSpec(kind=kind, columns=columns, labels=labels)
    return found.score(Truth(truth, target, extras or {}), prediction, {**found.defaults, **params})


TRUE_LABELS = RNG.integers(0, 4, N)
LABELS = np.where(RNG.random(N) < 0.6, TRUE_LABELS, RNG.integers(0, 4, N))
TRUE_BINARY = (RNG.random(N) < 0.3).astype(float)
SCORES = (TRUE_BINARY + RNG.normal(0, 1, N)).round(1)  # with ties
CHANCES = 1 / (1 + np.exp(-SCORES))
TRUE_VALUES = RNG.normal(10, 3, (N, 3)).round(1)
VALUES = TRUE_VALUES + RNG.normal(0, 2, (N, 3)).round(1)
TRUE_FLAGS = (RNG.random((N, 5)) < 0.4).astype(float)
FLAGS = (TRUE_FLAGS + RNG.normal(0, 1, (N, 5))).round(1)
SHARES = RNG.dirichlet(np.ones(4), N)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("accuracy", sk.accuracy_score(TRUE_LABELS, LABELS)),
        ("error_rate", 1 - sk.accuracy_score(TRUE_LABELS, LABELS)),
        ("macro_f1", sk.f1_score(TRUE_LABELS, LABELS, average="macro")),
        ("micro_f1", sk.f1_score(TRUE_LABELS, LABELS, average="micro")),
        ("qwk", sk.cohen_kappa_score(TRUE_LABELS, LABELS, weights="quadratic")),
        ("mcc", sk.matthews_corrcoef(TRUE_LABELS, LABELS)),
    ],
)
def test_labels_agree_with_scikit_learn(metric, expected):
    found = value(metric, K.LABEL, TRUE_LABELS, LABELS, labels=tuple("abcd"))
    assert found == pytest.approx(expected, abs=1e-12)


def test_binary_f1_agrees_with_scikit_learn():
    true, given = (TRUE_LABELS > 1).astype(int), (LABELS > 1).astype(int)
    found = value("f1", K.LABEL, true, given, labels=("n", "p"))
    assert found == pytest.approx(sk.f1_score(true, given))


def test_label_sets_agree_with_scikit_learn():
    true, given = TRUE_FLAGS > 0, FLAGS > 0.8
    names = tuple("vwxyz")
    as_sets = [objects([tuple(np.array(names)[row]) for row in flags]) for flags in (true, given)]
    for average in ("micro", "macro"):
        found = value(f"{average}_f1", K.LABEL_SET, *as_sets, labels=names)
        assert found == pytest.approx(sk.f1_score(true, given, average=average))


def test_areas_agree_with_scikit_learn():
    assert value("roc_auc", K.PROBABILITY, TRUE_BINARY, SCORES) == pytest.approx(sk.roc_auc_score(TRUE_BINARY, SCORES))
    kind = K.LABEL_PROBABILITIES
    for metric, average in (("mean_column_roc_auc", "macro"), ("flattened_roc_auc", "micro")):
        expected = sk.roc_auc_score(TRUE_FLAGS, FLAGS, average=average)
        assert value(metric, kind, TRUE_FLAGS, FLAGS) == pytest.approx(expected)


def test_weighted_auc_with_equal_weights_is_auc():
    found = value("weighted_roc_auc", K.PROBABILITY, TRUE_BINARY, SCORES, weights=(1.0, 1.0))
    assert found == pytest.approx(sk.roc_auc_score(TRUE_BINARY, SCORES))


def test_weighted_auc_of_chance_by_hand():
    # The curve is the diagonal. Band 0 to 0.4: 0.4 * 0.6 + 0.08 = 0.32, times 2; band 0.4 to 1: 0.18. Over 2*0.4 + 0.6.
    found = value("weighted_roc_auc", K.PROBABILITY, TRUE_BINARY, np.zeros(N))
    assert found == pytest.approx((2 * 0.32 + 0.18) / 1.4)


def test_subgroup_auc_by_hand():
    groups = RNG.random((N, 2)) < 0.4
    found = value("subgroup_auc", K.PROBABILITY, TRUE_BINARY, SCORES, extras={"subgroups": groups})
    positive = TRUE_BINARY == 1
    views = np.empty((2, 3))
    for number in range(2):
        inside = groups[:, number]
        for view, rows in enumerate(
            (inside, (inside & ~positive) | (~inside & positive), (inside & positive) | (~inside & ~positive))
        ):
            views[number, view] = sk.roc_auc_score(TRUE_BINARY[rows], SCORES[rows])
    means = np.mean(views**-5.0, axis=0) ** (-1 / 5)
    assert found == pytest.approx(0.25 * sk.roc_auc_score(TRUE_BINARY, SCORES) + 0.25 * means.sum())


def test_log_losses_agree_with_scikit_learn():
    assert value("log_loss", K.PROBABILITY, TRUE_BINARY, CHANCES) == pytest.approx(sk.log_loss(TRUE_BINARY, CHANCES))
    one_hot = np.eye(4)[TRUE_LABELS]
    found = value("log_loss", K.CLASS_PROBABILITIES, one_hot, SHARES)
    assert found == pytest.approx(sk.log_loss(TRUE_LABELS, SHARES))


def test_weighted_log_loss_agrees_with_scikit_learn():
    weights = RNG.random(N)
    found = value(
        "weighted_log_loss", K.PROBABILITY, TRUE_BINARY, CHANCES, extras={"weight": weights}, positive_weight=2.0
    )
    expected = sk.log_loss(TRUE_BINARY, CHANCES, sample_weight=weights * np.where(TRUE_BINARY == 1, 2, 1))
    assert found == pytest.approx(expected)
    many = value(
        "weighted_log_loss",
        K.LABEL_PROBABILITIES,
        TRUE_FLAGS,
        np.full_like(FLAGS, 0.25),
        column_weights=[1, 0, 0, 0, 0],
    )
    assert many == pytest.approx(sk.log_loss(TRUE_FLAGS[:, 0], np.full(N, 0.25)))


def test_kl_divergence_agrees_with_scipy():
    true = RNG.dirichlet(np.ones(4), N)
    expected = np.mean([stats.entropy(row, given) for row, given in zip(true, SHARES, strict=True)])
    assert value("kl_divergence", K.CLASS_PROBABILITIES, true, SHARES) == pytest.approx(expected)


def test_probabilistic_f1_of_hard_predictions_is_f1():
    given = (SCORES > 0.5).astype(float)
    found = value("probabilistic_f1", K.PROBABILITY, TRUE_BINARY, given)
    assert found == pytest.approx(sk.f1_score(TRUE_BINARY, given))


def test_lwlrap_agrees_with_scikit_learn():
    weights = TRUE_FLAGS.sum(axis=1)
    some = weights > 0
    expected = sk.label_ranking_average_precision_score(TRUE_FLAGS[some], FLAGS[some], sample_weight=weights[some])
    assert value("lwlrap", K.LABEL_PROBABILITIES, TRUE_FLAGS, FLAGS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("rmse", np.sqrt(np.mean((VALUES - TRUE_VALUES) ** 2))),
        ("mae", sk.mean_absolute_error(TRUE_VALUES, VALUES)),
        ("mcrmse", sk.root_mean_squared_error(TRUE_VALUES, VALUES)),
        ("r2", sk.r2_score(TRUE_VALUES, VALUES)),
        ("mape", sk.mean_absolute_percentage_error(TRUE_VALUES, VALUES)),
        ("rounded_mae", sk.mean_absolute_error(TRUE_VALUES.round(), VALUES.round())),
        ("pearson", np.mean([stats.pearsonr(*pair)[0] for pair in zip(TRUE_VALUES.T, VALUES.T, strict=True)])),
        (
            "mean_column_spearman",
            np.mean([stats.spearmanr(*pair)[0] for pair in zip(TRUE_VALUES.T, VALUES.T, strict=True)]),
        ),
    ],
)
def test_numbers_agree_with_scikit_learn_and_scipy(metric, expected):
    assert value(metric, K.VALUES, TRUE_VALUES, VALUES) == pytest.approx(expected)


def test_rmsle_agrees_with_scikit_learn():
    true, given = np.abs(TRUE_VALUES), np.abs(VALUES)
    expected = sk.root_mean_squared_log_error(true, given)
    assert value("mean_column_rmsle", K.VALUES, true, given) == pytest.approx(expected)


def test_mcrmse_of_scored_columns_only():
    found = value("mcrmse", K.VALUES, TRUE_VALUES, VALUES, scored_columns=["c2"])
    assert found == pytest.approx(sk.root_mean_squared_error(TRUE_VALUES[:, 2], VALUES[:, 2]))


def test_errors_by_group_and_by_flag():
    true, given = TRUE_VALUES[:, :1], VALUES[:, :1]
    group, scored = RNG.integers(0, 5, N), RNG.random(N) < 0.5
    errors = np.abs(true - given)[:, 0]
    by_group = value("group_log_mae", K.VALUES, true, given, extras={"group": group})
    assert by_group == pytest.approx(np.mean([np.log(errors[group == number].mean()) for number in range(5)]))
    assert value("masked_mae", K.VALUES, true, given, extras={"scored": scored}) == pytest.approx(errors[scored].mean())


def test_smape_by_hand():
    assert score(rule("smape", K.VALUES), "id y\na 0\nb 1\nc 2", "id y\na 0\nb 3\nc -2") == pytest.approx(
        (100 + 200) / 3
    )


def test_laplace_likelihood_by_hand():
    found = score(
        rule("laplace_log_likelihood", K.VALUES, ("y", "sd")), "id y\na 2000\nb 2000", "id y sd\na 2100 10\nb 9000 100"
    )
    root = np.sqrt(2)
    expected = (-root * 100 / 70 - np.log(root * 70) - root * 1000 / 100 - np.log(root * 100)) / 2
    assert found == pytest.approx(expected)


def test_angle_and_distance_by_hand():
    right_angle = score(
        rule("angular_error", K.VALUES, ("a", "z")),
        "id a z\nr 0 1.5707963267948966",
        f"id a z\nr {np.pi / 2} {np.pi / 2}",
    )
    assert right_angle == pytest.approx(np.pi / 2)
    degree_m = 6_371_000 * np.pi / 180
    found = score(
        rule("distance_percentiles", K.VALUES, ("lat", "lon")),
        "id lat lon\nr 10 20\ns 10 20",
        "id lat lon\nr 11 20\ns 10 20",
    )
    assert found == pytest.approx(degree_m * (0.5 + 0.95) / 2)


def test_c_index_by_counting_pairs():
    time, event = RNG.integers(1, 30, 80).astype(float), RNG.random(80) < 0.6
    given = (time + RNG.normal(0, 8, 80)).round()
    good = pairs = 0.0
    for i in range(80):
        for j in range(80):
            if time[i] < time[j] and event[i]:
                pairs += 1
                good += (given[i] < given[j]) + 0.5 * (given[i] == given[j])
    found = value("c_index", K.VALUES, time[:, None], given[:, None], extras={"event": event})
    assert found == pytest.approx(good / pairs)


def test_ndcg_agrees_with_scikit_learn():
    relevance, scores = RNG.integers(0, 4, (60, 8)).astype(float), RNG.integers(0, 5, (60, 8)).astype(float)
    relevance[:, 0] = 1  # every query has a relevant row
    group = np.repeat(np.arange(60), 8)
    order = RNG.permutation(480)
    found = value(
        "ndcg_at_k",
        K.VALUES,
        relevance.reshape(-1, 1)[order],
        scores.reshape(-1, 1)[order],
        extras={"group": group[order]},
        k=5,
    )
    assert found == pytest.approx(sk.ndcg_score(relevance, scores, k=5))


def test_kendall_tau_agrees_with_scipy_on_one_row():
    items = [f"i{number}" for number in range(12)]
    order = RNG.permutation(12)
    found = score(
        rule("kendall_tau", K.PERMUTATION), f"id y\nr {'_'.join(items)}", f"id y\nr {'_'.join(items[i] for i in order)}"
    )
    assert found == pytest.approx(stats.kendalltau(np.arange(12), np.argsort(order))[0])


def test_text_by_hand():
    answers, given = "id y\na kitten\nb the_big_dog", "id y\na sitting\nb the_dog"
    assert score(rule("levenshtein", K.TEXT), answers, given) == (3 + 4) / 2
    assert score(rule("normalised_levenshtein", K.TEXT), answers, given) == (1 + 1) / 4
    assert score(rule("word_jaccard", K.TEXT), answers, given) == pytest.approx((0 + 2 / 3) / 2)


def test_span_f1_by_hand():
    # One hit, one wrong answer, one missed, one rightly left empty: precision 1/2, recall 1/3.
    found = score(rule("span_f1", K.TEXT), "id y\na 3:9\nb YES\nc 1:2\nd -", "id y\na 3:9\nb NO\nc -\nd -")
    assert found == pytest.approx(2 * 1 / (2 + 3))


def test_masks_by_hand():
    scoring = {"mask_shape": (3, 3)}
    answers, given = "id y\na 1_4\nb -", "id y\na 3_4\nb 9_1"
    # Pixels 1-4 and 3-6 share two; the empty mask got one pixel.
    assert score(rule("mean_dice", K.MASK, **scoring), answers, given) == pytest.approx((2 * 2 / 8 + 0) / 2)
    assert score(rule("global_dice", K.MASK, **scoring), answers, given) == pytest.approx(2 * 2 / 9)
    f_half = 1.25 * 2 / (0.25 * 4 + 5)
    assert score(rule("mask_f_beta", K.MASK, **scoring), answers, given) == pytest.approx(f_half)
    assert score(rule("mask_precision", K.MASK, **scoring), "id y\na 1_4", "id y\na 1_3") == pytest.approx(5 / 10)


def test_mask_pixels_go_down_the_columns():
    pixels = mask_pixels(np.array([[0, 2], [2, 2]]), (3, 2))
    assert pixels.astype(int).tolist() == [[1, 1], [1, 0], [1, 0]]


def test_hausdorff_by_hand():
    # One pixel each, at opposite corners of a 3 x 3 image, and one column apart.
    scoring = rule("dice_hausdorff", K.MASK, mask_shape=(3, 3))
    assert score(scoring, "id y\na 1_1", "id y\na 9_1") == pytest.approx(0.0)
    assert score(scoring, "id y\na 1_1", "id y\na 4_1") == pytest.approx(0.6 * (1 - 1 / np.sqrt(8)))


def test_box_precision_by_hand():
    # Two true boxes; found in the order hit, miss, hit: precision 1 up to recall 1/2, then 2/3.
    answers = "id y\na x_1_0_0_10_10\nb x_1_0_0_10_10"
    given = "id y\na x_0.9_0_0_10_10_x_0.8_50_50_9_9\nb x_0.7_0_0_10_9"
    assert score(rule("box_map", K.BOXES), answers, given) == pytest.approx(0.5 + 0.5 * 2 / 3)
    strict = rule("box_map", K.BOXES, metric_params={"iou_thresholds": [0.5, 0.95]})
    assert score(strict, answers, given) == pytest.approx((0.5 + 0.5 * 2 / 3 + 0.5) / 2)


def test_a_box_is_found_once():
    answers = "id y\na x_1_0_0_10_10"
    twice = "id y\na x_0.9_0_0_10_10_x_0.8_0_0_10_10"
    assert score(rule("point_f1", K.BOXES), answers, twice) == pytest.approx(2 / 3)
    assert score(rule("box_map", K.BOXES), answers, twice) == 1.0  # a false one after full recall costs nothing


def test_box_order_of_ties_does_not_count():
    answers = "id y\na x_1_0_0_4_4\nb x_1_0_0_4_4"
    one, other = "x_0.5_0_0_4_4", "x_0.5_9_9_4_4"
    scores = {
        score(rule("box_map", K.BOXES), answers, f"id y\na {first}\nb {second}")
        for first, second in ((one, other), (other, one))
    }
    assert len(scores) == 1
