"""The commands ``exec`` and ``doctor``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandmle.cli.main import app
from sandmle.errors import ConfigError, SandboxUnavailableError
from sandmle.sandbox import survey
from sandmle.sandbox.survey import BackendReport
from tests.bundles import draft, saved

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(draft("binary", n_private=1000), tmp_path_factory.mktemp("tasks")).root


def _exec(task: Path, code: str, *options: str, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    script = tmp_path / "script.py"
    script.write_text(code)
    result = CliRunner().invoke(app, ["exec", str(task), str(script), *options], catch_exceptions=False)
    return subprocess.CompletedProcess([], result.exit_code, result.stdout, result.stderr)


def test_a_good_script(task: Path, tmp_path: Path) -> None:
    code = "import os\nprint(sorted(os.listdir('input')))\nopen('submission.csv', 'w').write('id')"
    done = _exec(task, code, "--out", str(tmp_path / "out"), tmp_path=tmp_path)
    assert done.returncode == 0
    assert done.stdout == "['sample_submission.csv', 'test.csv', 'train.csv']\n"
    assert done.stderr.startswith("sandmle: ok; ")
    assert done.stderr.endswith("wrote submission.csv\n")
    assert (tmp_path / "out" / "submission.csv").read_text() == "id"


def test_a_failing_script(task: Path, tmp_path: Path) -> None:
    done = _exec(task, "1/0", tmp_path=tmp_path)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "sandmle: error; exit code 1" in done.stderr


def test_limits_and_json(task: Path, tmp_path: Path) -> None:
    done = _exec(task, "import time; time.sleep(9)", "--timeout", "0.3", "--json", tmp_path=tmp_path)
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["status"], facts["exit_code"]) == (1, "timeout", None)
    assert facts["written"] == []
    done = _exec(task, "x = [b'x' * 10**7 for _ in range(99)]", "--memory", "100", "--json", tmp_path=tmp_path)
    assert json.loads(done.stdout)["status"] in ("oom", "error")  # error where nothing bounds memory as a whole


def test_bad_input_is_exit_code_2(task: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ConfigError, match="not empty"):
        _exec(task, "pass", "--out", str(tmp_path / "full"), tmp_path=tmp_path)
    with pytest.raises(ConfigError, match="did you mean 'forkserver'"):
        _exec(task, "pass", "--backend", "forksever", tmp_path=tmp_path)
    command = [sys.executable, "-m", "sandmle.cli.main", "exec", str(task), "missing.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "script missing.py cannot be read" in done.stderr


@pytest.mark.parametrize("timeout", ["inf", "1e300"])
def test_a_timeout_that_is_no_time_is_one_sentence(task: Path, timeout: str) -> None:
    command = [sys.executable, "-m", "sandmle.cli.main", "exec", str(task), "-", "--timeout", timeout]
    done = subprocess.run(command, input="pass", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--timeout" in done.stderr


def test_names_of_written_files_do_nothing_to_the_terminal(task: Path, tmp_path: Path) -> None:
    code = r"for name in (b'a\x1b[2Jb', b'c\nd', b'e\xff', b':m:'): open(name, 'w').close()"
    done = _exec(task, code, tmp_path=tmp_path)
    assert done.stderr.endswith(r"wrote :m:, a\x1b[2Jb, c\nd, e\udcff" + "\n")
    facts = json.loads(_exec(task, code, "--json", tmp_path=tmp_path).stdout)
    assert facts["written"] == [":m:", "a\x1b[2Jb", "c\nd", "e\udcff"]


def test_s19_exit_codes_through_a_pipe(task: Path) -> None:
    """The script comes from stdin, its output goes into a pipe; the exit code is still that of the command."""
    command = [sys.executable, "-m", "sandmle.cli.main", "exec", str(task), "-", "--json"]
    for code, status, exit_code in (("raise SystemExit(3)", "error", 3), ("print(1)", "ok", 0)):
        done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
        facts = json.loads(done.stdout)
        assert (done.returncode, facts["status"], facts["exit_code"]) == (int(exit_code != 0), status, exit_code)


def test_doctor_tells_what_works() -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    report = json.loads(done.stdout)
    assert done.exit_code == (0 if report["default_works"] else 1)
    assert [backend["name"] for backend in report["backends"]] == [
        "forkserver",
        "bwrap",
        "restricted",
        "docker",
        "podman",
    ]
    notes = {backend["name"]: backend["note"] for backend in report["backends"] if backend["works"]}
    assert "answers" in notes.get("restricted", "answers")
    assert {"kernel", "landlock", "seccomp", "namespaces", "control groups"} <= {
        finding["name"] for finding in report["findings"]
    }
    for finding in report["findings"]:
        assert finding["is_there"] or finding["remedy"]


def test_doctor_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, **options: object) -> None:
        raise SandboxUnavailableError(f"{name} needs more")

    monkeypatch.setattr(survey, "open_backend", refuse)
    monkeypatch.setattr(survey.shutil, "which", lambda name: None)
    monkeypatch.setattr(survey.landlock, "abi_version", lambda: 0)
    monkeypatch.setattr(survey, "cgroup_kind", lambda: ("none", "read-only"))
    monkeypatch.setattr(survey.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(survey, "_TRY_USER_NAMESPACE", "raise SystemExit(1)")
    monkeypatch.setattr(survey, "_kernel_setting", lambda path: "1" if "apparmor" in path else "")
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    for words in (
        "sudo apt install bubblewrap",
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        "missing  control groups: read-only",
        "missing  landlock",
        "forkserver needs more",
        "nothing weaker is used in its place",
    ):
        assert words in done.stdout


def test_doctor_off_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey.platform, "system", lambda: "Darwin")
    report = survey.survey_machine()
    assert not report.default_works
    assert report.findings[0].remedy.startswith("sandboxes need Linux")
    assert all(isinstance(backend, BackendReport) and not backend.works for backend in report.backends)
