"""Stands in for ``docker``: notes its command line, and runs the container's command on this machine.

It is put on PATH as ``docker``. Beside it lie ``settings.json`` (interpreter, import path, how to fail) and what it
writes: ``commands.jsonl``, and a file ``NAME.pid`` for each running container.
"""

import json
import os
import sys
import time
from pathlib import Path

_WITH_VALUE = {"--pull", "--name", "--label", "--network", "--ipc", "--user", "--cap-drop", "--security-opt"}
_WITH_VALUE |= {"--tmpfs", "--memory", "--memory-swap", "--pids-limit", "--cpus"}


def main() -> None:
    here = Path(sys.argv[0]).parent
    settings = json.loads((here / "settings.json").read_text())
    arguments = sys.argv[1:]
    with (here / "commands.jsonl").open("a") as file:
        file.write(json.dumps(arguments) + "\n")
    if arguments[0] == "ps":
        print("\n".join(path.stem for path in here.glob("*.pid")))
    elif arguments[0] == "rm":
        path = here / f"{arguments[-1]}.pid"
        try:
            os.kill(int(path.read_text()), 9)
        except ProcessLookupError:
            pass
        path.unlink()
    elif settings.get("error"):
        sys.exit(f"docker: Error response from daemon: {settings['error']}")
    elif settings.get("silent"):
        time.sleep(60)
    elif settings.get("babble"):
        print("Welcome to the container! " * 10, flush=True)
    else:
        _run(arguments, settings, here)


def _run(arguments: list[str], settings: dict[str, str], here: Path) -> None:
    name = arguments[arguments.index("--name") + 1]
    (here / f"{name}.pid").write_text(str(os.getpid()))
    rest = arguments[1:]
    while rest[0].startswith("--"):
        rest = rest[2:] if rest[0] in _WITH_VALUE else rest[1:]
    _image, python, *command = rest
    assert python == "python3"
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": settings["path"], "TMPDIR": settings["tmp"]}
    os.execve(settings["python"], [settings["python"], *command], environment)


if __name__ == "__main__":
    main()
