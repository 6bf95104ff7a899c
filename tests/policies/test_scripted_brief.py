import pytest

from sandmle.grading import get_metric, metric_names
from sandmle.policies.scripted.brief import read_bounds, read_brief
from sandmle.records import Direction


def test_the_metric_line_counts():
    brief = read_brief("Accuracy matters to us.\n\nMetric: mean_column_rmsle (lower is better)\n")
    assert (brief.metric_name, brief.metric, brief.higher_is_better) == ("mean_column_rmsle", "rmsle", False)


@pytest.mark.parametrize("line", ["**Metric:** `roc_auc` (higher is better)", "- Metric: roc_auc (Higher is better)"])
def test_markup_round_the_metric_line(line: str):
    brief = read_brief(line)
    assert (brief.metric_name, brief.metric, brief.higher_is_better) == ("roc_auc", "roc_auc", True)


def test_words_will_do():
    brief = read_brief("Submissions are scored by the area under the ROC curve (AUC); higher is better.")
    assert (brief.metric, brief.higher_is_better) == ("roc_auc", True)
    brief = read_brief("We use the root mean squared error, lower is better.")
    assert (brief.metric, brief.higher_is_better) == ("rmse", False)


def test_an_unknown_metric_keeps_its_direction():
    brief = read_brief("Metric: zorglub (lower is better)")
    assert (brief.metric, brief.metric_name, brief.higher_is_better) == ("", "zorglub", False)


@pytest.mark.parametrize("name", metric_names())
def test_direction_is_read_for_every_metric(name: str):
    higher = get_metric(name).direction is Direction.MAXIMIZE
    way = "higher" if higher else "lower"
    assert read_brief(f"Metric: {name} ({way} is better)").higher_is_better is higher


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("Values below 2.0 or above 55.0 are refused.", (2.0, 55.0)),
        ("Values below -3 are refused.", (-3.0, None)),
        ("Values above 1e3 are refused.", (None, 1000.0)),
        ("line 98, column 'x', holds '4.6', which is below 5", (5.0, None)),
        ("line 98, column 'x', holds '74.6', which is above 5.5", (None, 5.5)),
        ("A prediction is a number.", (None, None)),
    ],
)
def test_bounds(text: str, bounds: tuple[float | None, float | None]):
    assert read_bounds(text) == bounds
