"""A program that the tests run: ``generate`` on a Ray cluster of one node."""

import json
import sys
from pathlib import Path

from ray.cluster_utils import Cluster

from sandmle.authoring.pipeline import GenerateRequest, generate
from sandmle.errors import ConfigError


def main() -> None:
    request = GenerateRequest.model_validate_json(sys.argv[1])
    node = {"num_cpus": 2, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    records = generate(request, Path(sys.argv[2]), workers=2, ray=cluster.address)
    cluster.shutdown()
    try:
        generate(request, Path(sys.argv[2]).with_name("nowhere"), ray="not-an-address")
        refused = ""
    except ConfigError as error:
        refused = str(error)
    print(json.dumps({"stages": [record.stage for record in records], "refused": refused}))


if __name__ == "__main__":
    main()
