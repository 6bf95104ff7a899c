import os
import signal
import subprocess
import sys
from pathlib import Path

from sandmle.env.workspace import Workspace, remove_tree
from sandmle.sandbox.scratch import remove_leftovers


def test_a_workspace_is_removed_whatever_lies_in_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    workspace = Workspace()
    root = workspace.path
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(root)
    locked = root / "locked"
    locked.mkdir()
    (locked / "file").write_text("x")
    locked.chmod(0)
    os.mkfifo(root / "pipe")
    here = os.open(root, os.O_RDONLY)
    try:
        for _ in range(1100):  # a path longer than paths may be, and deeper than Python may recurse
            os.mkdir("d" * 9, dir_fd=here)
            deeper = os.open("d" * 9, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = deeper
    finally:
        os.close(here)
    workspace.remove()
    workspace.remove()
    assert not root.exists()
    assert (outside / "kept.txt").read_text() == "kept"


def test_removing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "never")


def test_workspaces_of_a_killed_process_are_removed_at_the_next_start() -> None:
    code = (
        "import os, signal\nfrom sandmle.env.workspace import Workspace\n"
        "workspace = Workspace()\n(workspace.path / 'big.bin').write_bytes(b'x')\n"
        "print(workspace.path, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    left, mine = Path(killed.stdout.strip()), Workspace()
    assert (left / "big.bin").exists()
    remove_leftovers()
    assert not left.exists()
    assert mine.path.is_dir()
    mine.remove()
