"""Containers: one long-lived container of Docker or Podman holds a warm server for all executions of this sandbox.

The container has no network, no mount of the host, no capability, a read-only root and an ordinary user; the
``restricted`` backend inside keeps executions apart from each other and from its own server. Files go in and out as
bytes over the container's standard streams, so the engine may be on another machine, and hidden answers are never on
the same one as the code. When the caller dies the stream ends, and with it the container.

Covers: what ``restricted`` covers; and nothing of the host is there to be read, not even a name.
Does not cover: executions side by side in the container share a user: see ``restricted``. Memory and processes are
bounded by the kernel for the container as a whole, and watched for each execution.
"""

import base64
import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Any, Self

from sandmle.errors import ConfigError, SandboxError, SandboxUnavailableError
from sandmle.records import CollectedFile, ExecResult
from sandmle.sandbox.backend import check_request
from sandmle.sandbox.base import Capability, ExecRequest
from sandmle.sandbox.packing import pack, unpack
from sandmle.sandbox.selftest import run_self_test
from sandmle.sandbox.service import input_key
from sandmle.sandbox.slots import Slots
from sandmle.sandbox.stream import Stream

DEFAULT_IMAGE = "sandmle-sandbox"
_USER = "65534:65534"
_LABEL = "sandmle"
_PREFIX = "sandmle-"
_START_S = 180.0
_MARGIN_S = 60.0
"""Beyond an execution's own limit, for setting up and sending files; then the container is given up."""
_STOP_S = 5.0
_ASK_S = 30.0
_KEPT_ERRORS = 4000
_TELLING = ("error", "unable", "cannot", "denied", "no such", "not known")
_MB = 1 << 20
_MAX_WORKERS = 64


class ContainerSandbox:
    """Runs code in one long-lived container."""

    name = "container"
    install_help = ""

    def __init__(
        self,
        *,
        workers: int | None = None,
        image: str = DEFAULT_IMAGE,
        memory_mb: int | None = None,
        disk_mb: int = 1024,
        processes: int = 1024,
    ) -> None:
        """Sets up nothing yet; see ``start``.

        Args:
            workers: Executions at the same time; one per available core by default.
            image: An image built from ``docker/sandbox/Dockerfile``.
            memory_mb: Memory of the whole container; by default 2560 for each worker.
            disk_mb: Room for all files of all executions; it counts as memory.
            processes: Processes and threads of the whole container.

        Raises:
            ConfigError: A number is out of its range.
        """
        self.workers = workers if workers is not None else len(os.sched_getaffinity(0))
        if not 1 <= self.workers <= _MAX_WORKERS:
            raise ConfigError(f"sandbox workers is {self.workers}; give 1 to {_MAX_WORKERS}")
        self.image = image
        self.memory_mb = memory_mb if memory_mb is not None else 2560 * self.workers
        self.disk_mb, self.processes = disk_mb, processes
        if min(self.memory_mb, self.disk_mb, self.processes) < 1:
            raise ConfigError("memory_mb, disk_mb and processes of a container must be above 0")
        self.capabilities: frozenset[Capability] = frozenset()
        self._engine = ""
        self._name = ""
        self._slots = Slots(self.workers)
        self._lock = threading.Lock()
        self._link: _Link | None = None
        self._owner_pid = 0
        self._started = False

    def start(self) -> Self:
        """Starts the container and proves that it holds what it claims. Idempotent.

        Raises:
            SandboxUnavailableError: There is no engine, no image, or the container does not start.
        """
        if self._started:
            return self
        engine = shutil.which(self.name)
        if engine is None:
            raise SandboxUnavailableError(f"the {self.name} sandbox needs {self.name}; {self.install_help}")
        self._engine, self._owner_pid = engine, os.getpid()
        self._remove_leftovers()
        try:
            self._connect()
            self._started = True
            run_self_test(self)
        except BaseException:
            self.close()
            raise
        return self

    def execute(self, request: ExecRequest) -> ExecResult:
        """Runs code; see :meth:`sandmle.sandbox.base.Sandbox.execute`."""
        check_request(request)
        self._need_started()
        inputs = pack(request.inputs) if request.inputs is not None else None
        with self._slots.turn():
            self._need_started()  # it may have been closed meanwhile
            workspace = pack(request.workspace, max_bytes=request.limits.file_mb * _MB)
            header, blobs = self._ask(request, workspace, inputs)
            return _take(header, blobs, request)

    def close(self) -> None:
        """Ends the container; executions that are under way raise SandboxError. Idempotent."""
        if self._owner_pid != os.getpid():
            return
        self._started = False
        with self._lock:
            self._disconnect()

    def __enter__(self) -> Self:
        """Starts the sandbox."""
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        """Closes the sandbox."""
        self.close()

    def command(self, name: str) -> list[str]:
        """Returns the command line that starts the container and talks to it.

        Args:
            name: The container's name.
        """
        return [
            *(self._engine or self.name, "run", "--rm", "--interactive", "--pull", "never", "--name", name),
            *("--label", f"{_LABEL}={socket.gethostname()}"),
            *("--network", "none", "--ipc", "none", "--read-only", "--user", _USER),
            *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--tmpfs", f"/tmp:rw,nosuid,nodev,mode=1777,size={self.disk_mb}m"),
            *("--memory", f"{self.memory_mb}m", "--memory-swap", f"{self.memory_mb}m"),
            *("--pids-limit", str(self.processes), "--cpus", str(self.workers)),
            self.image,
            *("python3", "-m", "sandmle.sandbox.service", "--backend", "restricted", "--workers", str(self.workers)),
        ]

    def _need_started(self) -> None:
        if not self._started:
            raise SandboxError(f"the {self.name} sandbox is not started; use it in a with block or call start()")
        if self._owner_pid != os.getpid():
            raise SandboxError(f"the {self.name} sandbox was started by another process; open one in each process")

    def _connect(self) -> "_Link":
        self._name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        link = _Link(self.command(self._name))
        self._link = link
        try:
            answer = link.first.result(_START_S)
        except (FutureTimeoutError, SandboxError) as error:
            self._disconnect()
            reason = str(error) or f"it was not ready within {_START_S:g} s"
            raise SandboxUnavailableError(f"the {self.name} sandbox cannot start: {self._explain(reason)}") from error
        if "ready" not in answer:
            self._disconnect()
            raise SandboxUnavailableError(f"the {self.name} sandbox cannot start: {answer.get('failed')}")
        self.capabilities = frozenset(Capability(name) for name in answer["ready"])
        return link

    def _explain(self, reason: str) -> str:
        lower = reason.lower()
        if "no such image" in lower or "unable to find image" in lower or "image not known" in lower:
            build = f"{self.name} build --tag {self.image} --file docker/sandbox/Dockerfile ."
            return f"there is no image {self.image}; build it in this project's folder: {build}"
        if "cannot connect" in lower or "permission denied" in lower:
            return f"{reason.rstrip('.?')}; start {self.name}'s service, or let this user use it"
        return reason

    def _disconnect(self) -> None:
        link, self._link = self._link, None
        if link is not None and not link.end():
            # It did not end by itself: the engine ends it, and then its client.
            self._run_engine("rm", "--force", self._name)
            link.kill()

    def _ask(self, request: ExecRequest, workspace: bytes, inputs: bytes | None) -> tuple[dict[str, Any], list[bytes]]:
        with self._lock:
            if self._link is None or self._link.is_over:
                # Once anew: a container that died is the sandbox's failure, not the code's.
                self._disconnect()
                self._connect()
            link = self._link
        if link is None:
            raise SandboxError(f"the {self.name} sandbox is closed")
        key = input_key(inputs) if inputs is not None else None
        header = {
            "op": "execute",
            "code": request.code,
            "inputs": key,
            "limits": request.limits.model_dump(mode="json"),
            "rng_seed": request.rng_seed,
            "collect": list(request.collect),
        }
        timeout_s = request.limits.wall_s + _MARGIN_S
        try:
            header_back, blobs = link.ask(header, workspace, timeout_s, key, inputs)
            if "unknown_inputs" in header_back and inputs is not None:
                link.forget(key)
                header_back, blobs = link.ask(header, workspace, timeout_s, key, inputs)
        except FutureTimeoutError as error:
            with self._lock:
                self._disconnect()
            raise SandboxError(f"the {self.name} sandbox did not answer within {timeout_s:g} s") from error
        return header_back, blobs

    def _remove_leftovers(self) -> None:
        """Removes this machine's containers whose owners are dead and that did not notice."""
        listed = self._run_engine(
            "ps", "--all", "--filter", f"label={_LABEL}={socket.gethostname()}", "--format", "{{.Names}}"
        )
        for name in listed.split():
            owner = name.removeprefix(_PREFIX).split("-")[0]
            if name.startswith(_PREFIX) and owner.isdigit() and not Path(f"/proc/{owner}").exists():
                self._run_engine("rm", "--force", name)

    def _run_engine(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [self._engine, *arguments], capture_output=True, text=True, timeout=_ASK_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxUnavailableError(f"{self._engine} does not answer: {error}") from error
        return done.stdout


class DockerSandbox(ContainerSandbox):
    """Runs code in a container of Docker."""

    name = "docker"
    install_help = "install it (https://docs.docker.com/engine/install) and let this user use it"


class PodmanSandbox(ContainerSandbox):
    """Runs code in a container of Podman."""

    name = "podman"
    install_help = "run: sudo apt install podman"


class _Link:
    """The engine's client process, and what is said over its streams."""

    def __init__(self, command: Sequence[str]) -> None:
        self.is_over = False
        self.first: Future[dict[str, Any]] = Future()
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # an interrupt at the terminal is for the caller, who then closes it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._stream = Stream(self._stdout, self._stdin)  # type: ignore[arg-type]
        self._lock = threading.Lock()
        self._pending: dict[int, Future[tuple[dict[str, Any], list[bytes]]]] = {}
        self._sent: set[str] = set()
        self._next = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(
        self, header: dict[str, Any], workspace: bytes, timeout_s: float, key: str | None, inputs: bytes | None
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Sends a request, with its inputs if they are not there yet, and waits for the answer.

        Raises:
            SandboxError: The container is gone.
            concurrent.futures.TimeoutError: No answer in time.
        """
        answer: Future[tuple[dict[str, Any], list[bytes]]] = Future()
        with self._lock:
            if self.is_over:
                raise SandboxError("the container has ended")
            self._next += 1
            number = self._next
            self._pending[number] = answer
            try:
                if key is not None and inputs is not None and key not in self._sent:
                    self._stream.send({"op": "inputs"}, (inputs,))
                    self._sent.add(key)
                self._stream.send({**header, "id": number}, (workspace,))
            except OSError as error:
                raise SandboxError("the container has ended") from error
        return answer.result(timeout_s)

    def forget(self, key: str | None) -> None:
        """Notes that inputs are no longer kept inside."""
        with self._lock:
            self._sent.discard(key or "")

    def end(self) -> bool:
        """Asks the container to end by closing its input; returns whether it did in time."""
        with contextlib.suppress(OSError):  # what was not sent yet has nobody to read it
            self._stdin.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            return False
        self._finish()
        return True

    def kill(self) -> None:
        """Kills the engine's client."""
        self._process.kill()
        self._process.wait()
        self._finish()

    def _finish(self) -> None:
        self._reader.join(_STOP_S)
        self._stdout.close()
        self._errors.close()

    def _read(self) -> None:
        reason = ""
        try:
            while (message := self._stream.receive()) is not None:
                header, blobs = message
                if not self.first.done():
                    self.first.set_result(header)
                    continue
                with self._lock:
                    answer = self._pending.pop(int(header.get("id", 0)), None)
                if answer is not None:
                    answer.set_result((header, blobs))
        except (OSError, ValueError, SandboxError) as error:
            reason = str(error)
        self.is_over = True
        with self._lock:
            waiting = list(self._pending.values())
            self._pending.clear()
        end = SandboxError(self._last_words() or reason or "the container has ended")
        if not self.first.done():
            self.first.set_exception(end)
        for answer in waiting:
            answer.set_exception(end)

    def _last_words(self) -> str:
        self._errors.seek(0)
        text = self._errors.read()[-_KEPT_ERRORS:].decode(errors="replace")
        lines = [line.strip().removeprefix("docker: ") for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if any(word in line.lower() for word in _TELLING)]
        return (telling or lines[-1:] or [""])[0]


def _take(header: dict[str, Any], blobs: list[bytes], request: ExecRequest) -> ExecResult:
    if "result" not in header:
        message = str(header.get("message", "it gave no reason"))
        raise ConfigError(message) if header.get("failed") == "request" else SandboxError(message)
    facts = dict(header["result"])
    try:
        files = tuple(
            CollectedFile(
                name=file["name"],
                reason=file["reason"],
                data=None if file["data"] is None else base64.b64decode(file["data"]),
            )
            for file in facts.pop("files")
        )
        result = ExecResult.model_validate(facts).replace(files=files)
    except (ValueError, KeyError, TypeError) as error:
        raise SandboxError(f"the container sent back a result that cannot be read: {error}") from error
    unpack(blobs[0], request.workspace, max_bytes=request.limits.file_mb * _MB)
    return result
