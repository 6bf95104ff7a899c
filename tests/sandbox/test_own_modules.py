from pathlib import Path

from sandmle.sandbox import inner
from sandmle.sandbox.inner import runner


def test_every_inner_module_is_forgotten_before_code_starts():
    folder = Path(inner.__file__).parent
    assert sorted(runner._OWN_MODULES) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
