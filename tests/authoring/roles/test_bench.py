"""The bench holds the conversations that it says it does, and counts every reply."""

import json

import pytest
from typer.testing import CliRunner

from sandmle.authoring.roles.bench import run_bench
from sandmle.cli.main import app
from sandmle.errors import ConfigError

pytest.importorskip("pydantic_ai")


def test_all_ways_are_measured_side_by_side():
    result = CliRunner().invoke(
        app, ["bench", "authoring", "--tasks", "2", "--turns", "3", "--delay-ms", "20", "--rounds", "1", "--json"]
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [row["entrant"] for row in report["rows"]] == [
        "openai client",
        "our endpoint alone",
        "whole author",
    ]
    assert report["ideal_s"] == 0.06
    assert all(row["wall_s"] >= report["ideal_s"] for row in report["rows"])
    assert report["above_ideal_share"] < 1


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="the delay is from 0 to 60 s"):
        run_bench(delay_s=-1.0)
