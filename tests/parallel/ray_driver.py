"""A program that the tests run: a cluster of two nodes on this machine, one of which is killed midway."""

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from ray.cluster_utils import Cluster

from sandmle.errors import SandboxUnavailableError, SandmleError
from sandmle.parallel import map_with

N_ITEMS = 12


class Noted:
    """Opens a worker's resource and notes it in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def __call__(self):
        with (self.folder / "opened").open("a") as file:
            file.write(f"{os.getpid()}\n")
        yield self.folder
        with (self.folder / "closed").open("a") as file:
            file.write(f"{os.getpid()}\n")


def slow_square(folder: Path, item: int) -> int:
    import ray

    (folder / f"{item}-{ray.get_runtime_context().get_node_id()[:8]}").touch()
    time.sleep(0.4)
    if item == 5:
        raise SandmleError("five is refused")
    return item * item


def deadly(folder: Path, item: int) -> int:
    if item == 1:
        os._exit(1)
    return item


@contextmanager
def refuse():
    raise SandboxUnavailableError("no namespaces here")
    yield


def main() -> None:
    folder = Path(sys.argv[1])
    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    cluster.wait_for_nodes()
    told = {}
    outcomes = []
    for outcome in map_with(slow_square, range(N_ITEMS), resource=Noted(folder), workers=2, ray=cluster.address):
        outcomes.append([outcome.index, outcome.result, outcome.error])
        nodes = {path.name.partition("-")[2] for path in folder.glob("*-*")}
        if second is not None and len(nodes) == 2:
            cluster.remove_node(second, allow_graceful=False)
            second = None
    told["outcomes"], told["killed"], told["nodes"] = outcomes, second is None, len(nodes)
    told["deadly"] = [
        [outcome.index, outcome.result, outcome.error]
        for outcome in map_with(deadly, range(3), resource=Noted(folder), workers=1, ray=cluster.address)
    ]
    try:
        list(map_with(deadly, [0], resource=refuse, workers=1, ray=cluster.address))
    except SandmleError as error:
        told["refused"] = str(error)
    print(json.dumps(told))
    cluster.shutdown()


if __name__ == "__main__":
    main()
