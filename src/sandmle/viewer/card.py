"""``write_card_html``: a task set's data card as one HTML file that needs nothing else."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path

import sandmle
from sandmle.errors import BundleError
from sandmle.evaluation.taskset.card import TaskSetCard
from sandmle.evaluation.taskset.markdown import card_table, task_table
from sandmle.grading import TableError, read_table
from sandmle.tasks import Bundle, find_bundles, load_bundle
from sandmle.tasks.bundle import TRAIN_FILE
from sandmle.viewer.html import environment, write_page
from sandmle.viewer.transcript import cut

_ROWS = 5
_PICTURES = 8
_MOST_PICTURE_BYTES = 100_000
_MOST_CELL_CHARS = 60
_MOST_COLUMNS = 12
_MOST_DESCRIPTION_CHARS = 6_000


@dataclass(frozen=True)
class SamplePage:
    """One task as an agent sees it.

    Attributes:
        title: The task's title.
        facts: Modality, kind and metric.
        description: What the agent reads.
        header: First columns of train.csv.
        rows: First rows of train.csv.
        pictures: Names and base64 of some PNG files.
    """

    title: str
    facts: str
    description: str
    header: tuple[str, ...]
    rows: list[list[str]]
    pictures: list[tuple[str, str]]


def write_card_html(card: TaskSetCard, tasks: Path, out: Path) -> Path:
    """Writes the page; the same task set gives the same bytes.

    Args:
        card: The card.
        tasks: The task set, for samples.
        out: The file; written whole or not at all.

    Raises:
        ConfigError: The file cannot be written.
    """
    from markupsafe import Markup

    style = (files("sandmle.viewer") / "assets" / "style.css").read_text(encoding="utf-8")
    html = (
        environment()
        .get_template("card.html.j2")
        .render(
            card=card,
            tables=card_table(card),
            task_table=task_table(card),
            samples=list(sample_pages(tasks)),
            style=Markup(style),
            version=sandmle.__version__,
        )
    )
    return write_page(html, out)


def sample_pages(tasks: Path) -> Iterator[SamplePage]:
    """Yields the first task of each modality."""
    seen: set[str] = set()
    for folder in find_bundles(tasks):
        try:
            bundle = load_bundle(folder, verify=False)
            modality = "+".join(each.value for each in bundle.spec.modalities)
            if modality in seen:
                continue
            page = _page(bundle, modality)
        except (BundleError, TableError):  # the card names it among its problems
            continue
        seen.add(modality)
        yield page


def _page(bundle: Bundle, modality: str) -> SamplePage:
    train = read_table(bundle.read(TRAIN_FILE))
    pictures = (path for path in bundle.spec.files if path.startswith("public/") and path.endswith(".png"))
    small = ((path, bundle.read(path)) for path in pictures)
    shown = islice(((path, data) for path, data in small if len(data) <= _MOST_PICTURE_BYTES), _PICTURES)
    return SamplePage(
        title=bundle.spec.title,
        facts=f"{modality}, {bundle.spec.task_kind.value}, {bundle.spec.metric}, {bundle.task_id}",
        description=cut(bundle.description(), _MOST_DESCRIPTION_CHARS),
        header=train.header[:_MOST_COLUMNS],
        rows=[[_short(cell) for cell in row[:_MOST_COLUMNS]] for row in train.rows[:_ROWS]],
        pictures=[(path.removeprefix("public/"), base64.b64encode(data).decode()) for path, data in shown],
    )


def _short(cell: str) -> str:
    return cell if len(cell) <= _MOST_CELL_CHARS else f"{cell[: _MOST_CELL_CHARS - 3]}..."
