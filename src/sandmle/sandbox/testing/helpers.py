"""What the contract's tests share: running code in a fresh workspace, and attacks that must fail."""

import textwrap
from pathlib import Path

import pytest

from sandmle.records import ExecResult, ExecStatus, Limits
from sandmle.sandbox.base import Capability, ExecRequest, Sandbox

GRACE_S = 0.5
"""What the contract allows beyond the deadline."""

_ATTACK = """
import ctypes, os, signal, socket, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def held(name, attack):
    try:
        result = attack()
    except BaseException:
        return
    if result:
        print("BROKEN:", name, repr(result)[:300])
"""


def needs(sandbox: Sandbox, *capabilities: Capability) -> None:
    """Skips the test if the backend does not declare a capability."""
    for capability in capabilities:
        if capability not in sandbox.capabilities:
            pytest.skip(f"the {sandbox.name} backend does not declare {capability.value!r} on this machine")


def run(
    sandbox: Sandbox,
    folder: Path,
    code: str,
    *,
    limits: Limits | None = None,
    inputs: Path | None = None,
    collect: tuple[str, ...] = (),
    rng_seed: int = 0,
) -> ExecResult:
    """Runs code in ``folder/workspace``, which is made if it is not there."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True, parents=True)
    limits = limits or Limits(wall_s=30, memory_mb=1024)
    request = ExecRequest(textwrap.dedent(code), workspace, inputs, limits, rng_seed, collect)
    return sandbox.execute(request)


def output(sandbox: Sandbox, folder: Path, code: str, **options: object) -> str:
    """Runs code that must end well, and returns its stdout."""
    result = run(sandbox, folder, code, **options)  # type: ignore[arg-type]
    assert result.status is ExecStatus.OK, result
    return result.stdout


def needs_modules(sandbox: Sandbox, folder: Path, *names: str) -> None:
    """Skips the test if the sandbox's interpreter lacks a module."""
    code = f"from importlib.util import find_spec\nprint([name for name in {names!r} if find_spec(name) is None])"
    missing = output(sandbox, folder / "modules", code).strip()
    if missing != "[]":
        pytest.skip(f"the sandbox's interpreter lacks {missing}")


def assert_held(sandbox: Sandbox, folder: Path, attacks: str, **options: object) -> None:
    """Runs attacks, each written as ``held(name, function)``; none may return something true."""
    code = _ATTACK + textwrap.dedent(attacks) + "\nprint('end')\n"
    assert output(sandbox, folder, code, **options) == "end\n"


def assert_timeout(result: ExecResult, limit_s: float) -> None:
    """The code was stopped at its wall-clock limit, and not later than the contract allows."""
    assert result.status is ExecStatus.TIMEOUT, result
    assert result.exit_code is None
    assert limit_s <= result.wall_s <= limit_s + GRACE_S
    assert result.detail


def processes_with(token: str) -> list[str]:
    """Returns the host's processes whose command line holds a token."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:  # it ended meanwhile
                continue
            if token.encode() in command:
                found.append(entry.name)
    return found
