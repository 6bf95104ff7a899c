from pathlib import Path

import pytest

from sandmle.grading import get_metric, metric_names

PAGE = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text()


@pytest.mark.parametrize("name", metric_names())
def test_the_reference_says_what_the_code_says(name):
    metric = get_metric(name)
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    assert f"| {'higher' if metric.direction == 'maximize' else 'lower'} |" in row
    assert metric.words in row
    for parameter in (*metric.defaults, *(role.name for role in metric.roles)):
        assert f"`{parameter}`" in row


def test_the_example_of_an_own_metric_works():
    code = PAGE.split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(code, names)  # our own page
    import numpy as np

    from sandmle.grading.metrics.base import Truth
    from sandmle.records import PredictionKind, TargetSpec

    metric = names["CAPPED_ERROR"]
    truth = Truth(np.array([[0.0], [0.0]]), TargetSpec(kind=PredictionKind.VALUES, columns=("y",)))
    assert metric.score(truth, np.array([[4.0], [99.0]]), metric.parameters({})) == 7.0
