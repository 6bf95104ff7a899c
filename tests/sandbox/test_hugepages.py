"""Moving libraries onto huge pages: how they are grouped, and that everything still works afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandmle.sandbox.boot import environment, inner_command
from sandmle.sandbox.inner import hugepages

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def pages() -> Iterator[int]:
    """Returns the address of 16 pages without access that nobody else maps anything into."""
    libc = hugepages._libc()
    start = libc.mmap(None, 16 * PAGE, 0, 0x22, -1, 0)
    yield start
    libc.munmap(start, 16 * PAGE)


@pytest.mark.parametrize(
    ("spans", "free", "expected"),
    [
        ([], [], []),
        ([(0, 2)], [], [1]),
        ([(0, 2), (2, 4), (4, 6)], [], [3]),
        ([(0, 2), (3, 5)], [2], [2]),
        ([(0, 2), (3, 5)], [], [1, 1]),
        ([(0, 2), (5, 6)], [2, 4], [1, 1]),  # what reaches between them from elsewhere divides too
        ([(0, 2), (3, 5), (6, 8), (9, 10), (10, 12)], [2, 8], [2, 3]),
    ],
)
def test_groups_have_nothing_else_between_them_and_never_will(
    spans: list[tuple[int, int]], free: list[int], expected: list[int], pages: int
) -> None:
    for page in free:
        hugepages._libc().munmap(pages + page * PAGE, PAGE)
    assert hugepages.join([(pages + start * PAGE, pages + end * PAGE) for start, end in spans]) == expected
    if expected == [2]:
        assert not hugepages._reserve(pages + free[0] * PAGE, pages + (free[0] + 1) * PAGE)


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
