"""What is kept of a process's output: head and tail, bounded in memory, safe to show to a model."""

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class HeadTail:
    """Takes any number of bytes and keeps the first and the last of them."""

    def __init__(self, keep_bytes: int) -> None:
        """Keeps half of ``keep_bytes`` from the start and half from the end."""
        self._half = keep_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Takes more output."""
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            if len(self._tail) > 2 * self._half:
                del self._tail[: len(self._tail) - self._half]

    def text(self) -> str:
        """Returns the text, with a mark where bytes were dropped; undecodable bytes are replaced, escapes taken out."""
        tail = bytes(self._tail[-self._half :]) if self._half else b""
        dropped = self.total - len(self._head) - len(tail)
        if dropped <= 0:
            return clean(bytes(self._head) + tail)
        return f"{clean(bytes(self._head))}\n[... {dropped} bytes not shown ...]\n{clean(tail)}"


def clean(data: bytes) -> str:
    """Returns bytes as text without terminal escapes and control characters; a carriage return starts a new line."""
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("\ufffd", _ESCAPES.sub("", text))
