from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sandmle.policies.scripted.brief import read_brief
from sandmle.policies.scripted.profile import Form, Profile, read_profile
from sandmle.policies.scripted.scripts import write_script
from tests.policies.workbench import execute

N = 40


def look(
    tmp_path: Path, features: dict[str, Any], target: dict[str, Any], predicted: list[str], metric: str
) -> Profile:
    ids = [f"r{i:03d}" for i in range(N)]
    folder = tmp_path / "input"
    folder.mkdir()
    pd.DataFrame({"row": ids, **features, **target}).to_csv(folder / "train.csv", index=False)
    test = pd.DataFrame({"row": [f"s{i:03d}" for i in range(N)], **features})
    for name in test:
        if str(name).endswith("_ref"):
            test[name] = "x" + test[name].astype(str)
    test.to_csv(folder / "test.csv", index=False)
    sample = pd.DataFrame({"row": test["row"], **{name: 0.5 for name in predicted}})
    sample.to_csv(folder / "sample_submission.csv", index=False)
    done, output = execute(write_script("look", root="input/"), tmp_path)
    assert done, output
    profile = read_profile(output, read_brief(f"Metric: {metric} (higher is better)"))
    assert profile is not None
    return profile


RNG = np.random.default_rng(0)
X = {"size": RNG.normal(size=N).round(3)}
CLASSES = [("low", "mid", "high")[i % 3] for i in range(N)]
ONE_HOT = {name: [int(label == name) for label in CLASSES] for name in ("high", "low", "mid")}
FLAGS = {name: (RNG.random(N) < 0.4).astype(int) for name in ("a", "b", "c")}
SHARES = dict(zip("abc", RNG.dirichlet([1, 1, 1], N).round(4).T, strict=True))
REAL = RNG.normal(size=N).round(3)


@pytest.mark.parametrize(
    ("target", "predicted", "metric", "form"),
    [
        ({"y": FLAGS["a"]}, ["y"], "roc_auc", Form.PROBABILITY),
        ({"y": FLAGS["a"]}, ["y"], "mcc", Form.LABEL),
        ({"y": CLASSES}, ["y"], "accuracy", Form.LABEL),
        ({"y": RNG.integers(1, 6, N)}, ["y"], "qwk", Form.GRADE),
        ({"y": CLASSES}, ["high", "low", "mid"], "log_loss", Form.CLASS_PROBABILITIES),
        (ONE_HOT, ["high", "low", "mid"], "log_loss", Form.CLASS_PROBABILITIES),
        ({"y": CLASSES}, ["y"], "map_at_k", Form.RANKED_LABELS),
        (FLAGS, ["a", "b", "c"], "mean_column_roc_auc", Form.LABEL_COLUMNS),
        ({"y": ["a b" if i % 2 else "c" for i in range(N)]}, ["y"], "micro_f1", Form.LABEL_SET),
        (SHARES, ["a", "b", "c"], "kl_divergence", Form.SHARES),
        ({"y": REAL}, ["y"], "rmse", Form.VALUES),
        ({"y": REAL, "z": REAL[::-1]}, ["y", "z"], "mcrmse", Form.VALUES),
        ({"y": REAL}, ["y", "spread"], "laplace_log_likelihood", Form.VALUE_AND_SPREAD),
        ({"y": REAL, "z": REAL[::-1]}, ["y", "z"], "angular_error", Form.ANGLES),
    ],
)
def test_forms(tmp_path: Path, target: dict[str, Any], predicted: list[str], metric: str, form: Form):
    profile = look(tmp_path, X, target, predicted, metric)
    assert profile.form is form
    assert profile.id == "row"
    assert profile.numbers == ("size",)
    assert set(profile.targets) <= set(target)


def test_columns_are_sorted_by_kind(tmp_path: Path):
    features = {
        "price": RNG.normal(size=N).round(2),
        "price_unit": ["EUR", "cent"] * (N // 2),
        "lat": RNG.normal(size=N).round(4),
        "colour": [("red", "blue")[i % 2] for i in range(N)],
        "when": [f"2021-03-{i % 28 + 1:02d} 10:{i:02d}" for i in range(N)],
        "code": [f"A{i:03d}-X" for i in range(N)],
        "note": [f"The pump number {i} made no noise at all." for i in range(N)],
        "image": [f"images/{i}.png" for i in range(N)],
        "signal": [" ".join(map(str, RNG.normal(size=8).round(2))) for _ in range(N)],
        "owner_ref": [f"c{i // 4}" for i in range(N)],
        "branch": [f"b{i % 8}" for i in range(N)],
        **{f"t_{i:02d}": RNG.normal(size=N).round(3) for i in range(12)},
        **{f"dose_{i}": RNG.normal(size=N).round(3) for i in range(1, 4)},
    }
    features["price"][3] = np.nan
    profile = look(tmp_path, features, {"y": REAL}, ["y"], "rmse")
    assert profile.numbers == ("price", "lat", "dose_1", "dose_2", "dose_3")
    assert profile.units == (("price", "price_unit"),)
    assert profile.places == ("lat",)
    assert profile.categories == ("price_unit", "colour", "branch")
    assert profile.dates == ("when",)
    assert profile.codes == ("code",)
    assert profile.texts == ("note",)
    assert profile.images == ("image",)
    assert profile.traces == ("signal",)
    assert profile.strangers == ("owner_ref",)
    assert profile.groups == ("branch",)
    assert profile.series == (tuple(f"t_{i:02d}" for i in range(12)),)
    assert profile.repeats == (("dose_1", "dose_2", "dose_3"),)
    assert profile.has_missing


def test_positive_label_is_read_from_the_description(tmp_path: Path):
    profile = look(tmp_path, X, {"y": ["ok", "bad"] * (N // 2)}, ["y"], "roc_auc); the probability of `bad` (x")
    assert profile.positive == "bad"


@pytest.mark.parametrize("text", ["", "Traceback: nothing", "rows: {", "{'column': "])
def test_a_look_that_told_nothing(text: str):
    assert read_profile(text, read_brief("Metric: rmse (lower is better)")) is None
