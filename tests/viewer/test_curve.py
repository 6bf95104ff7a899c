"""The curve of a training run, as a PNG and in the page."""

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import ConfigError
from sandmle.viewer.curve import read_curve, write_curve
from sandmle.viewer.html import render_html
from tests.evaluation.run_builder import episode, write_run


@pytest.fixture
def training(tmp_path: Path) -> Path:
    folder = tmp_path / "grpo <run>"
    folder.mkdir()
    steps = [{"train_step": at, "reward": 0.3 + 0.05 * at, "valid_share": 0.9} for at in range(1, 8)]
    steps.append({"train_step": 8, "reward": None, "valid_share": None})
    text = "".join(json.dumps(line) + "\n" for line in steps)
    (folder / "metrics.jsonl").write_text(text + '{"train_step": 9, "rew')  # killed while writing
    (folder / "validation.jsonl").write_text(json.dumps({"train_step": 5, "reward": 0.5}) + "\n")
    return folder


def test_the_log_is_read_as_far_as_it_is_whole(training: Path) -> None:
    curve = read_curve(training)
    assert [at for at, _ in curve.train] == [1, 2, 3, 4, 5, 6, 7]
    assert curve.validation == ((5, 0.5),)


def test_the_png_is_a_picture_and_the_same_each_time(training: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["train", "curve", str(training)])
    assert result.exit_code == 0, result.output
    path = Path(result.stdout.replace("\n", ""))
    assert path == training / "curve.png"
    with Image.open(path) as picture:
        assert picture.size[0] > 600
        assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 10
    again = write_curve(read_curve(training), tmp_path / "more" / "curve.png")
    assert again.read_bytes() == path.read_bytes()


def test_the_page_shows_the_curve_before_all_plots(training: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "run", [episode("one", "p", 0)])
    html = render_html([tmp_path / "run"], training=training)
    assert html.index("Training: grpo &lt;run&gt;") < html.index("Reward by policy")
    assert "held-out seeds" in html


def test_a_folder_without_a_train_step_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no train_step with a reward"):
        read_curve(tmp_path)
