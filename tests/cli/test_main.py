"""The frame of the command line: one sentence and exit code 2 for mistakes, a traceback only on demand."""

import subprocess
import sys

import pytest

import sandmle


def _sandmle(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "sandmle.cli.main", *arguments], capture_output=True, text=True)


def test_version():
    done = _sandmle("--version")
    assert (done.returncode, done.stdout) == (0, f"sandmle {sandmle.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("seeds", "show", "spaceship-titanik"), "did you mean 'spaceship-titanic'?"),
        (("generate", "--seeds", "leaf-classification", "--count", "1", "--out", "{tmp}/t"), "Lite"),
        (("validate", "{tmp}/nowhere"), "nowhere"),
        (("grade", "{tmp}/nowhere", "{tmp}/x.csv"), "nowhere"),
        (("play", "{tmp}/nowhere"), "nowhere"),
        (("report", "{tmp}/nowhere"), "nowhere"),
        (("view", "{tmp}/nowhere"), "nowhere"),
        (("rollout", "--tasks", "{tmp}/nowhere", "--policy", "scripted:sample", "--out", "{tmp}/r"), "nowhere"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments, sentence, tmp_path):
    done = _sandmle(*(argument.format(tmp=tmp_path) for argument in arguments))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback():
    done = _sandmle("--debug", "seeds", "show", "nowhere")
    assert "Traceback" in done.stderr


def test_no_color_and_no_terminal_give_plain_text():
    done = _sandmle("seeds", "list")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
