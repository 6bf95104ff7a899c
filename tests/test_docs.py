"""Documentation that cannot be followed is wrong: links lead somewhere, commands exist."""

import re
from pathlib import Path

import pytest

from sandmle.cli.main import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"^\s*(?:\$ )?(?:\.venv/bin/)?sandmle ([a-z]+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = [link for link in LINK.findall(page.read_text()) if not link.startswith(("http:", "https:"))]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page):
    known = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    blocks = re.findall(r"^(?: {4}|```(?:bash|console|sh)\n).*?(?=^\S|\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    used = {name for block in blocks for name in COMMAND.findall(block)}
    assert used <= known
