"""Ids, row order, file names, file sizes and file times must not tell the answers (case N01)."""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from sandmle.errors import BundleError
from sandmle.gate.association import FALSE_ALARM_RATE, Association, strongest_correlation, strongest_neighbours
from sandmle.gate.base import Check, Finding, GateContext
from sandmle.gate.names import name_cues, natural_rank
from sandmle.gate.pictures import content_sizes

_SAME_ORDER = 0.95
_FIXED_RATE = {".bmp", ".wav", ".npy"}  # of text and compressed files, the size is honest content


def run(context: GateContext) -> Finding:
    """Tests every cue against every view of the target, in the training rows and in the hidden answers.

    Where rows follow time, their order is public knowledge, and so are orders that go with it; where rows belong to
    entities, only the order within an entity counts.
    """
    found: list[tuple[str, Association]] = []
    n_tests = 0
    for part, frame, views in (
        ("train.csv", context.train, context.train_views),
        ("test.csv", context.test, context.answer_views),
    ):
        orders, cues = _cues(context, frame)
        blocks = _blocks(context, frame)
        if context.spec.dna.time_ordered:
            orders = {name: order for name, order in orders.items() if not _follows_time(order)}
        results = [strongest_correlation({**cues, **orders}, views, blocks)]
        if orders:
            results.append(strongest_neighbours(orders, views, blocks))
        found += [(part, result) for result in results]
        n_tests += sum(result.n_tests for result in results)
    part, worst = min(found, key=lambda pair: pair[1].p_value)
    corrected = Association(worst.cue, worst.view, worst.p_value, n_tests).corrected
    message = f"in {part}, the {worst.cue} tells {worst.view!r}" if corrected < FALSE_ALARM_RATE else ""
    return Finding(not message, message, corrected, FALSE_ALARM_RATE)


def _follows_time(order: np.ndarray) -> bool:
    """Tells whether an order of rows that stand in the order of time is, nearly, the same or its reverse."""
    return abs(float(np.corrcoef(order, np.arange(len(order)))[0, 1])) > _SAME_ORDER


def _cues(context: GateContext, frame: pd.DataFrame) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
    """Returns the orders of the rows, and the numbers that are no order."""
    rows = np.arange(len(frame), dtype=float)
    orders = {"row order": rows}
    cues = {f"row number modulo {modulus}": np.mod(rows, modulus) for modulus in (2, 3)}
    for name in [context.spec.id_column, *context.media_columns]:
        names = [re.split(r"[/\\]", cell)[-1] for cell in frame[name]]
        orders[f"order of {name}"] = natural_rank(names)
        cues.update(name_cues(name, names))
        if name in context.media_columns:
            folders = [cell.rpartition("/")[0] for cell in frame[name]]
            cues.update(name_cues(f"folder of {name}", folders))
            cues.update(_file_cues(context, name, frame))
    return orders, cues


def _file_cues(context: GateContext, name: str, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    paths = [context.media.get(cell) for cell in frame[name]]
    if None in paths:
        missing = frame[name][[path is None for path in paths]].iloc[0]
        raise BundleError(f"task {context.spec.task_id}: there is no file public/{missing}")
    there = [path for path in paths if path is not None]
    stats = [path.stat() for path in there]
    cues = {f"modification time of {name}": np.array([float(stat.st_mtime_ns) for stat in stats])}
    sizes = np.array([float(stat.st_size) for stat in stats])
    suffixes = {path.suffix.lower() for path in there}
    if suffixes == {".png"} and np.ptp(sizes) > 0:
        cues[f"file size of {name} beyond its pixels"] = sizes - content_sizes([path.read_bytes() for path in there])
    elif suffixes <= _FIXED_RATE:
        cues[f"file size of {name}"] = sizes
    return cues


def _blocks(context: GateContext, frame: pd.DataFrame) -> np.ndarray | None:
    if not context.group_columns:
        return None
    blocks: np.ndarray = frame.groupby(context.group_columns[:1]).ngroup().to_numpy()
    return blocks


CHECK = Check("order_leaks", run)
