"""Rows made of pieces: taken apart and put together again nothing is lost."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from sandmle.authoring.plan import TaskPlan
from sandmle.authoring.procedural.author import ProceduralAuthor
from sandmle.policies.scripted.brief import Brief, brief_of_pieces, read_brief
from sandmle.policies.scripted.moves import SUBMITTED
from sandmle.policies.scripted.profile import Form, read_profile
from sandmle.policies.scripted.scripts import first_pieces_script, unpack_script, write_script
from sandmle.seeds import load_seed
from sandmle.tasks.bundle import load_bundle, write_bundle
from tests.policies.workbench import execute, play

_WRITE_TRUTH = """
import pandas as pd

pieces, sample = pd.read_csv("pieces/train.csv"), pd.read_csv("pieces/sample_submission.csv")
kinds = list(sample.columns[1:])
if kinds == ["answer"]:
    sample["answer"] = pieces["answer"]
else:
    for kind in kinds:
        sample[kind] = (pieces["answer"] == kind).astype(float)
sample.to_csv("pieces/submission.csv", index=False)
"""


def read(data: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        ("tgs-salt-identification-challenge", "mask"),
        ("kuzushiji-recognition", "boxes"),
        ("AI4Code", "order"),
        ("tensorflow2-question-answering", "span"),
        ("bms-molecular-translation", "words"),
    ],
)
def test_taken_apart_and_put_together_the_answers_are_the_same(tmp_path: Path, seed: str, kind: str) -> None:
    draft = ProceduralAuthor().propose(load_seed(seed), 11)
    plan = TaskPlan.model_validate_json(draft.files["provenance/plan.json"])
    for path, data in draft.files.items():
        if path.startswith("public/"):
            file = tmp_path / "input" / path.removeprefix("public/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    # The training rows stand in for the test rows, so that the truth is known.
    train = read((tmp_path / "input/train.csv").read_bytes())
    target = plan.target.columns[0]
    train.drop(columns=target).to_csv(tmp_path / "input/test.csv", index=False)
    train[[plan.id_column, target]].to_csv(tmp_path / "input/sample_submission.csv", index=False)
    done, output = execute(unpack_script(kind, plan.n_pieces), tmp_path)
    assert done, output
    pieces = pd.read_csv(tmp_path / "pieces/train.csv")
    assert len(pieces) == len(train) * plan.n_pieces
    done, output = execute(_WRITE_TRUTH, tmp_path)
    assert done, output
    done, output = execute(write_script("pack", p={"pieces": kind, "metric_name": plan.metric}), tmp_path)
    assert done, output
    again = read((tmp_path / "submission.csv").read_bytes())
    assert list(again.columns) == [plan.id_column, target]
    if kind == "boxes":  # boxes come with a confidence of their own
        again[target] = again[target].str.replace(" 1.000 ", " 1 ")
    assert again[target].tolist() == train[target].tolist()
    # What a search begins with: one script that takes apart, looks, and predicts.
    code = f"{first_pieces_script(kind, plan.n_pieces, plan.metric, 1)}\nprint('best', best)"
    done, output = execute(code, tmp_path)
    assert done, output
    assert SUBMITTED in output
    assert "\nbest -0." in output or "\nbest -1." in output  # nothing that follows the score takes its name
    profile = read_profile(output, brief_of_pieces(Brief("", "x", "", True, pieces=kind)))
    assert profile is not None
    assert profile.form is not Form.UNKNOWN


def test_an_engineer_orders_entries_by_their_texts(tmp_path: Path) -> None:
    draft = ProceduralAuthor().propose(load_seed("AI4Code"), 3)
    write_bundle(draft, tmp_path / "tasks")
    bundle = load_bundle(tmp_path / "tasks" / draft.spec.task_id)
    brief = read_brief(bundle.description())
    assert (brief.pieces, brief.n_pieces) == ("order", json.loads(draft.files["provenance/plan.json"])["n_pieces"])
    assert brief_of_pieces(brief).metric == "rmse"
    game = play(bundle, "linear", tmp_path / "work")
    assert game.grade is not None
    assert game.grade.above_median, game.observations[-1]


def test_plain_tasks_are_not_taken_apart() -> None:
    brief = read_brief("Metric: rmse (lower is better)\nThe picture shows 4 pieces. A prediction is a number.")
    assert (brief.pieces, brief.n_pieces) == ("", 1)
