"""Messages between the supervisor and the processes inside: a length and JSON one way, JSON lines the other."""

import array
import contextlib
import json
import socket
from typing import Any

_LENGTH_BYTES = 8
_CHUNK = 1 << 20


class Gone(Exception):
    """The other end has closed."""


def receive(control: socket.socket) -> dict[str, Any]:
    """Reads one message.

    Raises:
        Gone: The supervisor is no more.
    """
    length = int.from_bytes(_read_exactly(control, _LENGTH_BYTES), "big")
    message: dict[str, Any] = json.loads(_read_exactly(control, length))
    return message


def send(control: socket.socket, event: dict[str, Any], fds: list[int] | None = None) -> None:
    """Sends one line, with descriptors.

    Raises:
        Gone: The supervisor is no more.
    """
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        control.sendmsg([json.dumps(event).encode() + b"\n"], rights)
    except OSError as error:
        raise Gone from error


def tell(control: socket.socket, event: dict[str, Any]) -> None:
    """Sends one line; nobody may be there to hear it any more."""
    with contextlib.suppress(Gone):
        send(control, event)


def _read_exactly(control: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        try:
            chunk = control.recv(min(_CHUNK, count - len(data)))
        except OSError as error:
            raise Gone from error
        if not chunk:
            raise Gone
        data += chunk
    return bytes(data)
