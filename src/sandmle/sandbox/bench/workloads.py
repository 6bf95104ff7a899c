"""The scripts that are measured: imports only, and three typical solutions of a small tabular task."""

from pathlib import Path

_ROWS, _TEST_ROWS = 150, 300

_HEAD = """
import numpy as np
import pandas as pd
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
y = train.pop("target")
ids = test["id"]
train, test = train.drop(columns="id"), test.drop(columns="id")
numbers = list(train.select_dtypes("number"))
words = [name for name in train if name not in numbers]
"""
_TAIL = """
pd.DataFrame({"id": ids, "target": predicted}).to_csv("submission.csv", index=False)
"""
_LINEAR = """
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
model = make_pipeline(columns, LogisticRegression(max_iter=500))
print(cross_val_score(model, train, y, cv=5, scoring="roc_auc").mean())
predicted = model.fit(train, y).predict_proba(test)[:, 1]
"""
_LIGHTGBM = """
import lightgbm
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
for name in words:
    kinds = pd.CategoricalDtype(sorted(set(train[name]) | set(test[name])))
    train[name], test[name] = train[name].astype(kinds), test[name].astype(kinds)
predicted, checked = np.zeros(len(test)), np.zeros(len(train))
for fit, hold in StratifiedKFold(5, shuffle=True, random_state=0).split(train, y):
    model = lightgbm.LGBMClassifier(
        n_estimators=200, learning_rate=0.05, num_leaves=15, min_child_samples=5, verbose=-1)
    model.fit(train.iloc[fit], y.iloc[fit], eval_set=[(train.iloc[hold], y.iloc[hold])],
              callbacks=[lightgbm.early_stopping(30, verbose=False)])
    checked[hold] = model.predict_proba(train.iloc[hold])[:, 1]
    predicted += model.predict_proba(test)[:, 1] / 5
print(roc_auc_score(y, checked))
"""
_STACKING = """
import lightgbm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
model = make_pipeline(columns, StackingClassifier([
    ("linear", LogisticRegression(max_iter=500)),
    ("forest", RandomForestClassifier(60, random_state=0)),
    ("boosted", lightgbm.LGBMClassifier(n_estimators=60, num_leaves=7, verbose=-1, random_state=0)),
], cv=3))
predicted = model.fit(train, y).predict_proba(test)[:, 1]
"""


def workloads(modules: tuple[str, ...]) -> dict[str, str]:
    """Returns the scripts by name, the empty one first.

    Args:
        modules: What the empty script imports, since a cold interpreter has to and a warm one has.
    """
    imports = "\n".join(f"import {name}" for name in modules)
    solutions = {"linear": _LINEAR, "lightgbm-cv": _LIGHTGBM, "stacking": _STACKING}
    return {"empty": imports + "\n", **{name: _HEAD + body + _TAIL for name, body in solutions.items()}}


def write_inputs(folder: Path) -> None:
    """Writes the data that the solutions read: the same bytes every time."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    count = _ROWS + _TEST_ROWS
    table = pd.DataFrame(rng.normal(size=(count, 8)), columns=[f"x{index}" for index in range(8)])
    table["colour"] = rng.choice(["red", "green", "blue"], count)
    table["size"] = rng.choice(["s", "m", "l", "xl"], count)
    table.insert(0, "id", range(count))
    logit = table["x0"] + table["x1"] * table["x2"] + (table["colour"] == "red") - 0.5 * (table["size"] == "xl")
    target = (logit + rng.logistic(size=count) > 0).astype(int)
    table.loc[rng.random(count) < 0.05, "x3"] = np.nan
    table[:_ROWS].assign(target=target[:_ROWS]).to_csv(folder / "train.csv", index=False)
    table[_ROWS:].to_csv(folder / "test.csv", index=False)
