"""Messages over a pair of byte streams: a JSON header, then blobs of the lengths that it names."""

import json
import threading
from typing import Any, BinaryIO

from sandmle.errors import SandboxError

_LENGTH_BYTES = 8
_MAX_HEADER = 8 << 20
_MAX_BLOB = 1 << 32


class Stream:
    """Reads in one thread, writes from any."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        """Uses two open files."""
        self._reader, self._writer = reader, writer
        self._lock = threading.Lock()

    def send(self, header: dict[str, Any], blobs: tuple[bytes, ...] = ()) -> None:
        """Sends one message.

        Raises:
            OSError: The other end has closed.
        """
        data = json.dumps({**header, "blobs": [len(blob) for blob in blobs]}).encode()
        with self._lock:
            self._writer.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
            for blob in blobs:
                self._writer.write(blob)
            self._writer.flush()

    def receive(self) -> tuple[dict[str, Any], list[bytes]] | None:
        """Returns the next message, None when the other end has closed.

        Raises:
            SandboxError: What came is no message.
        """
        length = int.from_bytes(self._reader.read(_LENGTH_BYTES), "big")
        if length == 0:
            return None
        if length > _MAX_HEADER:
            raise SandboxError("the other end does not speak the sandbox's language")
        try:
            header = json.loads(self._reader.read(length))
            sizes = [int(size) for size in header["blobs"]]
        except (ValueError, KeyError, TypeError) as error:
            raise SandboxError("the other end does not speak the sandbox's language") from error
        if any(not 0 <= size <= _MAX_BLOB for size in sizes):
            raise SandboxError("the other end sent more than it may")
        blobs = [self._reader.read(size) for size in sizes]
        if [len(blob) for blob in blobs] != sizes:
            return None
        return header, blobs
