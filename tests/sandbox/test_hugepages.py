"""Moving libraries onto huge pages: how they are grouped, and that everything still works afterwards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sandmle.sandbox.boot import environment, inner_command
from sandmle.sandbox.inner import hugepages


@pytest.mark.parametrize(
    ("spans", "others", "expected"),
    [
        ([], [(0, 10)], []),
        ([(0, 10)], [], [1]),
        ([(0, 10), (10, 20), (25, 30)], [], [3]),
        ([(0, 10), (10, 20), (25, 30)], [(20, 25)], [2, 1]),
        ([(0, 10), (15, 20), (25, 30)], [(10, 15), (22, 23), (40, 50)], [1, 1, 1]),
        ([(10, 20), (20, 30)], [(0, 5), (30, 35)], [2]),
    ],
)
def test_groups_have_nothing_else_between_them(
    spans: list[tuple[int, int]], others: list[tuple[int, int]], expected: list[int]
) -> None:
    assert hugepages.find_runs(spans, sorted([*spans, *others])) == expected


def test_a_mapping_that_reaches_beyond_its_library_divides() -> None:
    # The memory behind a library's data can be one mapping with what was allocated next to it.
    assert hugepages.find_runs([(0, 10), (20, 30)], [(0, 15), (20, 30)]) == [1, 1]
    assert hugepages.find_runs([(0, 10), (20, 30)], [(0, 10), (15, 30)]) == [1, 1]


def test_the_linker_names_its_libraries() -> None:
    found = hugepages.loaded_objects()
    for segments in found.values():
        starts = [segment.start for segment in segments]
        assert starts == sorted(starts)
        assert all(segment.start % 4096 == segment.end % 4096 == 0 for segment in segments)
    assert any("libc" in name for name in found)


def test_libraries_work_after_the_move() -> None:
    code = """
import json, os, sys
from sandmle.sandbox.inner import hugepages, warm
before = frozenset(hugepages.loaded_objects())
warm.load(["numpy", "pandas", "sklearn.linear_model", "lightgbm"])
def mappings():
    with open("/proc/self/maps") as file:
        return len(file.readlines())
count = mappings()
moved = hugepages.gather(before)
import numpy as np, pandas as pd, lightgbm
from sklearn.linear_model import LogisticRegression
if os.fork() == 0:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    target = table["a"] > 0
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    scores = [each.fit(table, target).score(table, target) > 0.9 for each in (LogisticRegression(), model)]
    print(json.dumps([moved, count, mappings(), scores, float(np.linalg.inv(np.eye(3) * 2).sum())]))
    sys.stdout.flush()
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    moved, before, after, scores, total = json.loads(_inside(code))
    assert (scores, total) == ([True, True], 1.5)
    if moved:
        assert moved > 50e6
        assert after < before / 4


def test_a_library_that_starts_a_thread_is_named(tmp_path: Path) -> None:
    (tmp_path / "restless.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()"
    )
    code = f"""
import os, sys
sys.path.insert(0, {str(tmp_path)!r})
from sandmle.sandbox.inner import warm
answer = warm.load(["json", "restless", "csv"])
try:
    warm.settle(frozenset(), (), answer)
except RuntimeError as error:
    print(error)
    sys.stdout.flush()
os._exit(0)
"""
    assert (
        _inside(code) == "importing restless leaves a thread running: no safe forks; use threads=1, or leave it out\n"
    )


def _inside(code: str) -> str:
    """Runs code as the servers' own modules are run."""
    package = inner_command(sys.executable, "kernel", [])
    start = package[package.index("-c") + 1].rpartition("importlib.import_module")[0]
    command = [sys.executable, "-s", "-P", "-c", start + code]
    done = subprocess.run(command, env=environment(1), capture_output=True, text=True, check=True, timeout=120)
    return done.stdout
