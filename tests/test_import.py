"""``import sandmle`` is silent and loads nothing heavy (design section 2)."""

import subprocess
import sys

HEAVY = ("numpy", "pandas", "sklearn", "lightgbm", "torch", "ray", "openai", "aiohttp", "matplotlib", "pydantic")


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_import_is_silent_and_light():
    done = _run(f"import sys, sandmle; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_command_line_starts_without_the_heavy_parts():
    heavy = [name for name in HEAVY if name != "pydantic"]
    done = _run(f"import sys, sandmle.cli.main; print([name for name in {heavy!r} if name in sys.modules])")
    assert done.stdout.strip() == "[]"
