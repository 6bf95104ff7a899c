import pytest

from sandmle.errors import ConfigError
from sandmle.registry import names, resolve

BUILTIN = {"join": "os.path:join", "lost": "os.path:no_such_thing"}


def test_builtin_name_is_imported_on_demand():
    import os

    assert resolve("tool", "join", BUILTIN, "sandmle.none") is os.path.join


def test_dotted_path_is_the_escape_hatch():
    import math

    assert resolve("tool", "math:sqrt", BUILTIN, "sandmle.none") is math.sqrt


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown tool 'jion'; did you mean 'join'\?"):
        resolve("tool", "jion", BUILTIN, "sandmle.none")


@pytest.mark.parametrize("name", ["lost", "no_such_module:x"])
def test_a_name_that_leads_nowhere_says_where_it_leads(name):
    with pytest.raises(ConfigError, match="cannot be loaded"):
        resolve("tool", name, BUILTIN, "sandmle.none")


def test_names_are_sorted():
    assert names(BUILTIN, "sandmle.none") == ("join", "lost")
