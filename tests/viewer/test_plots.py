import re
import subprocess
import sys
import xml.etree.ElementTree as ET

from sandmle.evaluation.statistics import estimate_mean, spread
from sandmle.viewer.plots import RewardRow, ScoreRow, execution_plot, reward_plot, score_plot

ROWS = [
    RewardRow("strong", estimate_mean({"a": [0.9], "b": [0.7]}), (0.9, 0.7)),
    RewardRow("one $task$ 线 <b>&", estimate_mean({"a": [0.4]}), (0.4,)),
    RewardRow("nothing", estimate_mean({}), ()),
]


def _plots() -> list[str]:
    seconds = {"ok": [0.5, 1.0, 0.0], "timeout": [90.0]}
    return [
        reward_plot(ROWS),
        score_plot([ScoreRow("t1", ((0.5, 3.5), (), (-2.0,)))], [row.label for row in ROWS]),
        execution_plot(seconds, spread([0.5, 1.0, 0.0, 90.0])),
        execution_plot({"ok": [1.0]}, spread([1.0])),
    ]


def test_plots_are_well_formed_and_deterministic() -> None:
    first = _plots()
    assert first == _plots()
    for svg in first:
        ET.fromstring(svg.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))


def test_plots_follow_the_page() -> None:
    for svg in _plots():
        assert not re.search(r"#0[a-d]0[0-3]0", svg)
        assert "var(--ink)" in svg
        assert "font-family" not in svg
        assert "<style" not in svg
        assert "<metadata" not in svg
        assert "http" not in svg


def test_labels_are_plain_text() -> None:
    svg = reward_plot(ROWS)
    assert "one $task$ 线 &lt;b&gt;&amp;" in svg


def test_plots_are_the_same_in_another_process() -> None:
    code = (
        "from sandmle.evaluation.statistics import spread\n"
        "from sandmle.viewer.plots import execution_plot\n"
        "import hashlib\n"
        "print(hashlib.sha256(execution_plot({'ok': [1.0, 2.0]}, spread([1.0, 2.0])).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_importing_the_viewer_does_not_import_matplotlib() -> None:
    code = "import sys, sandmle.viewer.html; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
