"""The page in a real browser: its script runs under its own content policy, and the filters work."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sandmle.viewer.html import write_html
from tests.evaluation.run_builder import episode, step, write_run

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: sudo apt install chromium"),
]
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"),
)


def _load(page: Path, profile: Path, fragment: str = "") -> tuple[str, str]:
    """Returns the page's document after its script has run, and what the browser logged."""
    url = f"{page.as_uri()}{fragment}"
    command = [str(CHROMIUM), *_OPTIONS, f"--user-data-dir={profile}", "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout, done.stderr


def _page(folder: Path) -> Path:
    steps = (step(observation="</script><script>document.title='broken'</script> KeyError: x"),)
    run = write_run(
        folder / "run",
        [episode(f"t{task}", "p", 0, 0.9, steps=steps if task == 1 else (step(0),)) for task in range(3)],
    )
    return write_html(run, folder / "report.html")


def test_the_script_runs_and_a_link_opens_its_episode(tmp_path: Path) -> None:
    document, log = _load(_page(tmp_path), tmp_path / "profile", "#episode-2")
    assert "3 of 3 shown" in document
    assert '<html lang="en" class="js">' in document
    opened = re.search(r'<details class="item" id="episode-2"[^>]*>', document)
    assert opened
    assert "open" in opened.group()
    assert "Refused to" not in log
    assert "Content Security Policy" not in log
    assert "<title>run · SandMLE</title>" in document


def test_the_search_hides_what_does_not_match(tmp_path: Path) -> None:
    page = _page(tmp_path)
    # The reader's typing, as the value that the field has when the script starts.
    page.write_text(page.read_text().replace('name="words"', 'name="words" value="keyerror"'))
    document, _ = _load(page, tmp_path / "profile")
    assert "1 of 3 shown" in document
    hidden = re.findall(r'<details class="item" id="(episode-\d)"[^>]*hidden', document)
    assert hidden == ["episode-1", "episode-3"]
