"""The parts of the sandbox on their own: output, watching, slots, folders, user ids, names, views."""

import fcntl
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError

from sandmle.errors import ConfigError, SandboxError, SandboxUnavailableError
from sandmle.records import Limits
from sandmle.sandbox import (
    BwrapConfig,
    Capability,
    ExecRequest,
    ForkserverConfig,
    open_backend,
    open_sandbox,
    scratch,
    supervise,
    users,
)
from sandmle.sandbox import config as config_module
from sandmle.sandbox.cgroups import NoGroup
from sandmle.sandbox.forkserver import ForkserverSandbox
from sandmle.sandbox.inner import seccomp
from sandmle.sandbox.output import HeadTail, clean
from sandmle.sandbox.slots import Slots
from sandmle.sandbox.supervise import Channels, Watch


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_head_and_tail_are_kept_in_bounded_memory(chunk: int) -> None:
    kept = HeadTail(20)
    data = b"".join(b"%09d\n" % i for i in range(100))
    for start in range(0, len(data), chunk):
        kept.feed(data[start : start + chunk])
        assert len(kept._tail) <= 20 + chunk
    assert kept.total == 1000
    assert kept.text() == "000000000\n\n[... 980 bytes not shown ...]\n000000099\n"


def test_short_output_is_whole() -> None:
    kept = HeadTail(20)
    kept.feed(b"x" * 20)
    assert kept.text() == "x" * 20


def test_output_is_cleaned() -> None:
    assert clean(b"a\r\nb\rc\x1b[1;31md\x1b]0;t\x07e\x00\xff\tf\n") == "a\nb\ncde\ufffd\ufffd\tf\n"


def test_s26_a_setup_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process 1 that never gets to the code is the sandbox's failure, within its own limit."""
    monkeypatch.setattr(supervise, "SETUP_S", 0.3)
    channels = Channels.open()
    watch = Watch(channels, Limits(wall_s=0.1), NoGroup())
    start_s = time.monotonic()
    with pytest.raises(SandboxError, match=r"could not start the code within 0\.3 s"):
        watch.run()
    assert time.monotonic() - start_s < 2
    watch.close()
    channels.close()


def test_s05_a_process_that_is_gone_is_not_an_error() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    channels = Channels.open()
    watch = Watch(channels, Limits(), NoGroup(), init_fd=os.pidfd_open(pid))
    os.waitpid(pid, 0)
    watch.close()
    channels.close()


def test_slots_serve_in_order_and_never_more_than_there_are() -> None:
    slots, running, most, order = Slots(2), [0], [0], []
    lock = threading.Lock()

    def work(index: int) -> None:
        with slots.turn() as slot:
            assert slot in (0, 1)
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
                order.append(index)
            time.sleep(0.02)
            with lock:
                running[0] -= 1

    with ThreadPoolExecutor(20) as pool:
        pending = []
        for index in range(10):
            pending.append(pool.submit(work, index))
            time.sleep(0.005)
        for future in pending:
            future.result()
    assert most[0] == 2
    assert order == sorted(order)
    slots.wait_idle()


def test_folders_of_dead_processes_are_removed_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = os.fork()
    if dead == 0:
        os._exit(0)
    os.waitpid(dead, 0)
    mine = scratch.Scratch()
    left = tmp_path / f"sandmle-{dead}-left"
    (left / "deep" / "er").mkdir(parents=True)
    locked = tmp_path / f"sandmle-{dead}-locked"
    locked.mkdir()
    others = [
        tmp_path / name for name in ("sandmle-notes-1", "sandmle", f"other-{dead}-x", f"sandmle-{os.getppid()}-x")
    ]
    for folder in others:
        folder.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / f"sandmle-{dead}-link"
    link.symlink_to(target)
    fd = os.open(locked, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    scratch.remove_leftovers()
    os.close(fd)
    assert not left.exists()
    assert all(folder.exists() for folder in (*others, locked, mine.path, target, link))
    mine.remove()
    mine.remove()
    assert not mine.path.exists()


def test_user_ids_fit_what_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, low, high in (
        ("0 0 4294967295", 1_000_000_000, 2_000_000_000),
        ("0 100000 65536", 32768, 65536),
        ("0 1000 1\n1 100000 65536", 32769, 65537),
    ):
        monkeypatch.setattr(Path, "read_text", lambda self, text=text: text)
        firsts = {users.pick_first_uid() for _ in range(50)}
        assert len(firsts) > 10
        assert all(low <= first and first + users.SLOTS <= high for first in firsts)


def test_unknown_backend_has_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'forkserver'"):
        open_backend("forkservr")
    with pytest.raises(ValidationError):
        ForkserverConfig(worker=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("workers", [0, -1, 65])
def test_number_of_workers_is_checked(workers: int) -> None:
    with pytest.raises(ConfigError, match="workers"):
        ForkserverSandbox(workers=workers)


class _Weak:
    name = "weak"
    capabilities = frozenset({Capability.FILESYSTEM})
    closed = False

    def __init__(self, **settings: object) -> None:
        self.settings = settings

    def start(self) -> "_Weak":
        return self

    def close(self) -> None:
        type(self).closed = True


def test_s25_what_is_required_and_missing_refuses_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_module, "resolve", lambda *_: _Weak)
    assert open_sandbox(BwrapConfig(require=("filesystem",))).name == "weak"
    with pytest.raises(SandboxUnavailableError, match="weak sandbox does not hold memory, network"):
        open_sandbox(ForkserverConfig(require=("memory", "filesystem", "network")))
    assert _Weak.closed


def test_seccomp_programs_are_well_formed() -> None:
    for machine in ("x86_64", "aarch64"):
        program = seccomp.build(machine)
        assert len(program) % 8 == 0
        assert len(program) // 8 < 4096
    with pytest.raises(OSError, match="no system-call filter"):
        seccomp.build("riscv64")


def test_folders_that_code_could_read_anyway_are_refused(tmp_path: Path) -> None:
    sandbox = ForkserverSandbox()
    visible = Path(sandbox.view.binds[0][0])
    with pytest.raises(ConfigError, match="which sandboxed code can read"):
        sandbox.execute(ExecRequest("pass", tmp_path, inputs=visible))


def test_an_old_interpreter_is_refused(tmp_path: Path) -> None:
    python = tmp_path / "python"
    facts = '{"prefixes": ["/usr"], "site": [], "version": [3, 9]}'
    python.write_text(f"#!/bin/sh\necho '{facts}'\n")
    python.chmod(0o755)
    with pytest.raises(SandboxUnavailableError, match=r"is Python 3\.9; give 3\.11 or newer"):
        ForkserverSandbox(python=str(python)).start()
