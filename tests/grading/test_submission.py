"""Submissions: what is accepted, what is refused and with which words."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.errors import BundleError, ConfigError
from sandmle.grading import Predictions, SubmissionProblem, read_submission
from sandmle.grading.cells import MAX_TEXT_CHARS, canonical_labels
from sandmle.records import GradeStatus
from tests.grading.examples import EXAMPLES, K, csv, key_of, read, refused, rule, score

CHANCE = rule("log_loss", K.PROBABILITY)
NUMBER = rule("rmse", K.VALUES)
SPECIES = rule("accuracy", K.LABEL, labels=("cat", "dog"))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_order_of_rows_and_columns_does_not_count(name):
    example = EXAMPLES[name]
    key = key_of(example.rule, example.answers)
    rows = [line.split(",") for line in csv(example.bad).decode().splitlines()]
    turned = "".join(",".join(row[::-1]) + "\n" for row in [rows[0], *rows[:0:-1]]).encode()
    assert key.score(read(key, turned)) == key.score(read(key, example.bad))


def test_g07_probabilities_outside_0_and_1_are_refused_by_row_and_value():
    key = key_of(CHANCE, "id y\na 0\nb 1")
    low, high = refused(key, "id y\na -0.1\nb 1"), refused(key, "id y\na 0\nb 1.2")
    assert low.message == "submission.csv: line 2 (id 'a'), column 'y', holds '-0.1', which is below 0"
    assert high.message == "submission.csv: line 3 (id 'b'), column 'y', holds '1.2', which is above 1"
    assert low.status is GradeStatus.BAD_VALUES


def test_g07_auc_accepts_any_finite_number():
    assert score(rule("roc_auc", K.PROBABILITY), "id y\na 0\nb 1", "id y\na -7.5\nb 1e6") == 1.0


def test_g08_columns_are_matched_by_name():
    scoring = rule("log_loss", K.CLASS_PROBABILITIES, ("cat", "dog"))
    value = score(scoring, "id cat dog\na 1 0\nb 0 1", "id dog cat\na 0.1 0.9\nb 0.8 0.2")
    assert value == pytest.approx(0.16425, abs=1e-5)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "macro_f1"])
@pytest.mark.parametrize("cells", ["0 1 1", "0.0 1.0 1.0", "00 01 +1", "0 1e0 1.00"])
def test_g10_one_conversion_of_labels_for_both_sides(metric, cells):
    first, second, third = cells.split()
    scoring = rule(metric, K.LABEL, labels=("0", "1"))
    assert score(scoring, "id y\na 0\nb 1\nc 1", f"id y\na {first}\nb {second}\nc {third}") == 1.0


@pytest.mark.parametrize("labels", [("0", "1"), ("False", "True"), ("true", "false"), ("1", "0")])
@pytest.mark.parametrize("cells", ["True False", "1.0 0.0", "true false", "1 0", "TRUE FALSE"])
def test_g11_spellings_of_true_and_false(labels, cells):
    yes, no = cells.split()
    scoring = rule("accuracy", K.LABEL, labels=labels)
    true = {label.lower(): label for label in labels}
    assert (
        score(scoring, f"id y\na {true.get('true', '1')}\nb {true.get('false', '0')}", f"id y\na {yes}\nb {no}") == 1.0
    )


@pytest.mark.parametrize(
    ("labels", "cell"),
    [
        (("0", "1", "2"), "True"),
        (("1", "1.0"), "1.00"),
        (("cat", "dog"), "Cat"),
        (("cat", "dog"), "1"),
        (("0", "1"), "0.5"),
        (("0", "1"), "1_0"),
        (("0", "1"), ""),
        (("0", "1"), "nan"),
        (("0", "1"), "1e999999999"),
        (("10000000000000000001", "10000000000000000002"), "10000000000000000003"),
        (("1" + "0" * 40, "2" + "0" * 40), "1" + "0" * 39 + "1"),
        (("0", "1"), "\uff11"),
        (("0", "1"), "\u0661"),
    ],
)
def test_g11_other_spellings_are_refused_with_the_labels(labels, cell):
    key = key_of(rule("accuracy", K.LABEL, labels=labels), f"id y\na {labels[0]}\nb {labels[1]}")
    problem = refused(key, f"id,y\na,{cell}\nb,{labels[1]}\n".encode())
    assert problem.status is GradeStatus.BAD_VALUES
    assert f"the labels are {labels[0]!r}, {labels[1]!r}" in problem.message


def test_g11_ambiguous_label_sets_have_no_other_spellings():
    assert canonical_labels(("1", "1.0")) == {}
    assert canonical_labels(("a", "1")) == {}


def test_g22_long_ids_are_joined_as_text():
    ids = ["18446744073709551615", "18446744073709551616", "00000000000000000001"]
    answers = "id y\n" + "\n".join(f"{row_id} {number}" for number, row_id in enumerate(ids))
    submission = "id y\n" + "\n".join(f"{row_id} {number}" for number, row_id in reversed(list(enumerate(ids))))
    assert score(NUMBER, answers, submission) == 0.0


def test_g22_a_join_of_no_rows_is_an_error():
    problem = refused(key_of(NUMBER, "id y\na 1\nb 2"), "id y\np 1\nq 2")
    assert problem.status is GradeStatus.BAD_IDS
    assert problem.message == ("submission.csv: line 2: id 'p' is not an id of the test file (2 of 2 ids are unknown)")


def test_g23_ids_from_a_float_column_are_refused_with_a_hint():
    problem = refused(key_of(NUMBER, "id y\n1 1\n2 2\n3 3"), "id y\n1.0 1\n2.0 2\n3.0 3")
    assert problem.status is GradeStatus.BAD_IDS
    assert "id '1.0' is not an id of the test file, but '1' is; write ids as text" in problem.message
    assert "3 of 3" in problem.message


@pytest.mark.parametrize("index", ["", "Unnamed: 0"])
def test_g25_a_saved_index_is_refused_by_name(index):
    problem = refused(key_of(NUMBER, "id y\na 1"), f"{index},id,y\n0,a,1\n".encode())
    assert problem.status is GradeStatus.WRONG_COLUMNS
    assert f"column {index!r} does not belong (a saved index? write with index=False)" in problem.message


def test_g26_expected_and_found_columns_are_named():
    problem = refused(key_of(NUMBER, "id y\na 1"), "NotAnId NotAPrediction\na 1")
    assert problem.status is GradeStatus.WRONG_COLUMNS
    assert problem.message == (
        "submission.csv: column 'id' is missing, column 'NotAnId' does not belong; "
        "expected 'id', 'y', found 'NotAnId', 'NotAPrediction'"
    )


def test_a_column_twice_is_refused():
    assert "column 'y' is there twice" in refused(key_of(NUMBER, "id y\na 1"), "id y y\na 1 2").message


def test_g28_a_duplicate_id_is_refused():
    problem = refused(key_of(NUMBER, "id y\n1 5\n2 6"), "id y\n1 5\n1 9\n2 6")
    assert problem.status is GradeStatus.BAD_IDS
    assert problem.message == "submission.csv: duplicate id '1' on lines 2 and 3"


def test_wrong_columns_are_told_before_rows_are_read():
    key = key_of(NUMBER, "id y\na 1")
    assert refused(key, b'id,z\na,1,2\n"never closed').status is GradeStatus.WRONG_COLUMNS


def test_a_header_of_thousands_of_columns():
    names = tuple(f"c{number}" for number in range(5000))
    key = key_of(rule("mae", K.VALUES, names), "id " + " ".join(names) + "\na" + " 1" * 5000)
    turned = "id," + ",".join(reversed(names)) + "\na" + ",2" * 5000
    assert key.score(read(key, turned.encode())) == 1.0
    twice = refused(key, ("id," + ",".join(names + names[:5]) + "\n").encode())
    assert "column 'c0' is there twice" in twice.message
    long = refused(key, f"id,{'x' * 9000}\n".encode())
    assert len(long.message) < 1000


def test_missing_ids_are_counted():
    assert "id 'b' is missing (2 of 3 ids are)" in refused(key_of(NUMBER, "id y\na 1\nb 2\nc 3"), "id y\na 1").message
    assert "no rows; 3 are expected" in refused(key_of(NUMBER, "id y\na 1\nb 2\nc 3"), "id y").message


@pytest.mark.parametrize(
    "cell", ["", "nan", "NaN", "inf", "-inf", "1e999", "null", "None", "1e31", "1_000", "0x10", "True"]
)
@pytest.mark.parametrize("scoring", [CHANCE, NUMBER], ids=["probability", "values"])
def test_g29_no_bad_number_equals_0(scoring, cell):
    key = key_of(scoring, "id y\na 0\nb 0\nc 1")
    problem = refused(key, f"id,y\na,0\nb,{cell}\nc,1\n".encode())
    assert problem.status is GradeStatus.BAD_VALUES
    assert "line 3 (id 'b'), column 'y'," in problem.message


@pytest.mark.parametrize(
    "cell",
    [
        "Infinity",
        "-Infinity",
        "+inf",
        "0x1p-3",
        "0b1",
        "1__0",
        "1e1_0",
        "1,5",
        "1.000,5",
        "1 000",
        "0.5%",
        "1e",
        "--1",
        "1j",
        "1d3",
        "\uff11",
        "\u0663",
        "\u00bd",
        "\u221e",
        "1\u00a0",
        "\u22121",
        "9" * 100_000,
    ],
)
def test_g29_other_spellings_of_numbers_are_refused(cell):
    problem = refused(key_of(NUMBER, "id y\na 0\nb 1"), f'id,y\na,0\nb,"{cell}"\n'.encode())
    assert problem.status is GradeStatus.BAD_VALUES
    assert "line 3 (id 'b'), column 'y', holds" in problem.message
    assert len(problem.message) < 250


@pytest.mark.parametrize(
    ("cell", "value"),
    [("-0", 0), ("-0.0", 0), (" 1 ", 1), ("+1", 1), (".5", 0.5), ("1E0", 1), ("1e-999", 0), ("0" * 100_000 + "2", 2)],
)
def test_g29_numbers_in_other_words(cell, value):
    assert score(NUMBER, "id y\na 0", f"id,y\na,{cell}\n".encode()) == value


@pytest.mark.parametrize("cell", ["-0", "-0.0"])
def test_a_negative_zero_is_a_zero(cell):
    submission = f"id y\na {cell}\nb 1"
    assert score(CHANCE, "id y\na 0\nb 1", submission) == score(CHANCE, "id y\na 0\nb 1", "id y\na 0\nb 1")
    assert score(rule("accuracy", K.LABEL, labels=("0", "1")), "id y\na 0\nb 1", submission) == 1.0
    tied = score(rule("roc_auc", K.PROBABILITY), "id y\na 0\nb 1", f"id y\na {cell}\nb 0")
    assert tied == 0.5


@pytest.mark.parametrize("cell", ["", "nan", "null"])
@pytest.mark.parametrize("name", ["accuracy", "qwk", "map_at_k", "kendall_tau", "mean_dice", "box_map"])
def test_g29_no_missing_word_equals_an_answer(name, cell):
    example = EXAMPLES[name]
    key = key_of(example.rule, example.answers)
    first = key.ids[0]
    lines = csv(example.perfect).decode().splitlines()
    lines[1] = f"{first},{cell}"
    outcome = read_submission(key, "\n".join(lines).encode())
    if isinstance(outcome, Predictions):  # an empty list, mask or set of boxes is a prediction, and a wrong one
        assert cell == ""
        assert key.score(outcome) < key.score(read(key, example.perfect))
    else:
        assert outcome.status is GradeStatus.BAD_VALUES


def test_g32_labels_that_look_like_missing_values():
    scoring = rule("accuracy", K.LABEL, labels=("None", "NA", "ok"))
    assert score(scoring, "id y\na None\nb NA\nc ok", "id y\na None\nb NA\nc ok") == 1.0


@pytest.mark.parametrize("kind", ["kendall_tau", "map_at_k", "mean_dice", "box_map", "rmse", "accuracy", "micro_f1"])
def test_g43_cells_are_data_and_never_code(kind, tmp_path):
    marker = tmp_path / "marker"
    example = EXAMPLES[kind]
    key = key_of(example.rule, example.answers)
    code = f"[__import__('pathlib').Path('{marker}').touch()]"
    lines = csv(example.perfect).decode().splitlines()
    lines[1] = f'{key.ids[0]},"{code}"'
    assert isinstance(read_submission(key, "\n".join(lines).encode()), SubmissionProblem)
    assert not marker.exists()


def test_bounds_of_the_target_hold():
    key = key_of(rule("rmse", K.VALUES, low=0, high=100), "id y\na 5")
    assert "which is above 100" in refused(key, "id y\na 101").message
    assert "which is below 0" in refused(key, "id y\na -1").message
    assert "which is below 0" in refused(key_of(rule("mean_column_rmsle", K.VALUES), "id y\na 5"), "id y\na -1").message


@pytest.mark.parametrize(
    ("name", "cell", "reason"),
    [
        ("mean_dice", "1 2 3", "come in pairs"),
        ("mean_dice", "0 2", "starts before pixel 1"),
        ("mean_dice", "5 2 3 1", "overlap or are out of order"),
        ("mean_dice", "1 1 " * 40, "more runs than a mask of 4 x 4 pixels can have"),
        ("mean_dice", "16 2", "the mask has 4 x 4 pixels"),
        ("mean_dice", "1 99999999999999999999", "not made of whole numbers"),
        ("box_map", "x 0.5 1 1 2", "each box is `label confidence x y width height`"),
        ("box_map", "y 0.5 1 1 2 2", "the labels are 'x', 'z'"),
        ("box_map", "x 0.5 1 1 -2 2", "below 0 (the width of box 1)"),
        ("box_map", "x nan 1 1 2 2", "not a finite number (the confidence of box 1)"),
        ("box_map", "x 0.5 1 1 2 2 " * 101, "holds 101 boxes; at most 100"),
        ("kendall_tau", "p q q", "more than once"),
        ("kendall_tau", "p q s", "unknown item 's'"),
        ("kendall_tau", "p q", "lacks items"),
        ("map_at_k", "cat cow", "the labels are"),
        ("levenshtein", "x" * (MAX_TEXT_CHARS + 1), "at most 10000"),
    ],
)
def test_cells_of_other_kinds_are_checked(name, cell, reason):
    example = EXAMPLES[name]
    key = key_of(example.rule, example.answers)
    lines = csv(example.perfect).decode().splitlines()
    lines[1] = f"{key.ids[0]},{cell}"
    problem = refused(key, "\n".join(lines).encode())
    assert problem.status is GradeStatus.BAD_VALUES
    assert reason in problem.message
    assert f"line 2 (id {key.ids[0]!r}), column 'y'," in problem.message


def test_a_long_cell_is_cut_in_the_message():
    message = refused(key_of(NUMBER, "id y\na 1"), "id y\na " + "x" * 5000).message
    assert len(message) < 200


def test_messages_never_hold_answers():
    key = key_of(rule("accuracy", K.TEXT), "id y\na secret\nb secret")
    for data in (b"id,y\na,1\n", b"id,y\na,1\na,2\n", b"id,z\na,1\n", b"x", None):
        outcome = read_submission(key, data)
        assert isinstance(outcome, SubmissionProblem)
        assert "secret" not in outcome.message


# The answers themselves.


@pytest.mark.parametrize(
    ("scoring", "answers", "message"),
    [
        (NUMBER, "id y\na 1\na 2", "line 3: duplicate id 'a'"),
        (NUMBER, "id y", "no rows"),
        (NUMBER, "id z\na 1", "no column 'y'"),
        (NUMBER, "id y y\na 1 2", "the column 'y' twice"),
        (NUMBER, "id y\na x", "line 2: column 'y' holds 'x', which is not a number"),
        (SPECIES, "id y\na cat\nb cow", "line 3: column 'y' holds 'cow'; the labels are 'cat', 'dog'"),
        (CHANCE, "id y\na 0.5", "the labels are '0', '1'"),
        (rule("kl_divergence", K.CLASS_PROBABILITIES, ("u", "v")), "id u v\na 1 1", "line 2: sums to 2"),
        (rule("map_at_k", K.RANKED_LABELS), "id y\na -", "at least one label"),
        (NUMBER, "id y leaderboard\na 1 secret", "column 'leaderboard' holds 'secret'; it is public or private"),
        (NUMBER, b"PK\x03\x04", "zip archive"),
    ],
)
def test_broken_answers_are_named(scoring, answers, message):
    with pytest.raises(BundleError) as caught:
        key_of(scoring, answers)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        (rule("accuracy", K.LABEL), "needs its label set"),
        (rule("accuracy", K.TEXT, ("a", "b")), "has one column, not 2"),
        (rule("mean_dice", K.MASK), "needs its height and width"),
        (rule("log_loss", K.CLASS_PROBABILITIES), "need two columns or more"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(scoring, message):
    with pytest.raises(ConfigError, match=message):
        key_of(scoring, "id y\na 1")


def test_subsets_score_their_rows_only():
    key = key_of(NUMBER, "id y leaderboard\na 1 public\nb 2 private\nc 3 private")
    predictions = read(key, "id y\nc 3\nb 2\na 5")
    assert [key.subset(part).n_rows for part in ("public", "private", "all")] == [1, 2, 3]
    assert key.subset("public").score(predictions) == 4.0
    assert key.subset("private").score(predictions) == 0.0
    assert key.subset("private").subset("all").score(predictions) == pytest.approx(4 / math.sqrt(3))
    with pytest.raises(ConfigError, match="private, public or all"):
        key.subset("hidden")


@given(st.binary(max_size=200))
def test_any_bytes_are_predictions_or_a_problem(data):
    key = key_of(SPECIES, "id y\na cat\nb dog")
    outcome = read_submission(key, data)
    assert isinstance(outcome, SubmissionProblem)
    assert outcome.message


@given(st.sampled_from(sorted(EXAMPLES)), st.text(max_size=30), st.integers(0, 2))
def test_any_cell_gives_a_finite_score_or_a_problem(name, cell, row):
    example = EXAMPLES[name]
    key = key_of(example.rule, example.answers)
    table = [line.split(",") for line in csv(example.perfect).decode().splitlines()]
    table[1 + row % len(key.ids)][1] = '"' + cell.replace('"', '""') + '"'
    outcome = read_submission(key, "\n".join(",".join(cells) for cells in table).encode("utf-8", "replace"))
    if isinstance(outcome, Predictions):
        assert math.isfinite(key.score(outcome))
