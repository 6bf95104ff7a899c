"""Starts a warm server's process and gives it its setup."""

import json
import socket
import subprocess
from collections.abc import Mapping
from typing import Any

from sandmle.sandbox.boot import inner_command

_START_S = 180.0
_LENGTH_BYTES = 8


def start_server(
    python: str, module: str, setup: Mapping[str, Any], environment: dict[str, str]
) -> tuple[subprocess.Popen[bytes], socket.socket, dict[str, Any]]:
    """Starts a server and waits until it can serve.

    Args:
        python: The interpreter.
        module: Module of ``sandbox.inner``.
        setup: What it is to do. It goes over the socket: the code, a fork, sees the command line.
        environment: Its whole environment.

    Returns:
        The process, the socket to it, and its answer, in which ``failed`` says why it cannot serve.
    """
    near, far = socket.socketpair()
    process = subprocess.Popen(
        inner_command(python, module, [str(far.fileno())]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        pass_fds=[far.fileno()],
        start_new_session=True,
    )
    far.close()
    near.settimeout(_START_S)
    data = json.dumps(setup).encode()
    try:
        near.sendall(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
        answer: dict[str, Any] = json.loads(near.recv(1 << 16) or b'{"failed": "its server died while starting"}')
    except TimeoutError:
        answer = {"failed": f"its server was not ready within {_START_S:g} s"}
    except OSError as error:
        answer = {"failed": f"its server died while starting ({error.strerror})"}
    return process, near, answer
