"""The tree of a search on the page."""

import re
from pathlib import Path

from sandmle.records import ReplyStatus, SearchNode
from sandmle.viewer.html import render_html
from sandmle.viewer.transcript import turns_of
from sandmle.viewer.tree import MAX_ROWS, tree_of
from tests.evaluation.run_builder import episode, step, write_run
from tests.viewer.test_html import HOSTILE, _parse

NODES = (
    SearchNode(index=0, operator="draft", step=0, plan="Boosting.", validation_score=0.7, is_buggy=False),
    SearchNode(index=1, operator="draft", step=2, plan="A forest.", is_buggy=True, analysis="A typo."),
    SearchNode(index=2, operator="debug", parents=(1,), step=4, validation_score=0.8, is_buggy=False),
    SearchNode(index=3, operator="improve", parents=(0,), step=None, is_buggy=True),
    SearchNode(index=4, operator="crossover", parents=(0, 2), step=6, validation_score=0.9, is_buggy=False),
)


def searched(nodes: tuple[SearchNode, ...] = NODES, chosen: int | None = 4):
    steps = tuple(
        step(index) if index % 2 == 0 else step(index, action=None, code=None, reply="{}", exec_status=None)
        for index in range(8)
    )
    return episode("t1", "p", 0, 0.9, scaffold="aira", steps=steps, nodes=nodes, chosen_node=chosen)


def test_each_script_stands_below_its_parent() -> None:
    rows = tree_of(searched()).rows
    assert [(row.number, row.depth, row.operator) for row in rows] == [
        (1, 0, "draft"),
        (4, 1, "improve"),
        (5, 1, "crossover"),
        (2, 0, "draft"),
        (3, 1, "debug"),
    ]
    assert [row.number for row in rows if row.is_chosen] == [5]
    assert [row.number for row in rows if row.is_buggy] == [4, 2]
    assert rows[2].parents == (1, 3)
    assert (rows[1].turn, rows[2].turn) == (None, 7)


def test_the_page_shows_it_with_links_to_the_turns(tmp_path: Path) -> None:
    html = render_html([write_run(tmp_path / "run", [searched()])])
    page = _parse(html)
    text = " ".join("".join(page.text).split())
    assert "5 crossover handed in" in text
    assert "A forest. A typo." in re.sub(r"(?<=\.)(?=[A-Z])", " ", text)
    targets = {attributes["href"] for tag, attributes in page.tags if tag == "a" and "#turn-" in attributes["href"]}
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    assert len(targets) == 4
    assert {target.removeprefix("#") for target in targets} <= ids


def test_turns_are_called_by_what_they_did_in_the_search() -> None:
    titles = [turn.title for turn in turns_of(searched())]
    assert titles[:4] == ["node 1, draft", "read the output", "node 2, draft", "read the output"]
    unread = step(0, action=None, code=None, reply="?", reply_status=ReplyStatus.FORMAT_ERROR, exec_status=None)
    assert [turn.title for turn in turns_of(searched().replace(steps=(unread,), nodes=()))] == ["format error"]


def test_hostile_plans_stay_text(tmp_path: Path) -> None:
    nodes = (SearchNode(index=0, operator="draft", step=0, plan=HOSTILE, analysis=HOSTILE, is_buggy=True),)
    page = _parse(render_html([write_run(tmp_path / "run", [searched(nodes)])]))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert "alert(1)" in "".join(page.text)


def test_a_broken_file_makes_no_circle_and_no_endless_page() -> None:
    circle = tuple(
        SearchNode(index=index, operator="debug", parents=(1 - index, 7), is_buggy=True) for index in range(2)
    )
    assert [(row.number, row.depth) for row in tree_of(searched(circle)).rows] == [(1, 0), (2, 1)]
    chain = tuple(
        SearchNode(index=index, operator="debug", parents=(index - 1,) if index else (), is_buggy=True)
        for index in range(MAX_ROWS + 5)
    )
    tree = tree_of(searched(chain))
    assert (len(tree.rows), tree.n_left_out) == (MAX_ROWS, 5)
    assert max(row.depth for row in tree.rows) == 12


def test_other_scaffolds_have_no_tree(tmp_path: Path) -> None:
    html = render_html([write_run(tmp_path / "run", [episode("t1", "p", 0, 0.9)])])
    assert '<table class="tree">' not in html
