"""Bad input is refused at start, in one sentence that names the fix."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import ConfigError, SandboxUnavailableError, UserError
from sandmle.sandbox import (
    Capability,
    ContainerConfig,
    ExecRequest,
    RestrictedConfig,
    execution_limits,
    open_backend,
    sandbox_config,
)
from sandmle.sandbox.backend import check_request
from sandmle.sandbox.bwrap import BwrapSandbox
from sandmle.sandbox.forkserver import ForkserverSandbox
from sandmle.sandbox.restricted import RestrictedSandbox


def _is_one_sentence(text: str) -> bool:
    return bool(text) and "\n" not in text and len(text) < 400


def test_good_settings() -> None:
    assert sandbox_config({}).backend == "forkserver"
    config = sandbox_config({"backend": "restricted", "workers": 2, "require": ["network"]})
    assert config == RestrictedConfig(workers=2, require=(Capability.NETWORK,))
    assert isinstance(sandbox_config({"backend": "podman", "disk_mb": 5}), ContainerConfig)
    assert execution_limits({"wall_s": 5}).wall_s == 5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "forksrver"}, "unknown sandbox 'forksrver'; did you mean 'forkserver'"),
        ({"backend": "auto"}, "unknown sandbox 'auto'; known: bwrap, docker, forkserver, podman, restricted"),
        ({"backend": None}, "unknown sandbox 'None'"),
        ({"require": ["netwrk"]}, "unknown capability 'netwrk'; did you mean 'network'"),
        ({"workrs": 2}, "unknown setting of the forkserver sandbox 'workrs'; did you mean 'workers'"),
        ({"workers": 0}, "workers of the forkserver sandbox is 0; give a number above 0"),
        ({"workers": "many"}, "workers of the forkserver sandbox is 'many'; input should be a valid integer"),
        ({"backend": "docker", "memory_mb": -1}, "memory_mb of the docker sandbox is -1; give a number above 0"),
    ],
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        sandbox_config(settings)
    assert _is_one_sentence(str(caught.value))


@pytest.mark.parametrize("name", ["wall_s", "cpu_s", "memory_mb", "processes", "file_mb", "output_bytes"])
@pytest.mark.parametrize("value", [0, -1])
def test_limits_of_zero_or_below(name: str, value: int) -> None:
    with pytest.raises(
        ConfigError, match=f"{name} of an execution's limits is {value}; give a number above 0"
    ) as caught:
        execution_limits({name: value})
    assert _is_one_sentence(str(caught.value))


def test_other_bad_limits() -> None:
    for settings in ({"wall_s": float("nan")}, {"wall_s": float("inf")}, {"memory": 5}, {"wall_s": "long"}):
        with pytest.raises(ConfigError) as caught:
            execution_limits(settings)
        assert _is_one_sentence(str(caught.value))


def test_bad_folders(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "link").symlink_to(workspace)
    (tmp_path / "file").touch()
    requests = {
        "missing cannot be used: No such file or directory; give an existing folder": ExecRequest(
            "", tmp_path / "missing"
        ),
        "link is not a folder of its own; give a folder, not a link": ExecRequest("", tmp_path / "link"),
        "file is not a folder of its own": ExecRequest("", tmp_path / "file"),
        "inputs .*none is not a folder; give an existing folder": ExecRequest("", workspace, tmp_path / "none"),
        "cannot collect '../x'; give a path inside the workspace": ExecRequest("", workspace, collect=("../x",)),
    }
    for words, request in requests.items():
        with pytest.raises(ConfigError, match=words) as caught:
            check_request(request)
        assert _is_one_sentence(str(caught.value))


def test_unreadable_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an ordinary user sees them: root may read everything."""
    folders = [tmp_path / "workspace", tmp_path / "inputs"]
    for folder in folders:
        folder.mkdir()
    for name, words in (
        ("workspace", "cannot be read and written by this user; change"),
        ("inputs", "cannot be read by"),
    ):
        monkeypatch.setattr("os.access", lambda path, mode, name=name: Path(path).name != name)
        with pytest.raises(ConfigError, match=words):
            check_request(ExecRequest("", *folders))


@pytest.mark.parametrize("backend", [ForkserverSandbox, BwrapSandbox])
def test_an_interpreter_in_a_folder_that_code_sees_fresh(backend: type[ForkserverSandbox], tmp_path: Path) -> None:
    python = tmp_path / "python"
    facts = '{"prefixes": ["/workspace/environment"], "site": [], "version": [3, 12]}'
    python.write_text(f"#!/bin/sh\necho '{facts}'\n")
    python.chmod(0o755)
    with pytest.raises(
        SandboxUnavailableError, match=r"needs /workspace/environment, but code has a fresh .*elsewhere"
    ):
        backend(python=str(python)).start()


def test_a_missing_kernel_feature_is_named() -> None:
    """Landlock is taken away from a process by a filter; without it the restricted sandbox must not start."""
    code = """
import os, struct
from sandmle.errors import SandboxUnavailableError
from sandmle.sandbox import open_backend
from sandmle.sandbox.inner import kernel, seccomp
program = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7FFF0000)]
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
try:
    from sandmle.sandbox.restricted import RestrictedSandbox
    RestrictedSandbox(python="/usr/bin/python3", libraries="none").start()
except SandboxUnavailableError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    if "does not run" in done.stdout or "give 3.11" in done.stdout:
        pytest.skip("no system Python 3.11")
    assert "needs Landlock 6 (Linux 6.12), and this kernel has 0" in done.stdout
    assert _is_one_sentence(done.stdout.strip())


def test_names_of_backends_that_are_not_there() -> None:
    for name in ("forksever", "auto", "missing_module:Sandbox"):
        with pytest.raises(UserError) as caught:
            open_backend(name)
        assert _is_one_sentence(str(caught.value))
    with pytest.raises(ConfigError, match="workers is 0"):
        RestrictedSandbox(workers=0)


def test_the_commands_refuse_bad_numbers(tmp_path: Path) -> None:
    for arguments in (["sandbox", "--n", "0"], ["soak", "--n", "0"], ["soak", "--workers", "0"]):
        assert CliRunner().invoke(app, ["bench", *arguments]).exit_code == 2
    with pytest.raises(ConfigError, match=r"\.md file in an existing folder"):
        CliRunner().invoke(app, ["bench", "sandbox", "--page", str(tmp_path / "x.txt")], catch_exceptions=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("forkserver,libraries=tabluar", "set of libraries 'tabluar'.*tabular"),
        ("forkserver,libary=torch", "setting of the forkserver sandbox 'libary'.*libraries"),
        ("forkserver,threads=0", "threads of the forkserver sandbox is 0; give a number above 0"),
        ("forkserver,libraries", "setting 'libraries' of the sandbox forkserver has no value; write it as name=value"),
        ("bwrap,libraries=torch", "setting of the bwrap sandbox 'libraries'"),
        ("nowhere,threads=1", "sandbox 'nowhere'"),
    ],
)
def test_settings_behind_a_name(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        open_backend(text)
    assert _is_one_sentence(str(caught.value))


@pytest.mark.sandbox
def test_a_name_with_settings_opens(tmp_path: Path) -> None:
    with open_backend("forkserver,libraries=none,threads=2,require=[network]", workers=1) as sandbox:
        result = sandbox.execute(ExecRequest("import os; print(os.environ['OMP_NUM_THREADS'])", tmp_path))
    assert (result.stdout, sandbox.workers) == ("2\n", 1)
