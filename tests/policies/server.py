"""A real HTTP server on the loopback that misbehaves on demand."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the server does with one request."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    reset: bool = False


@dataclass
class Seen:
    """One request as it arrived."""

    body: dict[str, Any]
    headers: dict[str, str]
    at_s: float


def says(content: Any, finish: str = "stop", usage: dict[str, int] | None = None, **message: Any) -> Reply:
    """A regular reply."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    if usage is not None:
        body["usage"] = usage
    return Reply(body=json.dumps(body).encode())


def fails(status: int, message: str = "no", **headers: str) -> Reply:
    """An error in the usual form."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps({"error": {"message": message, "type": "x", "code": None}}).encode(), named)


class Server:
    """Answers request number n with ``script(n, body)``."""

    def __init__(self, script: Callable[[int, dict[str, Any]], Reply]) -> None:
        self.seen: list[Seen] = []
        self.most_at_once = 0
        self._at_once = 0
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    number = len(outer.seen)
                    outer.seen.append(
                        Seen(body, {name.lower(): value for name, value in self.headers.items()}, time.monotonic())
                    )
                    outer._at_once += 1
                    outer.most_at_once = max(outer.most_at_once, outer._at_once)
                try:
                    self._answer(script(number, body))
                finally:
                    with lock:
                        outer._at_once -= 1

            def _answer(self, reply: Reply) -> None:
                time.sleep(reply.delay_s)
                if reply.reset:
                    # Linger 0 turns the close into a reset of the connection.
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    self.close_connection = True
                    return
                try:
                    self.send_response(reply.status)
                    for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(reply.body)))
                    self.end_headers()
                    self.wfile.write(reply.body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def finish(self) -> None:
                try:
                    super().finish()
                except OSError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda request, address: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    @contextmanager
    def running(self) -> Iterator["Server"]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()


def in_turn(*replies: Reply) -> Callable[[int, dict[str, Any]], Reply]:
    """A script that gives the replies one after the other, the last one again and again."""
    return lambda number, body: replies[min(number, len(replies) - 1)]
