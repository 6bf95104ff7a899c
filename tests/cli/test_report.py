import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandmle.authoring.funnel import Proposal, ProposalRecord, Stage
from sandmle.cli.main import app
from sandmle.errors import ConfigError
from sandmle.evaluation.schema import RunReport
from sandmle.evaluation.taskset import TaskSetCard
from sandmle.parallel import open_run_folder
from tests.bundles import draft, saved
from tests.evaluation.run_builder import episode, write_run


def _run(folder: Path) -> Path:
    return write_run(folder, [episode(f"t{task}", "p", 0, 0.9) for task in range(3)])


def test_report_prints_a_table_and_writes_files(tmp_path: Path) -> None:
    markdown, html = tmp_path / "out" / "report.md", tmp_path / "out" / "report.html"
    result = CliRunner().invoke(
        app, ["report", str(_run(tmp_path / "run")), "--markdown", str(markdown), "--html", str(html)]
    )
    assert result.exit_code == 0, result.output
    assert "3/3" in result.stdout
    assert markdown.read_text().startswith("# Report")
    assert html.read_text().startswith("<!doctype html>")
    assert f"wrote {html}" in result.stderr


def test_report_json_is_the_record(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(_run(tmp_path / "run")), "--json"])
    assert result.exit_code == 0
    assert RunReport.model_validate(json.loads(result.stdout)).policies[0].n_finished == 3


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_report_names_what_it_left_out_and_goes_on(tmp_path: Path, options: list[str]) -> None:
    broken, good = _run(tmp_path / "broken"), _run(tmp_path / "good")
    with (broken / "trajectories.jsonl").open("a") as file:
        file.write('{"half": \n')
    result = CliRunner().invoke(app, ["report", str(broken), str(good), str(tmp_path / "absent"), *options])
    assert result.exit_code == 1
    output = result.stdout + result.stderr
    assert f"{broken / 'trajectories.jsonl'}, line 4" in output
    assert f"no folder {tmp_path / 'absent'}" in output
    assert "good" in output


def test_report_without_any_run_is_the_users_mistake(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(tmp_path / "absent")])
    assert isinstance(result.exception, ConfigError)
    result = CliRunner().invoke(app, ["report", str(_run(tmp_path / "run")), "--markdown", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert "cannot write" in str(result.exception)


def test_report_names_a_task_set_among_runs_as_no_run(tmp_path: Path) -> None:
    with open_run_folder(tmp_path / "set", "funnel.jsonl", {"seeds": ["AI4Code"], "count": 1}) as folder:
        folder.append("{}")
    result = CliRunner().invoke(app, ["report", str(_run(tmp_path / "run")), str(tmp_path / "set")])
    assert result.exit_code == 1
    assert f"{tmp_path / 'set'} is not a run directory" in result.stdout


def test_report_of_a_task_set_is_its_data_card(tmp_path: Path) -> None:
    proposal = Proposal(index=0, seed_id="AI4Code", k=0, rng_seed=1)
    kept = ProposalRecord(proposal=proposal, stage=Stage.GATE_PASSED, task_id="x", solver_wall_s=1.5, cpu_s=3.0)
    lost = kept.replace(
        proposal=proposal.replace(index=1), stage=Stage.EVALUATOR_RAN, lost_to="thresholds", reason="too close"
    )
    with open_run_folder(tmp_path / "set", "funnel.jsonl", {"seeds": ["AI4Code"], "count": 1}) as folder:
        folder.append(kept.to_json())
        folder.append(lost.to_json())
    for kind in ("binary", "regression", "text", "image"):
        saved(draft(kind), tmp_path / "set" / "tasks")
    files = [str(tmp_path / "card.md"), str(tmp_path / "card.html")]
    result = CliRunner().invoke(app, ["report", str(tmp_path / "set"), "--markdown", files[0], "--html", files[1]])
    assert result.exit_code == 0, result.output
    assert "1 of 2 proposals were kept" in result.stdout
    assert "| thresholds | 1 |" in result.stdout
    assert "hand-binary-0" in Path(files[0]).read_text()
    page = Path(files[1]).read_text()
    assert page.count("data:image/png;base64,") == 8
    assert page.count("<details>") == 3  # tabular, text, image
    result = CliRunner().invoke(app, ["report", str(tmp_path / "set"), "--retrain", "4", "--json"])
    card = TaskSetCard.model_validate_json(result.stdout)
    assert card.n_tasks == 4
    assert card.distributions["modality"].counts == {"tabular": 2, "image": 1, "text": 1}
    assert card.distributions["modality"].entropy_bits == 1.5
    assert card.solver_wall_s.mean == 1.5
    assert card.retraining is not None
    assert card.retraining.n_left_out == 1  # pictures: no table for the solvers to read
    assert card.retraining.rank_same_task is not None
    assert card.retraining.same_medal is not None


def test_view_writes_the_page_and_prints_its_path(tmp_path: Path) -> None:
    run = _run(tmp_path / "run")
    result = CliRunner().invoke(app, ["view", str(run)])
    assert result.exit_code == 0
    assert Path(result.stdout.strip()) == run / "report.html"
    assert (run / "report.html").is_file()
    result = CliRunner().invoke(app, ["view", str(run), "--out", str(tmp_path / "x.html"), "--json"])
    assert json.loads(result.stdout)["path"] == str(tmp_path / "x.html")
    result = CliRunner().invoke(app, ["view", str(tmp_path / "absent")])
    assert isinstance(result.exception, ConfigError)
    assert not (tmp_path / "absent").exists()
