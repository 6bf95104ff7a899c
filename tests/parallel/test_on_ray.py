import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sandmle.errors import ConfigError
from sandmle.parallel import map_items

pytestmark = pytest.mark.ray
HAS_RAY = importlib.util.find_spec("ray") is not None
N_ITEMS = 12


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What a driver saw on a cluster of two nodes, one of which was killed."""
    if not HAS_RAY:
        pytest.skip("ray is not installed")
    folder = tmp_path_factory.mktemp("ray")
    command = [sys.executable, "-m", "tests.parallel.ray_driver", str(folder)]
    ran = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    seen: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    return seen


def test_a_killed_node_loses_nothing_and_nothing_counts_twice(told: Mapping[str, Any]) -> None:
    assert told["killed"]
    assert told["nodes"] == 2
    outcomes = sorted(told["outcomes"])
    assert [index for index, _, _ in outcomes] == list(range(N_ITEMS))
    assert [result for _, result, _ in outcomes] == [None if at == 5 else at * at for at in range(N_ITEMS)]
    assert [error for _, _, error in outcomes if error] == ["five is refused"]


def test_an_item_that_kills_its_actors_is_given_up_and_the_others_go_on(told: Mapping[str, Any]) -> None:
    outcomes = sorted(told["deadly"])
    assert [result for _, result, _ in outcomes] == [0, None, 2]
    assert "3 actors died" in outcomes[1][2]


def test_a_resource_that_cannot_be_opened_ends_the_map(told: Mapping[str, Any]) -> None:
    assert told["refused"] == "no namespaces here"


@pytest.mark.skipif(HAS_RAY, reason="ray is installed")
def test_without_ray_the_message_says_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"sandmle\[ray\]"):
        list(map_items(abs, [1], ray="auto"))
