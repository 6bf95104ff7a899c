"""The leaderboard as one HTML page that needs nothing else; quoted rows look different from measured ones."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

import sandmle
from sandmle.evaluation.leaderboard import COLUMNS, LEGEND, build_leaderboard, size_text
from sandmle.viewer.html import environment, write_page


def write_leaderboard_html(run_dirs: Sequence[Path], out: Path) -> Path:
    """Writes the page; the same runs give the same bytes.

    Raises:
        ConfigError: No run directory can be read, or the file cannot be written.
    """
    board = build_leaderboard(run_dirs)
    suites = {suite: [row for row in board.rows if row.suite == suite] for suite in (row.suite for row in board.rows)}
    style = (files("sandmle.viewer") / "assets/style.css").read_text(encoding="utf-8")
    html = (
        environment()
        .get_template("leaderboard.html.j2")
        .render(
            suites=suites,
            columns=COLUMNS,
            legend=LEGEND,
            notes=board.notes,
            size=size_text,
            style=Markup(style),
            version=sandmle.__version__,
        )
    )
    return write_page(html, out)
