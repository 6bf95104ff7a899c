import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.evaluation.report import build_report
from sandmle.records import ActionKind, ExecStatus, ReplyStatus, TrajectoryStatus
from sandmle.viewer.html import render_html, write_html
from tests.bundles import draft, saved
from tests.evaluation.run_builder import episode, grade, step, write_run

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" ' onload=alert(3) {{ 7*7 }} <!-- \x1b[31mred"
)


class _Page(HTMLParser):
    """Collects what a browser would act on, and checks that tags are balanced."""

    VOID = frozenset({"meta", "input", "br", "link", "img", "hr"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _parse(html: str) -> _Page:
    page = _Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


def _run(folder: Path, **changes: object) -> Path:
    scores = {"strong": 0.95, "weak": 0.5}
    return write_run(
        folder,
        [
            episode(task, policy, attempt, score, **changes)
            for task in ("t1", "t2", "t3")
            for policy, score in scores.items()
            for attempt in range(2)
        ],
    )


def test_the_page_is_whole_and_loads_nothing(tmp_path: Path) -> None:
    path = write_html(_run(tmp_path / "run"), tmp_path / "out" / "report.html")
    page = _parse(path.read_text())
    tags = [tag for tag, _ in page.tags]
    assert not set(tags) & {"link", "img", "iframe", "object", "embed", "base", "image", "foreignobject"}
    assert tags.count("script") == tags.count("style") == 1
    for tag, attributes in page.tags:
        assert "src" not in attributes
        for name in ("href", "xlink:href", "action"):
            if (target := attributes.get(name)) is not None:
                assert target.startswith("#"), (tag, target)
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\((?!#)|@import", path.read_text())
    assert tags.count("svg") == 3


def test_only_the_pages_own_script_may_run(tmp_path: Path) -> None:
    html = render_html([_run(tmp_path / "run")])
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)
    assert script
    digest = base64.b64encode(hashlib.sha256(script.group(1).encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in html


def test_every_id_is_there_once_and_every_link_has_a_target(tmp_path: Path) -> None:
    page = _parse(render_html([_run(tmp_path / "run")]))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in ("href", "xlink:href", "aria-labelledby"):
            if (target := attributes.get(name)) is not None:
                assert target.removeprefix("#") in ids


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = _run(tmp_path / "run")
    assert render_html([run]) == render_html([run])


def test_hostile_text_stays_text_wherever_it_stands(tmp_path: Path) -> None:
    hostile_step = step(
        reply=HOSTILE, code=HOSTILE, observation=HOSTILE, notes=(HOSTILE,), reply_status=ReplyStatus.FORMAT_ERROR
    )
    run = write_run(
        tmp_path / "run",
        [
            episode(
                "t1",
                HOSTILE,
                0,
                0.9,
                steps=(hostile_step,),
                terms={HOSTILE: 1.0},
                scaffold=HOSTILE,
                grade=grade("t1", 0.9).replace(message=HOSTILE, metric=HOSTILE),
            ),
            episode("t2", HOSTILE, 0, status=TrajectoryStatus.SANDBOX_ERROR),
        ],
        note=HOSTILE,
    )
    html = render_html([run])
    page = _parse(html)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "\x1b" not in html
    assert "alert(1)" in "".join(page.text)
    assert "{{ 7*7 }}" in "".join(page.text)


def test_surrogates_and_controls_never_reach_the_file(tmp_path: Path) -> None:
    run = _run(tmp_path / "run", steps=(step(observation="null \x00 bell \x07 bidi \u202e cr \r end"),))
    html = write_html(run, tmp_path / "report.html").read_bytes().decode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e\ud800-\udfff]", html)
    (run / "run.json").write_text('{"policies": ["\\ud800"], "tasks": ["t1"], "attempts": 1}')
    with pytest.raises(ConfigError, match="not strict JSON"):
        render_html([run])


def test_no_nan_in_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [episode("t1", "p", 0, status=TrajectoryStatus.GRADER_ERROR)])
    html = render_html([run])
    assert not re.search(r"\b(nan|NaN|inf|Infinity|None)\b", re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL))


def test_turns_show_thought_code_observation_and_status(tmp_path: Path) -> None:
    steps = (
        step(
            0, exec_status=ExecStatus.TIMEOUT, observation="killed after 90 s", notes=("A second action was ignored.",)
        ),
        step(
            1,
            action=ActionKind.FINISH,
            code=None,
            exec_status=None,
            reply="<think>Done.</think><answer>submission</answer>",
        ),
    )
    text = "".join(_parse(render_html([_run(tmp_path / "run", steps=steps)])).text)
    for expected in (
        "Look first.",
        "print('hello')",
        "killed after 90 s",
        "A second action was ignored.",
        "timeout",
        "Done.",
    ):
        assert expected in text
    assert "<tool_call>" not in text
    assert "<answer>" not in text


def test_titles_and_descriptions_come_from_the_tasks(tmp_path: Path) -> None:
    bundle = saved(draft("binary"), tmp_path / "tasks")
    spec = bundle.spec
    trajectory = episode(
        spec.task_id,
        "p",
        0,
        0.9,
        task_hash=spec.task_hash,
        grade=grade(spec.task_id, 0.9).replace(task_hash=spec.task_hash),
    )
    run = write_run(tmp_path / "run", [trajectory], tasks={spec.task_id: spec.task_hash})
    html = render_html([run], tasks_dir=tmp_path / "tasks")
    assert spec.title in html
    assert spec.domain in html
    assert "What the agent reads" in html
    assert bundle.read("private/answers.csv").decode().splitlines()[1] not in html
    assert spec.title not in render_html([run])
    changed = write_run(tmp_path / "changed", [trajectory.replace(task_hash="other")], tasks=[])
    assert "1 of the tasks are not in the folder" in render_html([changed], tasks_dir=tmp_path / "tasks")


def test_oracle_and_problems_are_at_the_top(tmp_path: Path) -> None:
    run = _run(tmp_path / "run", feedback="oracle")
    with (run / "trajectories.jsonl").open("a") as file:
        file.write("{}\n")
    text = "".join(_parse(render_html([run])).text)
    assert "ORACLE feedback." in text
    assert "trajectories.jsonl, line 13" in text
    assert text.count("ORACLE") > 12


def test_a_quickstart_sized_page_is_under_3_mb(tmp_path: Path) -> None:
    code = "\n".join(f"column_{index} = frame['value_{index}'] * {index}  # <derived> & checked" for index in range(30))
    steps = tuple(step(index, code=code, observation="row <1> 'a' \"b\"\n" * 120) for index in range(7))
    trajectories = [
        episode(f"task-{task}", f"policy-{policy}", attempt, 0.5 + 0.1 * policy, steps=steps)
        for task in range(12)
        for policy in range(5)
        for attempt in range(2)
    ]
    path = write_html(write_run(tmp_path / "run", trajectories), tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000


def test_a_large_run_is_sampled_and_says_so(tmp_path: Path) -> None:
    run = _run(tmp_path / "run")
    html = render_html([run], max_transcript_bytes=8_000)
    shown = html.count('id="episode-')
    assert 0 < shown < 12
    assert f"A sample of {shown} of 12 recorded episodes" in html
    attempts = re.findall(r"attempt (\d)", html)
    assert attempts.count("1") >= attempts.count("2")
    assert "All 12 recorded episodes" in render_html([run])


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [], tasks=["t1"], policies=["p"], attempts=1)
    page = _parse(render_html([run]))
    assert "Nothing has finished yet." in "".join(page.text)
    assert "0 of 1" in "".join(page.text)


def test_several_runs_share_a_page(tmp_path: Path) -> None:
    runs = [_run(tmp_path / "first"), _run(tmp_path / "second")]
    page = _parse(render_html(runs))
    filters = [attributes.get("name") for tag, attributes in page.tags if tag == "select"]
    assert filters == ["run", "policy", "task", "medal", "status"]
    assert build_report(runs).policies[0].rank == build_report(runs).policies[1].rank == 1


def test_an_unwritable_file_is_one_sentence(tmp_path: Path) -> None:
    run = _run(tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write"):
        write_html(run, tmp_path / "file" / "report.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run"]
