"""A server that gives every chat request the same reply after a fixed time, in a process of its own.

Run as ``python -m sandmle.authoring.roles.bench.slow_server DELAY_S``: it reads the reply's text from standard input,
prints its port, and ends when its standard input does. It does next to nothing, so that its CPU is not in the figures.
"""

import asyncio
import json
import sys

_END = b"\r\n\r\n"
_BACKLOG = 1024


class _Connection(asyncio.Protocol):
    """One connection; requests on it come one after the other."""

    def __init__(self, reply: bytes, delay_s: float) -> None:
        self._reply, self._delay_s = reply, delay_s
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, end, body = self._held.partition(_END)
        if end and len(body) >= _length(head):
            self._held = b""
            asyncio.get_running_loop().call_later(self._delay_s, self._answer)

    def _answer(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._reply)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def whole_reply(text: str) -> bytes:
    """Returns the bytes of an HTTP answer that says a text."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    value = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def _serve(reply: bytes, delay_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(reply, delay_s), "127.0.0.1", 0, backlog=_BACKLOG)
    async with server:
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Serves until standard input ends."""
    reply = whole_reply(json.loads(sys.stdin.readline()))
    asyncio.run(_serve(reply, float(sys.argv[1])))


if __name__ == "__main__":
    main()
