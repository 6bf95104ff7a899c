import os
from pathlib import Path

from sandmle.env.workspace import make_workspace, remove_tree


def test_a_workspace_is_removed_whatever_lies_in_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    root = make_workspace()
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
    remove_tree(root)
    assert not root.exists()
    assert (outside / "kept.txt").read_text() == "kept"


def test_removing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "never")
