"""What a data script wrote is hostile until it was read: tables as text, media as raw numbers."""

import io
import json
import wave

import numpy as np
import pytest
from PIL import Image

from sandmle.authoring.roles.draws import read_draw
from sandmle.authoring.roles.outputs import TaskIdea
from sandmle.authoring.roles.publish import arrange, data_files
from sandmle.authoring.roles.reading import Complaint
from sandmle.records import CollectedFile, ExecResult, ExecStatus

IDEA = TaskIdea.model_validate(
    {
        "title": "A title",
        "domain": "testing",
        "entity": "row",
        "situation": "Somebody wants to know something.",
        "modalities": ["image"],
        "id_column": "row_id",
        "columns": [{"name": "photo", "type": "path"}, {"name": "size", "type": "number"}],
        "target": {"kind": "values", "columns": ["y"]},
        "target_words": "a number",
        "hidden_rule": "The number is what it is.",
        "formula": "y = size",
        "noise": "none",
        "mutation": "none",
        "n_train": 50,
        "baselines": [
            {"name": name, "tier": tier, "discovers": "it"}
            for name, tier in (("a", "weak"), ("b", "weak"), ("c", "standard"), ("d", "rule_aware"))
        ],
    }
)
PIXELS = np.arange(64, dtype=np.uint8).reshape(8, 8)
SOUND = np.arange(100, dtype=np.int16)
TABLE = b"photo,size,y\n0,1.5,2\n1,2.5,3\n"


def made(**changes: bytes) -> ExecResult:
    files = {
        "task/train.csv": TABLE,
        "task/test.csv": TABLE,
        "task/oracle.csv": b"y\n2\n3\n",
        "task/media.bin": PIXELS.tobytes() + SOUND.tobytes(),
        "task/media.json": json.dumps([["uint8", [8, 8], 64], ["int16", [100], 200]]).encode(),
    }
    files |= {f"task/{name.replace('__', '.')}": data for name, data in changes.items()}
    collected = tuple(CollectedFile(name=name, data=data) for name, data in files.items())
    return ExecResult(status=ExecStatus.OK, files=collected)


def read(result: ExecResult):
    return read_draw(result, "task", IDEA, n_train=2, n_test=2)


def test_media_become_plain_files():
    draw = read(made())
    picture, sound = draw.media
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(picture.data))), PIXELS)
    with wave.open(io.BytesIO(sound.data)) as opened:
        assert np.array_equal(np.frombuffer(opened.readframes(1000), np.int16), SOUND)
    assert (picture.suffix, sound.suffix) == (".png", ".wav")


def test_names_of_media_are_ids_and_tell_nothing():
    draw = read(made())
    order = arrange(2, 2, 1, 1, np.random.default_rng(0))
    files = data_files(IDEA, draw, order, {"y": "0"})
    media = sorted(path for path in files if path.startswith("public/photo/"))
    assert {path.split("/")[-1].split(".")[0] for path in media} == {*order.train_ids, *order.test_ids}
    assert b"leaderboard" not in files["public/test.csv"]
    assert b"y" not in files["public/test.csv"].splitlines()[0].split(b",")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train__csv": b"photo,size\n0,1\n1,2\n"}, "lacks the column 'y'"),
        ({"train__csv": b"photo,size,y,z\n0,1,2,3\n1,2,3,4\n"}, "has the column 'z', which the plan does not name"),
        ({"test__csv": TABLE[:-8]}, "has 1 rows; 2 were asked for"),
        ({"oracle__csv": b"\x80\x04pickle"}, "cannot be read: .* a Python pickle"),
        ({"train__csv": TABLE.replace(b"1,2.5", b"7,2.5")}, "names media that were not written"),
        ({"train__csv": TABLE.replace(b"1,2.5", b"../x,2.5")}, "names media that were not written"),
        ({"media__json": b"{"}, "index of the media is broken"),
        ({"media__json": b'[["uint8", [99999, 99999], 64]]'}, "a picture has the shape"),
        ({"media__json": b'[["uint8", [8, 8], 9999999999999999999999]]'}, "index of the media is broken|shape"),
        ({"media__json": b'[["object", [8, 8], 64], ["int16", [100], 200]]'}, "media of the kind 'object'"),
    ],
    ids=["missing", "extra", "rows", "pickle", "number", "path", "json", "bomb", "huge", "kind"],
)
def test_what_does_not_fit_is_a_complaint(changes, message):
    with pytest.raises(Complaint, match=message) as caught:
        read(made(**changes))
    assert caught.value.kind == "data_script"
