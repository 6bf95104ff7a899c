"""The warm and the cold backend give the same answers for the same code."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandmle.records import ExecResult, Limits
from sandmle.sandbox import ExecRequest
from sandmle.sandbox.bwrap import BwrapSandbox
from sandmle.sandbox.forkserver import ForkserverSandbox

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

_CODES = {
    "random": "import random, numpy as np\nprint(random.random(), np.random.rand(3), np.random.permutation(9))",
    "hashes": "print(hash('a'), hash(b'b'), hash((1, 'c')), {'x', 'y', 'z'}, list({'p', 'q', 'r'}))",
    "traceback": "def f(x):\n    return g(x)\ndef g(x):\n    raise ValueError(x)\nf('words')",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('k') from error",
    "library_traceback": "import numpy as np\nnp.zeros(3).reshape(2, 2)",
    "syntax_error": "x = 1\ny = = 2\n",
    "exit_text": "raise SystemExit('some words')",
    "warning": "import warnings\nwarnings.warn('careful')\nprint('on')",
    "main": "import sys\nprint(__name__, __file__, sys.argv, __spec__, __doc__, sorted(globals()))",
    "environment": "import os\nprint(sorted(os.environ.items()))",
    "limits": "import resource as r\n"
    "print([r.getrlimit(getattr(r, name)) for name in sorted(dir(r)) if name.startswith('RLIMIT')])",
    "identity": "import os\nprint(os.getcwd(), sorted(os.listdir('/')), os.uname().nodename == '')",
    "unfinished": "import sys\nsys.stdout.write('no end')",
    "thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()",
    "killed": "import os\nos.abort()",
}


@pytest.fixture(scope="module")
def backends() -> Iterator[tuple[ForkserverSandbox, BwrapSandbox]]:
    with ForkserverSandbox(workers=1) as warm, BwrapSandbox(workers=1) as cold:
        yield warm, cold


def _both(
    backends: tuple[ForkserverSandbox, BwrapSandbox], tmp_path: Path, code: str, **options: object
) -> list[ExecResult]:
    results = []
    for index, backend in enumerate(backends):
        workspace = tmp_path / str(index)
        workspace.mkdir()
        results.append(backend.execute(ExecRequest(code, workspace, **options)))  # type: ignore[arg-type]
    return results


def _told(result: ExecResult) -> tuple[object, ...]:
    return result.status, result.exit_code, result.stdout, result.stderr, result.detail


@pytest.mark.parametrize("name", list(_CODES))
def test_same_result(backends: tuple[ForkserverSandbox, BwrapSandbox], tmp_path: Path, name: str) -> None:
    warm, cold = _both(backends, tmp_path, _CODES[name], rng_seed=11)
    if name == "identity":
        warm, cold = (each.replace(stdout=each.stdout.replace("'.boot', ", "")) for each in (warm, cold))
    assert _told(warm) == _told(cold)


@pytest.mark.slow
def test_same_model(backends: tuple[ForkserverSandbox, BwrapSandbox], tmp_path: Path) -> None:
    code = """
import numpy as np, pandas as pd, lightgbm
from sklearn.ensemble import RandomForestClassifier, HistGradientBoostingClassifier
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 4)), columns=list("abcd"))
y = (X.a + X.b * X.c > 0).astype(int)
for model in (RandomForestClassifier(20), HistGradientBoostingClassifier(max_iter=20),
              lightgbm.LGBMClassifier(n_estimators=20, verbose=-1)):
    X[type(model).__name__] = model.fit(X[list("abcd")], y).predict_proba(X[list("abcd")])[:, 1]
X.to_csv("submission.csv")
"""
    warm, cold = _both(backends, tmp_path, code, limits=Limits(wall_s=90), collect=("submission.csv",))
    assert warm.file("submission.csv") == cold.file("submission.csv") != None  # noqa: E711
    assert _told(warm) == _told(cold)
