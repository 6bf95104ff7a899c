"""Training and test rows come from one rule: a classifier should hardly tell them apart."""

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from sandmle.gate.base import Check, Finding, GateContext

_TEST_ROWS_EACH = 3
"""Test rows used for one training row."""
MOST_ABOVE_CHANCE = 5.5
"""Standard errors above an AUC of one half."""


def run(context: GateContext) -> Finding:
    """Cross-validates a classifier of train against test on the input columns, missing cells included.

    A shift that the DNA asks for (new entities, later times) is measured and passes.
    """
    columns = [column for column in context.inputs if column.name not in context.group_columns]
    if not columns:
        return Finding(True, "there are no columns to compare")
    n_train = len(context.train)
    step = max(1, len(context.test) // (_TEST_ROWS_EACH * n_train))
    parts = [np.concatenate([column.train, column.test[::step]]) for column in columns]
    features = np.column_stack([rankdata(np.nan_to_num(part, nan=-np.inf)) for part in parts])
    is_test = np.arange(len(features)) >= n_train
    guessed = np.zeros(len(features))
    for fitted, held in StratifiedKFold(3, shuffle=True, random_state=0).split(features, is_test):
        model = ExtraTreesClassifier(30, min_samples_leaf=8, class_weight="balanced", random_state=0)
        guessed[held] = model.fit(features[fitted], is_test[fitted]).predict_proba(features[held])[:, 1]
    auc = float(roc_auc_score(is_test, guessed))
    n_test = len(features) - n_train
    error = ((n_train + n_test + 1) / (12 * n_train * n_test)) ** 0.5
    limit = round(0.5 + MOST_ABOVE_CHANCE * error, 6)
    expected = context.spec.dna.groups or context.spec.dna.time_ordered
    if auc <= limit or expected:
        return Finding(True, "the rows differ, as the DNA asks" if auc > limit else "", round(auc, 6), limit)
    return Finding(False, "a classifier tells the rows of train.csv from those of test.csv", round(auc, 6), limit)


CHECK = Check("train_test_shift", run)
