"""Runs a script in an already prepared process the way ``python main.py`` would, and ends the process."""

import atexit
import builtins
import importlib
import os
import signal
import sys
import threading
import types
from typing import NoReturn

_OWN_MODULES = (
    "confine",
    "hugepages",
    "init",
    "jail",
    "keeper",
    "kernel",
    "landlock",
    "plain",
    "runner",
    "seccomp",
    "semaphores",
    "tree",
    "warden",
    "warm",
    "wire",
    "zygote",
)


def run_script(path: str, code: bytes, rng_seed: int) -> NoReturn:
    """Runs source code as ``__main__`` and exits with the code that the interpreter would exit with.

    Args:
        path: Absolute path of the script, which holds ``code``.
        code: The source.
        rng_seed: Seeds ``random`` and, if it is loaded, numpy's global state.
    """
    module = _fresh_main(path)
    _seed(rng_seed)
    _forget_ourselves()
    # Python resets these at start-up; the server that forked us may have had its own handlers.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Python ignores it and raises OSError; the kernel's signal tells the limit from other errors.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    status = _execute(path, code, module)
    os._exit(_finish(status))


def load_numpy() -> None:
    """Imports numpy, where it is installed, so that its global state can be seeded."""
    try:
        importlib.import_module("numpy.random")
    except ImportError:
        return


def _fresh_main(path: str) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    module.__spec__ = None
    module.__dict__["__cached__"] = None
    sys.modules["__main__"] = module
    sys.argv = [path]
    sys.path[:] = [entry for entry in sys.path if entry.endswith(".zip") or _can_list(entry)]
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    # Line-wise and unflushed text would be lost when the process is killed at its deadline.
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    return module


def _can_list(folder: str) -> bool:
    # Opening tells what Landlock says, unlike access(), and costs less than listing.
    try:
        os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _seed(rng_seed: int) -> None:
    import random

    random.seed(rng_seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(rng_seed % 2**32)


def _forget_ourselves() -> None:
    # By name: to look through all modules would touch, and so copy, a page of the server's memory for each.
    for name in _OWN_MODULES:
        sys.modules.pop(f"sandmle.sandbox.inner.{name}", None)
    for name in ("sandmle.sandbox.inner", "sandmle.sandbox", "sandmle"):
        sys.modules.pop(name, None)


def _execute(path: str, code: bytes, module: types.ModuleType) -> int:
    try:
        compiled = compile(code, path, "exec", dont_inherit=True)
        exec(compiled, module.__dict__)
    except SystemExit as request:
        return _exit_code(request)
    except BaseException as error:
        # Drop this frame: the trace starts at the script's first line, as under `python main.py`.
        trace = error.__traceback__
        shown = trace.tb_next if trace is not None else None
        sys.excepthook(type(error), error.with_traceback(shown), shown)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _exit_code(request: SystemExit) -> int:
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code & 0xFF
    print(request.code, file=sys.stderr)
    return 1


def _finish(status: int) -> int:
    """Does what the interpreter does at its end, but for tearing down modules, which takes half a second."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except SystemExit as request:
        status = _exit_code(request)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            status = status or 120  # what the interpreter reports when its streams cannot be flushed
    return status
