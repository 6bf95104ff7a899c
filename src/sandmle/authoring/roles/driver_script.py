"""Runs in the sandbox: calls a model's ``make_data`` and writes what it returned as plain files.

The host believes nothing of it: tables are read as text, media as raw numbers, and everything is checked there. It is
no part of the package's interface.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PARTS = ("train", "test", "oracle")


def fail(message: str) -> None:
    """Ends the run with one line that the model is shown."""
    print(f"make_data: {message}", file=sys.stderr)
    sys.exit(3)


def checked(made: Any, n_train: int, n_test: int) -> dict[str, pd.DataFrame]:
    """Returns the three tables, or ends the run."""
    if not isinstance(made, dict) or set(made) != set(PARTS):
        fail(f"it must return a dict with the keys {', '.join(PARTS)}")
    for name, n_rows in (("train", n_train), ("test", n_test), ("oracle", n_test)):
        table = made[name]
        if not isinstance(table, pd.DataFrame):
            fail(f"{name!r} is a {type(table).__name__}, not a DataFrame")
        if len(table) != n_rows:
            fail(f"{name!r} has {len(table)} rows; {n_rows} were asked for")
    return dict(made)


def unpacked(table: pd.DataFrame, paths: list[str], blob: Any, index: list[Any]) -> pd.DataFrame:
    """Moves the content of path columns into one raw file; the cells become numbers of entries."""
    table = table.reset_index(drop=True).copy()
    for name in paths:
        if name not in table:
            fail(f"there is no column {name!r}")
        cells = []
        for content in table[name]:
            if isinstance(content, str):
                data, kind, shape = content.encode(), "text", []
            else:
                array = np.ascontiguousarray(content)
                if array.dtype not in (np.uint8, np.int16):
                    fail(f"{name!r} holds {array.dtype}; give uint8 pictures, int16 sounds or text")
                data, kind, shape = array.tobytes(), str(array.dtype), list(array.shape)
            cells.append(len(index))
            index.append([kind, shape, len(data)])
            blob.write(data)
        table[name] = cells
    return table


def main(task: dict[str, Any]) -> None:
    """Calls ``make_data`` once for each draw and writes ``DRAW/PART.csv``, ``DRAW/media.bin`` and its index."""
    sys.path.insert(0, ".")
    from make_data import make_data  # type: ignore[import-not-found]

    for draw in task["draws"]:
        folder = Path(draw["name"])
        folder.mkdir(exist_ok=True)
        made = checked(make_data(draw["rng_seed"], draw["n_train"], draw["n_test"]), draw["n_train"], draw["n_test"])
        index: list[Any] = []
        with (folder / "media.bin").open("wb") as blob:
            for part in PARTS:
                paths = [] if part == "oracle" else task["paths"]
                unpacked(made[part], paths, blob, index).to_csv(folder / f"{part}.csv", index=False)
        (folder / "media.json").write_text(json.dumps(index))


if __name__ == "__main__":
    main(TASK)  # type: ignore[name-defined]  # noqa: F821
