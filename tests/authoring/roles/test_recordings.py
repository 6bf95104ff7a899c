"""Recorded conversations through the real sandbox and gate: good ones become tasks, flawed ones do not."""

import json
import os
import re
from functools import partial
from pathlib import Path

import pytest

from sandmle.authoring.funnel import ProposalRecord, Stage
from sandmle.authoring.pipeline import GenerateRequest, generate
from sandmle.authoring.roles.author import WORK_DIR, LLMAuthor
from sandmle.authoring.roles.journal import recordings_in
from sandmle.authoring.validation import validate_tasks
from sandmle.records import Modality
from sandmle.tasks import find_bundles, load_bundle
from tests.authoring.fake import tree
from tests.authoring.roles.doubles import FLAWED, GOOD

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("needs_sandbox")]
QUICK = ("spaceship-titanic", "champs-scalar-coupling")
"""Good recordings that the default suite replays."""
OUTCOMES = {
    "unrepairable_script": ("data_script", r"make_data\.py ended with error: NameError: name 'kool' is not defined"),
    "thresholds_not_rising": ("thresholds", r"better than"),
    "answers_leaked": ("thresholds", r"oracle is -\S+ better than gold"),
    "evaluator_accepts_all": ("evaluator", r"gives a constant 0\.99 and the answers themselves 0\.99"),
    "evaluator_wrong_direction": ("evaluator", r"though the metric is to maximize"),
    "description_reveals": ("rule_revealed", r"description\.md says 'log-odds'"),
    "hostile_script": ("data_script", r"make_data\.py ended with error"),
    "too_many_rows": ("invalid_reply", r"n_train: Input should be less than or equal to 200"),
    "invalid_output": ("invalid_reply", r"the reply holds no JSON object"),
    "truncated": ("truncated_reply", r"the reply was cut off"),
    "refusal": ("invalid_reply", r"it begins 'I am sorry, but I cannot help"),
    "empty": ("empty_reply", r"the reply is empty"),
}
SLOW = ("thresholds_not_rising", "answers_leaked", "description_reveals")


def replayed(
    folder: Path, out: Path, *seeds: str, record: Path | None = None, rng_seed: int = 3
) -> list[ProposalRecord]:
    author = partial(LLMAuthor, out / WORK_DIR, replay=folder, record=record)
    request = GenerateRequest(seeds=seeds, count=len(seeds), rng_seed=rng_seed, author="llm")
    return generate(request, out, author=author)


@pytest.mark.parametrize("seed", QUICK)
def test_a_good_recording_becomes_a_task(seed, tmp_path):
    _accepted(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", sorted(head.seed_id for head in recordings_in(GOOD).values()))
def test_every_good_recording_becomes_a_task(seed, tmp_path):
    _accepted(seed, tmp_path)


def _accepted(seed: str, tmp_path: Path) -> None:
    [record] = replayed(GOOD, tmp_path / "out", seed, rng_seed=0)
    assert (record.stage, record.lost_to, record.reason) == (Stage.GATE_PASSED, "", "")
    [root] = find_bundles(tmp_path / "out")
    spec = load_bundle(root).spec
    assert (spec.provenance.author, spec.provenance.seed_id) == ("llm", seed)
    assert 50 <= spec.n_train <= 200
    ladder = json.loads((root / "provenance" / "ladder.json").read_text())
    assert "our_solver" in {rung["name"] for rung in ladder["rungs"]}  # nothing else finds a column that tells answers
    [(_, judgement)] = validate_tasks([root])  # the bundle keeps the script that made its data
    assert judgement.report is not None
    assert (judgement.note, judgement.report.losses()) == ("", ())
    assert "determinism" in {check.check for check in judgement.report.checks}


def test_the_shipped_recordings_cover_the_ground():
    specs = [(GOOD / name).read_text() for name in recordings_in(GOOD)]
    assert len(specs) >= 12
    named = {modality for modality in Modality for text in specs if f'\\"{modality.value}\\"' in text}
    assert len(named) >= 6
    assert len(OUTCOMES) >= 8


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind in SLOW else ()) for kind in OUTCOMES]
)
def test_a_flawed_recording_ends_in_its_own_rejection(kind, tmp_path):
    before = _traces()
    [record] = replayed(FLAWED / kind, tmp_path / "out", "spaceship-titanic")
    lost_to, reason = OUTCOMES[kind]
    assert (record.stage, record.lost_to, record.is_fault) == (Stage.PROPOSED, lost_to, False)
    assert re.search(reason, record.reason), record.reason
    assert "\n" not in record.reason
    assert not (tmp_path / "out" / "tasks").exists()
    assert _traces() == before


def _traces() -> set[str]:
    """What a script of ours could leave behind."""
    places = ("/root/left-behind", "/tmp/sandmle-left-behind")
    return {place for place in places if os.path.lexists(place)}


def test_a_bug_is_repaired_from_its_traceback(tmp_path):
    record_dir = tmp_path / "recorded"
    [record] = replayed(FLAWED / "bug_repaired", tmp_path / "out", "spaceship-titanic", record=record_dir)
    assert record.accepted
    [recording] = record_dir.iterdir()
    assert recording.read_bytes() == (FLAWED / "bug_repaired" / recording.name).read_bytes()
    summary = (tmp_path / "out" / "summary.json").read_text()
    assert '"n_repairs": 1' in summary


def test_a_replay_makes_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        replayed(GOOD, tmp_path / name, "spaceship-titanic")
    first, second = (tree(tmp_path / name / "tasks") for name in ("one", "two"))
    assert first == second
    assert len(first) > 10


def test_a_recording_that_is_missing_or_ends_is_said(tmp_path):
    cut = tmp_path / "cut"
    cut.mkdir()
    name = "spaceship-titanic--0.jsonl"
    lines = (GOOD / name).read_text().splitlines(keepends=True)
    (cut / name).write_text("".join(lines[:2]))
    ended, missing = replayed(cut, tmp_path / "out", "spaceship-titanic", "AI4Code")
    assert ended.lost_to == "recording_ends"
    assert ended.reason == "the recording ends where the ML Developer is asked"
    assert missing.lost_to == "no_recording"


def test_a_recording_that_ends_at_a_complaint_tells_it(tmp_path):
    cut = tmp_path / "cut"
    cut.mkdir()
    name = "spaceship-titanic--0.jsonl"
    lines = (FLAWED / "bug_repaired" / name).read_text().splitlines(keepends=True)
    (cut / name).write_text("".join(lines[:3]))
    [ended] = replayed(cut, tmp_path / "out", "spaceship-titanic")
    assert ended.lost_to == "recording_ends"
    assert ended.reason.startswith("the recording ends where the ML Developer is asked, after ")
    assert "make_data.py" in ended.reason
