import json

import pytest

from sandmle.cli.output import console, error_console, print_json, printable


def test_names_with_colons_are_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("chat:m: 3 episodes", markup=False)
    error_console().print("wrote :smile:", markup=False)
    assert capsys.readouterr() == ("chat:m: 3 episodes\n", "wrote :smile:\n")


def test_what_is_not_printable_is_escaped() -> None:
    assert printable("a b é 字") == "a b é 字"
    assert printable("\x1b[2J\n\x9b\u202e\udcff") == r"\x1b[2J\n\x9b\u202e\udcff"


def test_json_holds_names_that_are_not_utf_8(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "é\udcff"})
    assert json.loads(capsys.readouterr().out) == {"name": "é\udcff"}
