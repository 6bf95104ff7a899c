"""Small data in exactly MLE-bench's prepared layout, for each of the 22 Lite competitions, and submissions to it.

Everything is drawn by seed; ``upstream.py`` grades the same submissions by MLE-bench's own code, and its results are
``lite_expected.json``.
"""

import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

N_ROWS = 40
AUC = {
    "aerial-cactus-identification": ("id", "has_cactus"),
    "detecting-insults-in-social-commentary": ("Comment", "Insult"),
    "histopathologic-cancer-detection": ("id", "label"),
    "mlsp-2013-birds": ("Id", "Probability"),
    "random-acts-of-pizza": ("request_id", "requester_received_pizza"),
    "siim-isic-melanoma-classification": ("image_name", "target"),
    "tabular-playground-series-may-2022": ("id", "target"),
    "the-icml-2013-whale-challenge-right-whale-redux": ("clip", "probability"),
}
MANY_AUC = {
    "jigsaw-toxic-comment-classification-challenge": (
        "id",
        ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"),
    ),
    "plant-pathology-2020-fgvc7": ("image_id", ("healthy", "multiple_diseases", "rust", "scab")),
    "ranzcr-clip-catheter-line-classification": (
        "StudyInstanceUID",
        (
            *("ETT - Abnormal", "ETT - Borderline", "ETT - Normal"),
            *("NGT - Abnormal", "NGT - Borderline", "NGT - Incompletely Imaged", "NGT - Normal"),
            *("CVC - Abnormal", "CVC - Borderline"),
        ),
    ),
}
CLASSES = {
    "dog-breed-identification": ("id", 120),
    "leaf-classification": ("id", 99),
    "spooky-author-identification": ("id", ("EAP", "HPL", "MWS")),
}
VALUES = {
    "denoising-dirty-documents": ("id", ("value",)),
    "new-york-city-taxi-fare-prediction": ("key", ("fare_amount",)),
    "nomad2018-predict-transparent-conductors": ("id", ("formation_energy_ev_natom", "bandgap_energy_ev")),
}
LABELS = {
    "aptos2019-blindness-detection": ("id_code", "diagnosis", range(5)),
    "tabular-playground-series-dec-2021": ("Id", "Cover_Type", range(1, 8)),
}
TEXTS = ("text-normalization-challenge-english-language", "text-normalization-challenge-russian-language")
LOG_LOSS_PAIR = "dogs-vs-cats-redux-kernels-edition"
COMPETITIONS = tuple(sorted([*AUC, *MANY_AUC, *CLASSES, *VALUES, *LABELS, *TEXTS, LOG_LOSS_PAIR]))
INTEGER_IDS = {
    "mlsp-2013-birds",
    "tabular-playground-series-may-2022",
    "tabular-playground-series-dec-2021",
    "nomad2018-predict-transparent-conductors",
    "leaf-classification",
    LOG_LOSS_PAIR,
}
_SENTENCES = ('you, sir, are "fine"', "line\nbreak", "ünï cödé", "plain words", "it's ok; really")


class Made:
    """One competition's answers, and what its submissions are made from."""

    def __init__(self, competition: str, classes: dict[str, tuple[str, ...]]) -> None:
        self.id = competition
        self.rng = np.random.default_rng(zlib.crc32(competition.encode()))
        self.n = 240 if competition in CLASSES and competition != "spooky-author-identification" else N_ROWS
        self.id_column, self.columns = self._columns(classes)
        self.ids = self._ids()
        self.truth, self.noisy, self.sample = self._frames()
        self.answers = self._answers()

    def _columns(self, classes: dict[str, tuple[str, ...]]) -> tuple[str, list[str]]:
        if self.id in AUC:
            id_column, column = AUC[self.id]
            return id_column, [column]
        if self.id in CLASSES:
            id_column, names = CLASSES[self.id]
            return id_column, list(names if isinstance(names, tuple) else classes[self.id])
        if self.id in LABELS:
            return LABELS[self.id][0], [LABELS[self.id][1]]
        if self.id in TEXTS:
            return "id", ["after"]
        if self.id == LOG_LOSS_PAIR:
            return "id", ["label"]
        id_column, columns = {**MANY_AUC, **VALUES}[self.id]
        return id_column, list(columns)

    def _ids(self) -> list[Any]:
        if self.id in INTEGER_IDS:
            return [int(each) for each in self.rng.permutation(np.arange(100, 100 + self.n))]
        if self.id in TEXTS:
            return [f"{row // 7}_{row % 7}" for row in range(self.n)]
        if self.id_column == "Comment":
            return [f"{_SENTENCES[row % len(_SENTENCES)]} {row}" for row in range(self.n)]
        return [f"r{each:05x}" for each in self.rng.choice(1 << 20, self.n, replace=False)]

    def _frames(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        rng, n, columns = self.rng, self.n, self.columns
        if self.id in TEXTS:
            words = np.array(
                ["two", "Mr.", "d. c.", "NA", "nineteen ninety, ok", 'a "b"', "null", "3", "<self>", "sil"]
            )
            truth = words[rng.integers(len(words), size=(n, 1))]
            return truth, np.where(rng.random((n, 1)) < 0.3, "wrong", truth), np.full((n, 1), "sil")
        if self.id in LABELS:
            labels = np.array(LABELS[self.id][2])
            truth = np.resize(labels, n)[rng.permutation(n)][:, None]
            return truth, np.where(rng.random((n, 1)) < 0.3, truth[::-1], truth), np.full((n, 1), int(labels[0]))
        if self.id in VALUES:
            truth = rng.gamma(2.0, 2.0, (n, len(columns))).round(4)
            return truth, (truth * rng.uniform(0.7, 1.4, truth.shape)).round(5), np.full(truth.shape, 1.0)
        if self.id in CLASSES:
            k = len(columns)
            truth = np.eye(k, dtype=int)[np.resize(np.arange(k), n)]
            raw = rng.dirichlet(np.ones(k), n) * 0.6 + 0.4 * truth
            return truth, raw / raw.sum(axis=1, keepdims=True), np.full(truth.shape, 1 / k)
        truth = (rng.random((n, len(columns))) < 0.4).astype(int)
        truth[0], truth[1] = 0, 1  # each column has both
        noisy = (0.3 * truth + 0.7 * rng.random(truth.shape)).round(6)
        return truth, noisy, np.full(truth.shape, 0.5)

    def _answers(self) -> pd.DataFrame:
        frame = self.table(self.truth)
        if self.id.startswith("jigsaw"):
            frame.loc[3:6, self.columns] = -1  # rows that do not count
        if self.id.startswith("ranzcr"):
            frame = frame.assign(**{"CVC - Normal": 0, "Swan Ganz Catheter Present": 1, "PatientID": "p1"})
        if self.id_column == "Comment":
            frame = pd.DataFrame(
                {"Insult": frame["Insult"], "Date": "", "Comment": frame["Comment"], "Usage": "PrivateTest"}
            )
        return frame

    def table(self, values: np.ndarray) -> pd.DataFrame:
        """A submission with these predictions ``# [n_rows, n_columns]``."""
        predictions = {column: values[:, index] for index, column in enumerate(self.columns)}
        frame = pd.DataFrame({self.id_column: self.ids, **predictions})
        if self.id_column == "Comment":
            frame = frame[["Insult", "Comment"]]
        return frame


def csv(frame: pd.DataFrame) -> bytes:
    data: str = frame.to_csv(index=False, lineterminator="\n")
    return data.encode()


def submissions(made: Made) -> dict[str, bytes]:
    """Submissions by name: good ones, poor ones, and broken ones of many kinds."""
    perfect, noisy = made.table(made.truth), made.table(made.noisy)
    order = np.random.default_rng(7).permutation(made.n)
    first, id_column = made.columns[0], made.id_column

    def cell(value: Any, row: int = 8) -> pd.DataFrame:
        changed = noisy.astype({first: object})
        changed.loc[row, first] = value
        return changed

    def with_id(value: Any) -> pd.DataFrame:
        changed = noisy.astype({id_column: object})
        changed.loc[8, id_column] = value
        return changed

    cases: dict[str, pd.DataFrame] = {
        "perfect": perfect,
        "sample": made.table(made.sample),
        "noisy": noisy,
        "rows_in_another_order": noisy.iloc[order],
        "columns_in_another_order": noisy[list(reversed(noisy.columns))],
        "one_column_more": noisy.assign(surplus=1),
        "id_column_missing": noisy.drop(columns=id_column),
        "prediction_column_missing": noisy.drop(columns=first),
        "one_row_missing": noisy.iloc[:-1],
        "one_row_twice": pd.concat([noisy, noisy.iloc[[3]]]),
        "one_row_replaced_by_another": pd.concat([noisy.iloc[:-1], noisy.iloc[[3]]]),
        "unknown_id": with_id(999_999 if made.id in INTEGER_IDS else "no such id"),
        "empty_cell": cell(None),
        "word_for_a_number": cell("high"),
        "infinite": cell("inf"),
        "above_one": cell(1.5),
        "below_zero": cell(-0.25),
        "header_only": noisy.iloc[:0],
    }
    if made.id in CLASSES:
        cases["sums_off_by_1e-5"] = made.table(made.noisy * (1 + 1e-5))
        cases["sums_off_by_1e-4"] = made.table(made.noisy * (1 + 1e-4))
        cases["sums_to_a_half"] = made.table(made.noisy / 2)
        cases["certain_and_wrong"] = made.table(np.roll(made.truth, 1, axis=0))
    if made.id == LOG_LOSS_PAIR:
        cases["certain_and_wrong"] = made.table(1 - made.truth)
        cases["half_certain"] = made.table(np.where(made.noisy > 0.5, 1, 0))
    if made.id in LABELS:
        cases["unknown_label"] = cell(77)
        cases["labels_as_floats"] = made.table(made.noisy.astype(float))
        cases["fraction"] = cell(1.5)
    return {name: csv(frame) for name, frame in cases.items()}


def write_prepared(root: Path, made: Made, answers: str, sample: str) -> None:
    """Writes one competition below ``root`` as ``mlebench prepare`` leaves it."""
    prepared = root / made.id / "prepared"
    for path in (prepared / answers, prepared / sample, prepared / "public/description.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
    (prepared / answers).write_bytes(csv(made.answers))
    (prepared / sample).write_bytes(csv(made.table(made.sample)))
    (prepared / "public/description.md").write_text(f"# {made.id}\n\nPredict {', '.join(made.columns[:3])}.\n")
    (prepared / "public/test").mkdir(exist_ok=True)
    (prepared / "public/test/a.txt").write_text("a")


def many_classes() -> dict[str, tuple[str, ...]]:
    """Stand-ins for the 120 breeds and 99 species; upstream.py puts the true names in their place."""
    return {
        "dog-breed-identification": tuple(f"breed_{index:03d}" for index in range(120)),
        "leaf-classification": tuple(f"Species_{index:02d}" for index in range(99)),
    }


Grade = Callable[[pd.DataFrame, pd.DataFrame], float]


def frame_of(data: bytes) -> pd.DataFrame:
    """Reads a table as MLE-bench does."""
    return pd.read_csv(io.BytesIO(data), float_precision="round_trip")
