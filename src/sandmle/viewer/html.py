"""``write_html``: one run, or several, as one HTML file that needs nothing else and trusts nothing it shows.

Whatever comes from a model or a file is escaped by Jinja's autoescape; a content policy in the page allows only the
page's own script, by its hash, so that markup that slipped through could not run either.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sandmle
from sandmle.evaluation import formats
from sandmle.evaluation.report import read_runs, report_of
from sandmle.evaluation.text import clean_line
from sandmle.viewer.files import write_file
from sandmle.viewer.page import Page, build_page
from sandmle.viewer.plots import N_COLOURS
from sandmle.viewer.sample import MAX_TRANSCRIPT_BYTES, Sample, sample_episodes
from sandmle.viewer.transcript import cut, turns_of
from sandmle.viewer.tree import tree_of

if TYPE_CHECKING:
    from jinja2 import Environment


def write_html(
    run_dir: Path | Sequence[Path],
    out: Path,
    *,
    tasks_dir: Path | None = None,
    training: Path | None = None,
    max_transcript_bytes: int = MAX_TRANSCRIPT_BYTES,
) -> Path:
    """Writes the HTML report; the same run gives the same bytes.

    Args:
        run_dir: One run directory, or several to compare.
        out: The file; written whole or not at all.
        tasks_dir: Folder of the tasks, for titles, domains and descriptions; None for what the run itself tells.
        training: A training run whose curve is shown; None for none.
        max_transcript_bytes: Bound on the transcripts that the page holds; beyond it, it holds a sample and says so.

    Returns:
        The path of the file.

    Raises:
        ConfigError: No run directory or no curve can be read, or the file cannot be written.
    """
    run_dirs = [run_dir] if isinstance(run_dir, Path) else list(run_dir)
    html = render_html(run_dirs, tasks_dir=tasks_dir, training=training, max_transcript_bytes=max_transcript_bytes)
    return write_page(html, out)


def write_page(html: str, out: Path) -> Path:
    """Writes a page whole or not at all, and returns its path.

    Raises:
        ConfigError: The file cannot be written.
    """
    return write_file(html.encode("utf-8", "replace"), out)


def render_html(
    run_dirs: Sequence[Path],
    *,
    tasks_dir: Path | None = None,
    training: Path | None = None,
    max_transcript_bytes: int = MAX_TRANSCRIPT_BYTES,
) -> str:
    """Returns the HTML report as text.

    Raises:
        ConfigError: No run directory or no curve can be read.
    """
    from markupsafe import Markup

    runs, problems = read_runs(run_dirs)
    report = report_of(runs, problems)
    page = build_page(runs, report, tasks_dir, training)
    pages = environment()
    sample = _render_sample(pages, page, max_transcript_bytes)
    assets = files("sandmle.viewer") / "assets"
    script = (assets / "script.js").read_text(encoding="utf-8")
    return pages.get_template("page.html.j2").render(
        **vars(page),
        trajectories=[Markup(fragment) for fragment in sample.fragments],
        sample_note=sample.note,
        style=Markup((assets / "style.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        n_colours=N_COLOURS,
        version=sandmle.__version__,
    )


def _render_sample(pages: "Environment", page: Page, max_bytes: int) -> Sample:
    template = pages.get_template("trajectory.html.j2")

    def render(run: Any, episode: Any, anchor: str) -> str:
        trajectory = run.trajectory(episode)
        return template.render(
            trajectory=trajectory,
            turns=turns_of(trajectory),
            tree=tree_of(trajectory),
            anchor=anchor,
            run=run.label,
            title=page.titles.get((episode.task_id, run.task_hashes.get(episode.task_id, "")), episode.task_id),
            medal=episode.medal,
            score=episode.score,
            several_runs=page.several_runs,
        )

    return sample_episodes(page.sources, render, max_bytes)


def environment() -> "Environment":
    """Returns the templates of ``assets``, everything escaped, with the filters that pages write numbers by."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("sandmle.viewer", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": formats.number_text,
        "score": formats.score_text,
        "percent": formats.percent_text,
        "error": formats.error_text,
        "seconds": formats.seconds_text,
        "counts": lambda counts: formats.counts_text(counts).replace("_", " "),
        "medals": formats.medals_text,
        "episodes": formats.episodes_text,
        "cost": lambda row: formats.cost_text(row.tokens, row.n_planned - row.n_missing),
        "line": clean_line,
        "words": lambda name: str(name).replace("_", " "),
        "cut": cut,
    }
    return made
