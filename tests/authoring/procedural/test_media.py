import io
import json
import wave

import numpy as np
import pytest

from sandmle.authoring.procedural.families import Web
from sandmle.authoring.procedural.media import Board
from sandmle.authoring.procedural.media.board import run_lengths
from sandmle.authoring.procedural.media.pictures import painted, thumbnails
from sandmle.authoring.procedural.media.shapes import cloud_bytes, graph_bytes, tied
from sandmle.authoring.procedural.media.waves import loudness, series_bytes, sound_bytes
from sandmle.grading.metrics.masks import mask_pixels


def board(*, is_round: bool) -> Board:
    return Board.draw(np.random.default_rng(0), 3, (2, 3), (12, 12), is_round=is_round)


def runs_of(cell: str) -> np.ndarray:
    runs = np.array(cell.split(), dtype=int).reshape(-1, 2)
    return runs - [1, 0]


@pytest.mark.parametrize("is_round", [False, True])
def test_masks_cover_the_painted_pieces_as_the_grader_reads_them(is_round: bool) -> None:
    found = board(is_round=is_round)
    tiles = np.full((6, 12, 12, 1), 200, dtype=np.uint8)
    picture = found.paint(tiles, 1)[..., 0]
    marked = np.array([True, False, True, False, False, True])
    runs = runs_of(found.runs(1, marked))
    assert (runs[1:, 0] > runs[:-1].sum(axis=1)).all()
    mask = mask_pixels(runs, found.shape)
    assert (picture[mask] > 150).all()
    everything = mask_pixels(runs_of(found.runs(1, np.ones(6, dtype=bool))), found.shape)
    assert (picture[~everything] < 60).all()
    assert mask.sum() * 2 == everything.sum()


def test_boxes_enclose_the_painted_pieces() -> None:
    found = board(is_round=False)
    picture = found.paint(np.full((6, 12, 12, 1), 200, dtype=np.uint8), 2)[..., 0]
    left, top, width, height = map(int, found.box(2, 4).split())
    assert (picture[top : top + height, left : left + width] > 150).all()
    assert picture[top - 1, left] < 60


def test_boards_stay_small_and_inside() -> None:
    found = board(is_round=False)
    assert max(found.shape) <= 64
    assert (found.corners.max(axis=(0, 1)) + found.tile <= found.shape).all()


def test_run_lengths_of_nothing_and_of_everything() -> None:
    assert run_lengths(np.zeros((3, 4), dtype=bool)) == ""
    assert run_lengths(np.ones((3, 4), dtype=bool)) == "1 12"


def test_n01_sounds_are_plain_wav_files() -> None:
    sound = np.sin(np.linspace(0, 60, 800))
    data = sound_bytes(sound)
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getnframes()) == (1, 1, 800)
    assert len(data) == 44 + 800
    assert loudness(np.array([sound, sound / 10])).argmax(axis=0).sum() == 0


def test_a_series_has_a_column_for_each_piece() -> None:
    lines = series_bytes(np.arange(6.0).reshape(2, 3)).decode().splitlines()
    assert lines == ["step,value_1,value_2", "0,0.000,3.000", "1,1.000,4.000", "2,2.000,5.000"]


def test_tied_webs_are_one_connected_graph() -> None:
    webs = [Web("AB", (1.0, 2.0), ((0, 1),)), Web("CCC", (3.0, 4.0, 5.0), ((0, 1), (1, 2), (0, 2)))]
    graph = json.loads(graph_bytes(tied(webs, np.random.default_rng(0))))
    assert sorted(map(tuple, graph["nodes"])) == [("A", 1.0), ("B", 2.0), ("C", 3.0), ("C", 4.0), ("C", 5.0)]
    assert len(graph["edges"]) == 5
    reached = {0}
    for _ in range(5):
        reached |= {end for edge in graph["edges"] if set(edge) & reached for end in edge}
    assert reached == set(range(5))


def test_clouds_name_pieces_only_where_there_are_several() -> None:
    points = np.zeros((1, 2, 4))
    assert cloud_bytes(points, np.array([1, 2])).decode().splitlines()[0] == "sensor,x,y,z,strength"
    head = cloud_bytes(np.zeros((2, 2, 4)), np.array([1, 2])).decode().splitlines()
    assert head[0] == "piece,sensor,x,y,z,strength"
    assert head[-1] == "2,2,0.00,0.00,0.00,0.00"


def test_pictures_keep_what_is_painted() -> None:
    opacity = np.zeros((2, 8, 8))
    opacity[1] = 1.0
    pixels = painted([(opacity, np.ones((2, 3)))], 2, (8, 8), 1, np.random.default_rng(0))
    assert pixels[1].min() >= 248
    assert abs(float(pixels[0].mean()) - 0.42 * 255) < 8
    assert thumbnails(pixels, 2, 2).shape == (2, 4)
