"""Docker and Podman: the command line, the protocol and the failures, against an engine that runs its command here.

What only a real engine shows is in ``TestDocker`` and ``TestPodman``, which are skipped where there is none.
"""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sandmle
from sandmle.errors import ConfigError, SandboxError, SandboxUnavailableError
from sandmle.records import ExecStatus, Limits
from sandmle.sandbox import Capability, ContainerConfig, ExecRequest, container, open_sandbox
from sandmle.sandbox.container import DockerSandbox, PodmanSandbox
from sandmle.sandbox.inner import landlock
from sandmle.sandbox.packing import pack, unpack
from sandmle.sandbox.stream import Stream
from sandmle.sandbox.testing import SandboxContract
from sandmle.sandbox.testing.helpers import assert_timeout, output, run
from tests.sandbox.test_restricted import _readable_python

_NEEDS_LANDLOCK = pytest.mark.skipif(
    landlock.abi_version() < landlock.SCOPE_ABI, reason="needs Landlock 6 (Linux 6.12)"
)


def _install_engine(folder: Path, **settings: object) -> None:
    python = _readable_python() or sys.executable
    site = [path for path in sys.path if path.endswith("-packages")]
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "inside").mkdir(exist_ok=True)
    facts = {
        "python": python,
        "path": os.pathsep.join([str(Path(sandmle.__file__).parent.parent), *site]),
        "tmp": str(folder / "inside"),
        **settings,
    }
    (folder / "settings.json").write_text(json.dumps(facts))
    program = folder / "docker"
    source = Path(__file__).with_name("fake_engine.py").read_text()
    program.write_text(f"#!{sys.executable}\n{source}")
    program.chmod(0o755)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="engine-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the code's user must get through to its workspace
        yield folder


@pytest.fixture
def engine(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    _install_engine(place)
    (place / "commands.jsonl").unlink(missing_ok=True)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return place


@pytest.fixture
def sandbox(engine: Path) -> Iterator[DockerSandbox]:
    with DockerSandbox(workers=2) as started:
        yield started


def _commands(engine: Path) -> list[list[str]]:
    return [json.loads(line) for line in (engine / "commands.jsonl").read_text().splitlines()]


def _wait_until(condition: object, seconds: float = 10) -> None:
    deadline_s = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_the_container_gets_no_rights() -> None:
    command = DockerSandbox(workers=3, image="mine", memory_mb=5000, disk_mb=70, processes=200).command("sandmle-1-x")
    text = " ".join(command)
    for part in (
        "run --rm --interactive --pull never --name sandmle-1-x",
        "--network none",
        "--ipc none",
        "--read-only",
        "--user 65534:65534",
        "--cap-drop ALL --security-opt no-new-privileges",
        "--tmpfs /tmp:rw,nosuid,nodev,mode=1777,size=70m",
        "--memory 5000m --memory-swap 5000m",
        "--pids-limit 200",
        "--cpus 3",
        "mine python3 -m sandmle.sandbox.service --backend restricted --workers 3",
    ):
        assert part in text
    for never in ("--volume", "--mount", " -v ", "--privileged", "--env", "docker.sock"):
        assert never not in text
    assert PodmanSandbox().command("n")[0] == "podman"


@pytest.mark.parametrize("numbers", [{"workers": 0}, {"workers": 65}, {"memory_mb": 0}, {"disk_mb": -1}])
def test_numbers_are_checked(numbers: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"give 1 to 64|above 0"):
        DockerSandbox(**numbers)


@pytest.mark.sandbox
@_NEEDS_LANDLOCK
class TestOverTheFakeEngine:
    """The protocol."""

    def test_it_runs_code(self, sandbox: DockerSandbox, tmp_path: Path) -> None:
        (tmp_path / "inputs" / "images").mkdir(parents=True)
        (tmp_path / "inputs" / "train.csv").write_text("id,y\n")
        (tmp_path / "workspace").mkdir()
        (tmp_path / "workspace" / "old").write_text("old")
        code = """
            print(open("input/train.csv").read(), open("old").read())
            open("submission.csv", "wb").write(bytes(range(256)))
            import os
            os.remove("old"); os.mkdir("deep"); open("deep/file", "w").write("x"); os.mkfifo("pipe") if False else None
        """
        result = run(sandbox, tmp_path, code, inputs=tmp_path / "inputs", collect=("submission.csv", "none"))
        assert (result.status, result.stdout, result.exit_code) == (ExecStatus.OK, "id,y\n old\n", 0)
        assert result.file("submission.csv") == bytes(range(256))
        assert [file.reason for file in result.files] == ["", "missing"]
        left = {str(path.relative_to(tmp_path / "workspace")) for path in (tmp_path / "workspace").rglob("*")}
        assert left == {"submission.csv", "deep", "deep/file"}
        assert sandbox.capabilities >= {Capability.FILE_CONTENTS, Capability.NETWORK, Capability.LIFETIME}

    def test_statuses_and_faults_come_through(self, sandbox: DockerSandbox, tmp_path: Path) -> None:
        assert run(sandbox, tmp_path, "1/0").exit_code == 1
        assert_timeout(run(sandbox, tmp_path, "import time; time.sleep(9)", limits=Limits(wall_s=0.5)), 0.5)
        with pytest.raises(ConfigError, match="missing"):
            sandbox.execute(ExecRequest("pass", tmp_path / "missing"))
        (tmp_path / "workspace" / "big").write_bytes(bytes(2 << 20))
        with pytest.raises(ConfigError, match="raise file_mb"):
            run(sandbox, tmp_path, "pass", limits=Limits(file_mb=1))

    def test_inputs_are_sent_once_while_they_stay_the_same(
        self, sandbox: DockerSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[str] = []
        send = Stream.send
        monkeypatch.setattr(
            Stream, "send", lambda self, header, blobs=(): (sent.append(header["op"]), send(self, header, blobs))
        )
        inputs = tmp_path / "inputs"
        inputs.mkdir()
        for text in ("one", "one", "two", *(str(i) for i in range(12)), "one"):
            (inputs / "file").write_text(text)
            os.utime(inputs / "file", (1, 1))
            assert output(sandbox, tmp_path, "print(open('input/file').read())", inputs=inputs) == text + "\n"
        # One of the two equal ones was not sent again; the last one was no longer kept, so it was asked for twice.
        assert sent.count("execute") - sent.count("inputs") == 2
        assert sent[:3] == ["inputs", "execute", "execute"]

    def test_many_at_once(self, sandbox: DockerSandbox, tmp_path: Path) -> None:
        with ThreadPoolExecutor(12) as pool:
            outs = list(pool.map(lambda i: output(sandbox, tmp_path / str(i), f"print({i})"), range(12)))
        assert outs == [f"{i}\n" for i in range(12)]

    def test_a_dead_container_is_our_failure_and_is_replaced(
        self, sandbox: DockerSandbox, engine: Path, tmp_path: Path
    ) -> None:
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(run, sandbox, tmp_path, "import time; time.sleep(20)")
            time.sleep(1)
            subprocess.run([engine / "docker", "rm", "--force", sandbox._name], check=True)
            with pytest.raises(SandboxError, match="ended"):
                pending.result()
        assert output(sandbox, tmp_path, "print('next')") == "next\n"

    def test_a_container_that_hangs_is_given_up(
        self, sandbox: DockerSandbox, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(container, "_MARGIN_S", 0.3)
        monkeypatch.setattr(container, "_STOP_S", 0.3)
        os.kill(int((engine / f"{sandbox._name}.pid").read_text()), 19)
        with pytest.raises(SandboxError, match="did not answer within"):
            run(sandbox, tmp_path, "pass", limits=Limits(wall_s=0.5))
        assert ["rm", "--force"] in [command[:2] for command in _commands(engine)]
        monkeypatch.undo()
        monkeypatch.setenv("PATH", f"{engine}:{os.environ['PATH']}")
        assert output(sandbox, tmp_path, "print('next')") == "next\n"

    def test_closing_ends_it_without_force(self, engine: Path, tmp_path: Path) -> None:
        sandbox = DockerSandbox(workers=1).start()
        assert sandbox.start() is sandbox
        assert output(sandbox, tmp_path, "print(1)") == "1\n"
        threads = threading.active_count()
        pid = int((engine / f"{sandbox._name}.pid").read_text())
        sandbox.close()
        sandbox.close()
        assert not Path(f"/proc/{pid}").exists()
        assert threading.active_count() < threads
        assert "rm" not in [command[0] for command in _commands(engine)]
        assert list((engine / "inside").iterdir()) == []
        with pytest.raises(SandboxError, match="not started"):
            run(sandbox, tmp_path, "pass")

    def test_a_killed_caller_takes_the_container_with_it(self, engine: Path) -> None:
        code = "from sandmle.sandbox import open_backend; import os\n"
        code += "sandbox = open_backend('docker', workers=1)\nos.kill(os.getpid(), 9)"
        subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
        pids = [int(path.read_text()) for path in engine.glob("*.pid")]
        assert pids
        _wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))

    def test_containers_of_dead_owners_are_removed(self, engine: Path) -> None:
        dead = subprocess.Popen(["/bin/true"])
        dead.wait()
        (engine / f"sandmle-{dead.pid}-left.pid").write_text("999999999")
        (engine / f"sandmle-{os.getpid()}-mine.pid").write_text("999999999")
        with DockerSandbox(workers=1):
            assert not (engine / f"sandmle-{dead.pid}-left.pid").exists()
            assert (engine / f"sandmle-{os.getpid()}-mine.pid").exists()
        (engine / f"sandmle-{os.getpid()}-mine.pid").unlink()

    def test_configuration(self, engine: Path) -> None:
        config = ContainerConfig(backend="docker", workers=1, memory_mb=3000)
        with open_sandbox(config) as started:
            assert (started.name, started.workers) == ("docker", 1)
        with pytest.raises(SandboxUnavailableError, match="docker sandbox does not hold filesystem"):
            open_sandbox(config.replace(require=(Capability.FILESYSTEM,)))


class TestFailures:
    """One sentence each."""

    def test_s25_without_an_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(SandboxUnavailableError, match="needs docker; install it"):
            DockerSandbox().start()
        with pytest.raises(SandboxUnavailableError, match="needs podman; run: sudo apt install podman"):
            PodmanSandbox().start()

    @pytest.mark.parametrize(
        ("error", "words"),
        [
            ("No such image: sandmle-sandbox", "there is no image sandmle-sandbox; build it .*docker build --tag"),
            ("Cannot connect to the Docker daemon", "start docker's service"),
            ("out of cheese", "out of cheese"),
        ],
    )
    def test_an_engine_that_refuses(self, engine: Path, error: str, words: str) -> None:
        _install_engine(engine, error=error)
        with pytest.raises(SandboxUnavailableError, match=words):
            DockerSandbox().start()

    def test_an_image_that_says_something_else(self, engine: Path) -> None:
        _install_engine(engine, babble=True)
        with pytest.raises(SandboxUnavailableError, match="does not speak the sandbox's language"):
            DockerSandbox().start()

    def test_s26_a_container_that_never_gets_ready(self, engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(container, "_START_S", 0.5)
        monkeypatch.setattr(container, "_STOP_S", 0.3)
        _install_engine(engine, silent=True)
        monkeypatch.setattr(DockerSandbox, "_run_engine", lambda *_: "")
        with pytest.raises(SandboxUnavailableError, match=r"not ready within 0\.5 s"):
            DockerSandbox().start()


class TestPacking:
    """Folders as bytes."""

    def test_there_and_back(self, tmp_path: Path) -> None:
        source, target = tmp_path / "source", tmp_path / "target"
        (source / "a" / "b").mkdir(parents=True)
        (source / "a" / "b" / "file").write_bytes(b"\xff")
        (source / "link").symlink_to("/etc/passwd")
        os.mkfifo(source / "pipe")
        os.link(source / "a" / "b" / "file", source / "again")
        (target / "stale").mkdir(parents=True)
        unpack(pack(source), target)
        assert {str(path.relative_to(target)) for path in target.rglob("*")} == {"a", "a/b", "a/b/file", "again"}
        assert (target / "again").read_bytes() == b"\xff"
        with pytest.raises(ConfigError, match="raise file_mb"):
            pack(source, max_bytes=1)

    @pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "d/" * 40 + "x"])
    def test_a34_names_that_lead_out_are_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(SandboxError, match="sent back"):
            unpack(_archive(name), tmp_path)
        assert list(tmp_path.parent.glob("out")) == []

    def test_a19_links_and_devices_stay_out(self, tmp_path: Path) -> None:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            unpack(_archive("x", kind=kind), tmp_path)
            assert list(tmp_path.iterdir()) == []

    def test_a26_a31_too_much_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SandboxError, match="more files"):
            unpack(_archive("x", size=2000), tmp_path, max_bytes=1000)
        with pytest.raises(SandboxError, match="cannot be unpacked"):
            unpack(b"no archive" * 100, tmp_path)

    def test_a_stream_refuses_what_is_no_message(self) -> None:
        for data in (b"x" * 100, (5).to_bytes(8, "big") + b"12345", (15).to_bytes(8, "big") + b'{"blobs": [-1]}'):
            with pytest.raises(SandboxError, match=r"language|more than it may"):
                Stream(io.BytesIO(data), io.BytesIO()).receive()
        for data in (b"", b"\0\0", (13).to_bytes(8, "big") + b'{"blobs":[9]}' + b"short"):
            assert Stream(io.BytesIO(data), io.BytesIO()).receive() is None


def _archive(name: str, *, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.size = kind, "/etc/passwd", size
        archive.addfile(entry, io.BytesIO(bytes(size)))
    return buffer.getvalue()


def _engine_reason(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        return f"{name} is not installed"
    done = subprocess.run([program, "image", "inspect", "sandmle-sandbox"], capture_output=True, text=True, check=False)
    return f"{name} has no image sandmle-sandbox, or does not run" if done.returncode else ""


@pytest.mark.sandbox
@pytest.mark.docker
@pytest.mark.slow
class _RealEngine(SandboxContract):
    pass


@pytest.mark.skipif(bool(_engine_reason("docker")), reason=_engine_reason("docker") or "-")
class TestDocker(_RealEngine):
    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[DockerSandbox]:
        with DockerSandbox(workers=8) as started:
            yield started


@pytest.mark.skipif(bool(_engine_reason("podman")), reason=_engine_reason("podman") or "-")
class TestPodman(_RealEngine):
    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[PodmanSandbox]:
        with PodmanSandbox(workers=8) as started:
            yield started
