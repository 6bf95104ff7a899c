"""A sandbox behind a pair of byte streams: what runs inside a container, started by ``container``.

``python -m sandmle.sandbox.service --backend restricted --workers 2`` serves on its standard streams until its input
ends. Then it ends all executions, and with it ends the container.
"""

import argparse
import base64
import hashlib
import os
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sandmle.errors import ConfigError, SandboxError
from sandmle.records import Limits
from sandmle.sandbox.base import ExecRequest, Sandbox
from sandmle.sandbox.packing import pack, unpack
from sandmle.sandbox.settings import open_backend
from sandmle.sandbox.stream import Stream

_KEPT_INPUTS = 8


def input_key(archive: bytes) -> str:
    """Returns the name under which a packed folder of inputs is kept inside."""
    return hashlib.sha256(archive).hexdigest()


class Service:
    """Answers the requests that come over a stream."""

    def __init__(self, sandbox: Sandbox, stream: Stream, folder: Path) -> None:
        """Serves a started sandbox.

        Args:
            sandbox: Runs the code.
            stream: To the caller.
            folder: A folder of its own.
        """
        self._sandbox, self._stream, self._folder = sandbox, stream, folder
        self._inputs: dict[str, tempfile.TemporaryDirectory[str]] = {}
        self._in_use: dict[str, int] = {}
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Answers until the stream ends."""
        with ThreadPoolExecutor(self._sandbox.workers) as pool:
            while (message := self._stream.receive()) is not None:
                header, blobs = message
                if header["op"] == "inputs":
                    self._keep_inputs(blobs[0])
                else:
                    self._take_inputs(header["inputs"], 1)
                    pool.submit(self._answer, header, blobs[0])

    def _keep_inputs(self, archive: bytes) -> None:
        key = input_key(archive)
        folder = tempfile.TemporaryDirectory(dir=self._folder)
        unpack(archive, Path(folder.name))
        with self._lock:
            self._inputs[key] = folder
            idle = [old for old in self._inputs if old != key and not self._in_use.get(old)]
            for old in idle[: max(0, len(self._inputs) - _KEPT_INPUTS)]:
                self._inputs.pop(old).cleanup()

    def _take_inputs(self, key: str | None, change: int) -> None:
        if key is not None:
            with self._lock:
                self._in_use[key] = self._in_use.get(key, 0) + change

    def _answer(self, header: dict[str, Any], archive: bytes) -> None:
        try:
            reply, blobs = self._execute(header, archive)
        except Exception as error:
            kind = "request" if isinstance(error, ConfigError) else "sandbox"
            reply, blobs = {"failed": kind, "message": str(error) or repr(error)}, ()
        finally:
            self._take_inputs(header["inputs"], -1)
        try:
            self._stream.send({"id": header["id"], **reply}, blobs)
        except OSError:
            return  # the caller is gone, and so will this process be

    def _execute(self, header: dict[str, Any], archive: bytes) -> tuple[dict[str, Any], tuple[bytes, ...]]:
        key = header["inputs"]
        with self._lock:
            inputs = self._inputs.get(key) if key is not None else None
        if key is not None and inputs is None:
            return {"unknown_inputs": key}, ()
        limits = Limits.model_validate(header["limits"])
        with tempfile.TemporaryDirectory(dir=self._folder) as workspace:
            unpack(archive, Path(workspace))
            request = ExecRequest(
                header["code"],
                Path(workspace),
                Path(inputs.name) if inputs is not None else None,
                limits,
                header["rng_seed"],
                tuple(header["collect"]),
            )
            result = self._sandbox.execute(request)
            files = [{"name": file.name, "reason": file.reason, "data": _text(file.data)} for file in result.files]
            facts = {**result.model_dump(mode="json", exclude={"files"}), "files": files}
            return {"result": facts}, (pack(Path(workspace)),)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def main() -> None:
    """Serves on the standard streams."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="restricted")
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    # Nobody but the stream writes to what was stdout.
    stream = Stream(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    try:
        sandbox = open_backend(arguments.backend, workers=arguments.workers)
    except (SandboxError, ConfigError) as error:
        stream.send({"failed": str(error)})
        return
    with sandbox, tempfile.TemporaryDirectory(prefix=f"sandmle-{os.getpid()}-") as folder:
        stream.send({"ready": sorted(capability.value for capability in sandbox.capabilities)})
        Service(sandbox, stream, Path(folder)).serve()


if __name__ == "__main__":
    main()
