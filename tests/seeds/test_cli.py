import json

import pytest
from typer.testing import CliRunner

from sandmle.cli import seeds
from sandmle.errors import SeedError
from sandmle.seeds import seed_ids

runner = CliRunner()


def test_list_shows_one_seed_a_line():
    result = runner.invoke(seeds.app, ["list"])
    assert result.exit_code == 0
    assert tuple(line.split("\t")[0] for line in result.stdout.splitlines()) == seed_ids()


def test_list_all_marks_lite():
    lines = runner.invoke(seeds.app, ["list", "--all"]).stdout.splitlines()
    assert len(lines) == 82
    assert sum(line.split("\t")[1] == "evaluation" for line in lines) == 22


def test_list_as_json():
    records = json.loads(runner.invoke(seeds.app, ["list", "--json"]).stdout)
    assert tuple(record["id"] for record in records) == seed_ids()


def test_show():
    text = runner.invoke(seeds.app, ["show", "champs-scalar-coupling"]).stdout
    assert "champs-scalar-coupling: seed" in text
    assert "group_log_mae" in text
    record = json.loads(runner.invoke(seeds.app, ["show", "champs-scalar-coupling", "--json"]).stdout)
    assert record["dna"]["direction"] == "minimize"


def test_show_says_that_lite_is_no_seed():
    assert "evaluation only" in runner.invoke(seeds.app, ["show", "leaf-classification"]).stdout


def test_show_unknown_id():
    with pytest.raises(SeedError, match="did you mean"):
        runner.invoke(seeds.app, ["show", "champs-scalar"], catch_exceptions=False)
