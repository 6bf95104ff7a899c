"""The fidelity page names modules, commands and names that exist."""

import importlib.util
import re
from pathlib import Path

import pytest
from typer.main import get_command

from sandmle.cli.main import app
from sandmle.env import PRESETS
from sandmle.evaluation.suites import BUILTIN as SUITES
from sandmle.gate.checks import STANDARD_CHECKS
from sandmle.records import Trajectory, TrajectoryStatus
from sandmle.scaffolds import BUILTIN as SCAFFOLDS
from sandmle.training.recipe import shipped_recipes

PAGE = Path(__file__).parent.parent / "docs/reference/fidelity.md"
ROWS = [
    cells
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and (cells := [cell.strip() for cell in line.strip("| ").split(" | ")])[0] != "the paper"
]
NAMES = {
    *PRESETS,
    *SUITES,
    *SCAFFOLDS,
    *shipped_recipes(),
    *(check.name for check in STANDARD_CHECKS),
    *(str(status) for status in TrajectoryStatus),
    *Trajectory.model_fields,
    "calibrated",
    "sft",
    "funnel.jsonl",
}


def test_every_row_says_where_it_is_done() -> None:
    assert len(ROWS) > 30
    assert [row[0] for row in ROWS if not re.search("`.+`", row[1])] == []


@pytest.mark.parametrize("word", sorted({word for row in ROWS for word in re.findall(r"`([^`]+)`", row[1])}))
def test_what_a_row_names_exists(word: str) -> None:
    if word.startswith("sandmle."):
        assert importlib.util.find_spec(word) is not None
    elif word.startswith("sandmle "):
        _check_command(word.split()[1:])
    else:
        assert word in NAMES


def _check_command(words: list[str]) -> None:
    command = get_command(app)
    for word in words:
        if word.startswith("--"):
            assert word in {option for each in command.params for option in each.opts}
        elif commands := getattr(command, "commands", None):
            command = commands[word]
