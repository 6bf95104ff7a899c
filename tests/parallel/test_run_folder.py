import json
from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.parallel import open_run_folder

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
