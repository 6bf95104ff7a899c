"""How the modules of ``sandbox.inner`` are started under any interpreter, without loading the rest of this package."""

import json
from pathlib import Path

_PACKAGES = ("sandmle", "sandmle.sandbox", "sandmle.sandbox.inner")

LIBRARY_ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "TMPDIR": "/tmp",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": "/tmp",
    "JOBLIB_MULTIPROCESSING": "1",
    "LOKY_MAX_CPU_COUNT": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
    "PYTHONSAFEPATH": "1",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""The whole environment of code in the sandbox, but for the thread counts: an allow-list, nothing is inherited."""

WARM_ENVIRONMENT = {
    # Huge pages make a heap cheap to copy: glibc advises them for its arenas, so Python must use glibc's malloc.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "PYTHONMALLOC": "malloc",
    # What the linker has looked up before a fork, no fork looks up again.
    "LD_BIND_NOW": "1",
    # pandas imports pyarrow where it is installed, and that starts a thread.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""What a warm server has beside that."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def environment(threads: int, extra: dict[str, str] | None = None) -> dict[str, str]:
    """Returns the environment for code in the sandbox.

    Args:
        threads: Threads that numerical libraries may use.
        extra: Further variables, for the server that is forked.
    """
    return {**LIBRARY_ENVIRONMENT, **dict.fromkeys(_THREAD_VARIABLES, str(threads)), **(extra or {})}


def inner_command(python: str, module: str, arguments: list[str], *, root: str | None = None) -> list[str]:
    """Returns the command line that runs ``main`` of an inner module.

    Args:
        python: The interpreter.
        module: Name of the module below ``sandmle.sandbox.inner``.
        arguments: What the module reads from ``sys.argv[1:]``.
        root: Where this package's folder is seen by the new process; by default where it is.
    """
    here = root or str(Path(__file__).resolve().parent.parent)
    folders = [here, f"{here}/sandbox", f"{here}/sandbox/inner"]
    code = (
        "import sys, types, json, importlib\n"
        f"for name, path in zip({list(_PACKAGES)!r}, json.loads({json.dumps(json.dumps(folders))})):\n"
        "    module = types.ModuleType(name); module.__path__ = [path]; sys.modules[name] = module\n"
        f"importlib.import_module('sandmle.sandbox.inner.{module}').main()\n"
    )
    # -s: no user site; -P: the working directory is never on the import path.
    return [python, "-s", "-P", "-c", code, *arguments]
