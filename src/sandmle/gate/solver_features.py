"""The independent solver's features: from the two tables and their files to numbers.

Its source stands before that of ``solver_script`` in the program that the gate sends into the sandbox.
"""

import json
import re
import wave
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer

Matrix = np.ndarray
MOST_LEVELS = 25
MOST_CROSSED = 6
SIDE = 16
SUMMARY = 12
BLOCK_WEIGHT = 16
FAR = 4.0
PICTURES = (".png", ".jpg", ".jpeg", ".bmp")


class Data(NamedTuple):
    """Both tables as numbers."""

    x: Matrix  # [n_train, n_features]
    fresh: Matrix  # [n_test, n_features]
    n_single: int  # features that come from one column each; the others come from pairs


def build_features(train: pd.DataFrame, test: pd.DataFrame, folder: Path) -> Data:
    """Returns numbers for both tables, whose files lie in a folder."""
    both = pd.concat([train, test], ignore_index=True)
    n = len(train)
    blocks: list[Matrix] = []
    plain: list[Matrix] = []
    for name in both.columns:
        made, is_number = column_features(both[name], n, folder)
        blocks += made
        plain += made[:1] if is_number else []
    blocks += series_features(both)
    single = lively(blocks, n) if blocks else np.zeros((len(both), 1))
    pairs = crossed(plain[:MOST_CROSSED])
    features = np.hstack([single, lively(pairs, n)]) if pairs else single
    return Data(features[:n], features[n:], single.shape[1])


def lively(blocks: list[Matrix], n_train: int) -> Matrix:
    """Returns the columns that vary in the training rows, scaled there; a wide block counts like a few columns."""
    made = []
    for block in blocks:
        columns = block.reshape(len(block), -1)
        columns = columns[:, np.ptp(columns[:n_train], axis=0) > 0]
        if columns.shape[1]:
            scaled = (columns - columns[:n_train].mean(axis=0)) / columns[:n_train].std(axis=0)
            made.append(scaled.clip(-FAR, FAR) * min(1.0, np.sqrt(BLOCK_WEIGHT / columns.shape[1])))
    return np.hstack(made) if made else np.zeros((len(blocks[0]), 1))


def column_features(cells: pd.Series, n_train: int, folder: Path) -> tuple[list[Matrix], bool]:
    """Returns feature blocks of one column, and whether it holds numbers."""
    numbers = pd.to_numeric(cells, errors="coerce")
    known = cells.notna()
    if known.any() and numbers.notna().sum() >= 0.99 * known.sum():
        filled = np.asarray(numbers.fillna(numbers.median()), dtype=float)
        made = [filled]
        if filled.min() >= 0 and filled.max() > 20 * (np.median(filled) + 1e-9):
            made.append(np.log1p(filled))
        if not known.all():
            made.append(np.asarray(known, dtype=float))
        if 2 < numbers.nunique() <= 12:
            made += indicators(numbers.astype(str))
        return made, True
    text = cells.fillna("").astype(str)
    sample = text[text != ""].head(40)
    vectors = file_vectors(text, folder)
    if vectors:
        return media_features(vectors, n_train), False
    if sample.str.match(r"\d{4}-\d\d-\d\d|\d\d/\d\d/\d{4}").all():
        return date_features(text), False
    if text.nunique() <= MOST_LEVELS:
        return indicators(text), False
    if text.str.fullmatch(r"\S+( \S+){7,}").all() and text.str.count(" ").nunique() == 1 and is_numbers(text.iloc[0]):
        series = np.array([cell.split() for cell in text], dtype=float)
        return [series, *summed_up(series)], False
    if sample.str.count(" ").mean() >= 2:
        return text_features(text, n_train), False
    if sample.str.fullmatch(r"[A-Za-z]{8,}").all():
        return text_features(text, n_train, analyzer="char"), False
    return code_features(text), False


def series_features(frame: pd.DataFrame) -> list[Matrix]:
    """Returns summaries of numbered columns that read like a series: level, spread, trend, wiggle, peaks, spectrum."""
    families: dict[str, list[str]] = {}
    for name in frame.columns:
        families.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    made: list[Matrix] = []
    for names in families.values():
        if len(names) < 8:
            continue
        series = frame[names].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
        if not np.isfinite(series).any():
            continue
        made += summed_up(np.where(np.isfinite(series), series, np.nanmedian(series)))
    return made


def summed_up(series: Matrix) -> list[Matrix]:
    """Returns level, spread, trend, wiggle, peaks and spectrum of series of one length, one a row."""
    steps = np.diff(series, axis=1)
    time = np.linspace(-1, 1, series.shape[1])
    centred = series - series.mean(axis=1, keepdims=True)
    power = np.log1p(np.abs(np.fft.rfft(centred, axis=1)) ** 2)[:, 1:9]
    made = [series.mean(axis=1), series.std(axis=1), series @ time, steps.std(axis=1)]
    made += [series.max(axis=1), series.min(axis=1), series.argmax(axis=1).astype(float), np.abs(steps).max(axis=1)]
    return [*made, (centred[:, 1:] * centred[:, :-1]).mean(axis=1), *power.T]


def is_numbers(cell: str) -> bool:
    """Tells a cell of numbers from one of words."""
    return all(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", part) for part in cell.split())


def indicators(cells: pd.Series) -> list[Matrix]:
    """Returns one column a level, the commonest levels first."""
    return [np.asarray(cells == level, dtype=float) for level in cells.value_counts().index[:MOST_LEVELS]]


def date_features(cells: pd.Series) -> list[Matrix]:
    """Returns parts of dates, and sine and cosine of the cyclic ones."""
    times = pd.to_datetime(cells, errors="coerce", format="mixed")
    times = times.fillna(times.min())
    made = [np.asarray((times - times.min()).dt.total_seconds(), dtype=float)]
    for part, period in (("hour", 24), ("dayofweek", 7), ("month", 12), ("day", 31), ("dayofyear", 365.25)):
        values = np.asarray(getattr(times.dt, part), dtype=float)
        made += [values, np.sin(2 * np.pi * values / period), np.cos(2 * np.pi * values / period)]
    made += [np.asarray(times.dt.dayofweek == day, dtype=float) for day in range(7)]
    return made


def text_features(cells: pd.Series, n_train: int, analyzer: str = "word") -> list[Matrix]:
    """Returns counts of words and word pairs, or of letters and pairs of them, of marks, and lengths."""
    pattern = r"\w+"  # words of one letter too
    counter = CountVectorizer(
        ngram_range=(1, 2), min_df=3, max_features=300, analyzer=analyzer, lowercase=analyzer == "word",
        token_pattern=pattern,
    )  # fmt: skip
    try:
        counter.fit(cells[:n_train])
        made = np.asarray(counter.transform(cells).todense(), dtype=float)
    except ValueError:  # nothing stands in three rows
        made = np.zeros((len(cells), 0))
    marks = [np.asarray(cells.str.count(mark), dtype=float) for mark in (" ", "!", r"\?", r"\d", "[A-Z]{2}")]
    return [made, np.asarray(cells.str.len(), dtype=float), *marks]


def code_features(cells: pd.Series) -> list[Matrix]:
    """Returns the runs of letters and digits of codes, each as a number or as indicators."""
    parts = cells.map(lambda cell: re.findall(r"[A-Za-z]+|\d+", cell))
    made = [np.asarray(cells.str.len(), dtype=float)]
    for at in range(min(5, int(parts.str.len().max() or 0))):
        run = parts.map(lambda found, at=at: found[at] if at < len(found) else "")
        numbers = pd.to_numeric(run, errors="coerce")
        if numbers.notna().mean() > 0.9:
            values = np.asarray(numbers.fillna(0), dtype=float)
            made += [values, np.mod(values, 2), np.mod(values, 10)]
        elif run.nunique() <= MOST_LEVELS:
            made += indicators(run)
        else:
            made += indicators(run.str[:1])
    return made


def file_vectors(cells: pd.Series, folder: Path) -> list[Matrix]:
    """Returns the files that cells name as numbers; an empty list where they name none."""
    stored = folder / f"{cells.name}.npy"
    if stored.is_file():  # one array for all files, numbered
        entries = np.load(stored)
        suffix = Path(cells.iloc[0]).suffix
        chosen = [entries[int(re.findall(r"\d+", cell)[-1])] for cell in cells]
        if suffix in PICTURES:
            return list(picture_vectors(Image.fromarray(entry) for entry in chosen))
        if suffix == ".wav":
            return list(sound_vectors(np.array(chosen, dtype=float)))
        return [table_vector(entry) for entry in chosen]
    sample = cells[cells != ""].head(40)
    if not sample.map(
        lambda cell: (folder / cell).is_file() if len(cell) < 200 and "\x00" not in cell else False
    ).all():
        return []
    if all(cell.lower().endswith(PICTURES) for cell in cells):
        return list(picture_vectors(opened(folder, cells)))
    if all(cell.lower().endswith(".wav") for cell in cells):
        sounds = [read_sound(folder / cell) for cell in cells]
        length = min(len(sound) for sound in sounds)
        return list(sound_vectors(np.array([sound[:length] for sound in sounds])))
    return [file_vector(folder / cell) for cell in cells]


def opened(folder: Path, names: pd.Series) -> Iterator[Image.Image]:
    """Yields pictures, one at a time."""
    for name in names:
        with Image.open(folder / name) as picture:
            yield picture


def picture_vectors(pictures: Iterable[Image.Image]) -> Matrix:
    """Returns the grey pixels of small copies, and their summaries, one row a picture."""
    small = [np.asarray(picture.convert("L").resize((SIDE, SIDE))) for picture in pictures]
    grey = np.array(small, dtype=float) / 255
    return np.hstack([grey.reshape(len(grey), -1), surface_summary(grey)])


def media_features(vectors: list[Matrix], n_train: int) -> list[Matrix]:
    """Returns main components and summaries of what files hold."""
    width = max(len(vector) for vector in vectors)
    raw = np.array([np.pad(vector, (0, width - len(vector))) for vector in vectors])
    n_parts = min(24, n_train - 1, width)
    if width <= 2 * n_parts:
        return [raw]
    scaled = (raw - raw[:n_train].mean(axis=0)) / (raw[:n_train].std(axis=0) + 1e-9)
    return [PCA(n_parts, random_state=0).fit(scaled[:n_train]).transform(scaled), raw[:, -SUMMARY:]]


def file_vector(path: Path) -> Matrix:
    """Returns one file as numbers; the last ``SUMMARY`` of them sum the file up."""
    suffix = path.suffix.lower()
    if suffix == ".json":
        return json_vector(path.read_bytes())
    if suffix == ".csv":
        return table_vector(read_table(path))
    return text_vector(path.read_bytes())


def read_sound(path: Path) -> Matrix:
    """Returns the samples of a sound."""
    with wave.open(str(path), "rb") as sound:
        kind = {1: np.uint8, 2: np.int16, 4: np.int32}[sound.getsampwidth()]
        return np.frombuffer(sound.readframes(sound.getnframes()), dtype=kind).astype(float)


def read_table(path: Path) -> Matrix:
    """Returns the numbers of a table."""
    try:
        return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except ValueError:  # it holds words or gaps
        return pd.read_csv(path).select_dtypes("number").to_numpy(dtype=float)


def text_vector(data: bytes) -> Matrix:
    """Returns how often each character stands there."""
    counts = np.bincount(np.frombuffer(data[:20000], dtype=np.uint8), minlength=128)[32:127].astype(float)
    return np.concatenate([counts / max(1, len(data[:20000])), counts])


def json_vector(data: bytes) -> Matrix:
    """Returns a graph's counts, and of anything else how often each character stands there."""
    found = json.loads(data)
    is_graph = isinstance(found, dict) and isinstance(found.get("nodes"), list) and "edges" in found
    if is_graph and all(isinstance(node, list) and is_number(node[-1]) for node in found["nodes"]):
        return graph_vector(found)
    return text_vector(data)


def is_number(cell: Any) -> bool:
    """Tells numbers from texts."""
    return isinstance(cell, int | float)


def graph_vector(graph: dict[str, Any]) -> Matrix:
    """Returns counts of nodes, edges, degrees and kinds of a graph, and what its nodes' values are like."""
    kinds = np.array([ord(str(node[0])[0]) % 26 for node in graph["nodes"]], dtype=int)
    values = np.array([float(node[-1]) for node in graph["nodes"]])
    ends = np.array(graph["edges"], dtype=int).reshape(-1, 2)
    degrees = np.bincount(ends.ravel(), minlength=len(kinds))
    alike = int((kinds[ends[:, 0]] == kinds[ends[:, 1]]).sum())
    counts = [len(kinds), len(ends), len(ends) - len(kinds), alike, len(ends) - alike, degrees.max(), degrees.std()]
    spread = [values.mean(), values.std(), values.min(), values.max(), values @ degrees / max(1, degrees.sum())]
    return np.array([*counts, *spread, *np.bincount(degrees, minlength=7)[:7], *np.bincount(kinds, minlength=26)])


def table_vector(values: Matrix) -> Matrix:
    """Returns a series of two columns as it is, with its spectrum; other tables as means and spreads of groups."""
    if values.shape[1] <= 2:
        series = values[:, -1]
        power = np.log1p(np.abs(np.fft.rfft(series - series.mean())) ** 2)[1:11]
        return np.concatenate([series, power, [series.std(), float(np.abs(np.diff(series)).mean())]])
    found = []
    for group in np.unique(values[:, 0]):
        own = values[values[:, 0] == group, 1:]
        rest = own - own.mean(axis=0)
        products = [float((rest[:, i] * rest[:, j]).mean()) for i in range(rest.shape[1]) for j in range(i + 1)]
        found += [*own.mean(axis=0), *products]
    return np.array(found)


def sound_vectors(signals: Matrix) -> Matrix:
    """Returns the log energies of 32 bands, and a summary, of each sound.

    Args:
        signals: Sounds of one length # [n, n_samples]
    """
    centred = signals - signals.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, axis=1)) ** 2
    n = len(signals)
    bands = [band.mean(axis=1) if band.shape[1] else np.zeros(n) for band in np.array_split(power, 32, axis=1)]
    parts = [part.std(axis=1) for part in np.array_split(signals, 8, axis=1)]
    crossings = np.mean(np.diff(np.sign(centred), axis=1) != 0, axis=1)
    summary = [signals.std(axis=1), signals.mean(axis=1), crossings, power.argmax(axis=1).astype(float)]
    return np.column_stack([*np.log1p(bands), *parts, *summary])


def surface_summary(grey: Matrix) -> Matrix:
    """Returns brightness, contrast, gradients both ways, quarters and the centre against the rim, for each picture.

    Args:
        grey: Pictures # [n, SIDE, SIDE]
    """
    inside = (1, 2)
    mean, spread = grey.mean(axis=inside), grey.std(axis=inside)
    across, down = (np.abs(np.diff(grey, axis=axis)).mean(axis=inside) for axis in (2, 1))
    half, rim = SIDE // 2, SIDE // 4
    quarters = [grey[:, r : r + half, c : c + half].mean(axis=inside) for r in (0, half) for c in (0, half)]
    centre = grey[:, rim:-rim, rim:-rim].mean(axis=inside)
    dark = (grey < (mean - spread)[:, None, None]).mean(axis=inside)
    bright = (grey > (mean + spread)[:, None, None]).mean(axis=inside)
    return np.column_stack([mean, spread, across, down, across - down, *quarters, centre - mean, dark, bright])


def crossed(columns: list[Matrix]) -> list[Matrix]:
    """Returns products and ratios of pairs of number columns."""
    made = []
    for at, first in enumerate(columns):
        for second in columns[at + 1 :]:
            made.append((first - first.mean()) * (second - second.mean()))
            if min(first.min(), second.min()) > 0:
                made.append(np.log(first) - np.log(second))
    return made
