import json
import subprocess
import sys
from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.parallel import enter_folder, open_run_folder

CONFIG = {"rng_seed": 1, "names": ["a", "b"]}


def test_lines_are_found_again(tmp_path: Path) -> None:
    with open_run_folder(tmp_path / "run", "lines.jsonl", CONFIG) as folder:
        assert folder.lines == []
        folder.append('{"n":1}')
        folder.append('{"n":2}')
        folder.write_summary({"total": 2})
    with open_run_folder(tmp_path / "run", "lines.jsonl", CONFIG, resume=True) as folder:
        assert folder.lines == [{"n": 1}, {"n": 2}]
    assert json.loads((tmp_path / "run/summary.json").read_text()) == {"total": 2}


@pytest.mark.parametrize("torn", [b'{"n":3', b'{"n":3}', b"\xff"])
def test_a_torn_last_line_is_dropped(tmp_path: Path, torn: bytes) -> None:
    with open_run_folder(tmp_path, "lines.jsonl", CONFIG) as folder:
        folder.append('{"n":1}')
    with (tmp_path / "lines.jsonl").open("ab") as file:
        file.write(torn)
    with open_run_folder(tmp_path, "lines.jsonl", CONFIG, resume=True) as folder:
        assert folder.lines == [{"n": 1}]
        folder.append('{"n":2}')
    assert (tmp_path / "lines.jsonl").read_text() == '{"n":1}\n{"n":2}\n'


def test_a_line_broken_in_the_middle_is_named(tmp_path: Path) -> None:
    with open_run_folder(tmp_path, "lines.jsonl", CONFIG) as folder:
        folder.append("{broken}")
        folder.append('{"n":1}')
    with pytest.raises(ConfigError, match="line 1 is not JSON"):
        open_run_folder(tmp_path, "lines.jsonl", CONFIG, resume=True)


def test_another_configuration_is_refused_by_key(tmp_path: Path) -> None:
    open_run_folder(tmp_path, "lines.jsonl", CONFIG).close()
    with pytest.raises(ConfigError, match=r"another names"):
        open_run_folder(tmp_path, "lines.jsonl", {**CONFIG, "names": ["a"]}, resume=True)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        open_run_folder(tmp_path, "lines.jsonl", CONFIG),
        pytest.raises(ConfigError, match="another process is writing"),
    ):
        open_run_folder(tmp_path, "lines.jsonl", CONFIG, resume=True)


def test_a_folder_killed_before_its_configuration_is_new(tmp_path: Path) -> None:
    (tmp_path / "run.json.tmp").write_text("{")
    open_run_folder(tmp_path, "lines.jsonl", CONFIG).close()
    assert json.loads((tmp_path / "run.json").read_text()) == CONFIG


RACER = """
import sys
from pathlib import Path
from sandmle.errors import ConfigError
from sandmle.parallel import open_run_folder
sys.stdin.readline()
try:
    with open_run_folder(Path(sys.argv[1]), "lines.jsonl", {"rng_seed": 1}, resume=sys.argv[2] == "resume"):
        print("in", flush=True)
        sys.stdin.readline()
except ConfigError as error:
    print(error, flush=True)
"""


@pytest.mark.parametrize("how", ["new", "resume"])
def test_of_processes_that_start_one_run_at_once_one_wins_and_the_others_are_told(tmp_path: Path, how: str) -> None:
    for round_number in range(4):
        path = tmp_path / str(round_number)
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", RACER, str(path), how],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
            )
            for _ in range(3)
        ]
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
        said = sorted(racer.stdout.readline() for racer in racers if racer.stdout is not None)
        for racer in racers:
            racer.communicate("stop\n")
        refused = f"another process is writing to {path}; wait for it or give another folder\n"
        assert said == [refused, refused, "in\n"]
        assert sorted(entry.name for entry in path.iterdir()) == ["lines.jsonl", "run.json"]
        open_run_folder(path, "lines.jsonl", {"rng_seed": 1}, resume=True).close()


def test_a_refused_start_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"thesis\.txt"):
        open_run_folder(tmp_path, "lines.jsonl", CONFIG)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(ValueError, match="not JSON compliant"):
        enter_folder(tmp_path / "new", "lines.jsonl", {"x": float("nan")}, None)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_start_that_was_killed_after_its_lock_is_new(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").touch()
    (tmp_path / "run.json.123.tmp").write_text("{")
    open_run_folder(tmp_path, "lines.jsonl", CONFIG).close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["lines.jsonl", "run.json"]


@pytest.mark.parametrize("text", ["[]", "null", "3", "{", "[" * 100_000, '{"names":' + "[" * 900 + "]" * 900 + "}"])
def test_a_configuration_that_is_none_is_one_sentence_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ConfigError, match=r"run\.json|another names"):
        open_run_folder(tmp_path, "lines.jsonl", CONFIG, resume=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]
