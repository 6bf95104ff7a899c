"""Scripted engineers through all four scaffolds on 20 synthetic tasks, with real code in a real sandbox."""

import json

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app


@pytest.mark.slow
@pytest.mark.sandbox
def test_four_scaffolds_on_twenty_tasks(needs_sandbox: None) -> None:
    result = CliRunner().invoke(app, ["bench", "scaffolds", "--count", "20", "--json"])
    assert result.exit_code in (0, 1), result.output
    report = json.loads(result.stdout)
    print(json.dumps(report, indent=1))
    assert report["n_tasks"] == 20
    assert {row["scaffold"] for row in report["rows"]} == {"react", "mle_agent", "aide", "aira"}
    assert report["problems"] == []
