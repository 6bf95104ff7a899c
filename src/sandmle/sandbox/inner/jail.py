"""The file system that code sees: built once as a template, completed for each execution, entered for good."""

import errno
import os
import stat
from typing import Any

from sandmle.sandbox.inner import kernel

WORKSPACE = "/workspace"
INPUT = WORKSPACE + "/input"
SCRIPT_NAME = "main.py"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_FRESH = ("/tmp", "/dev/shm")
_TMPFS = kernel.MS_NOSUID | kernel.MS_NODEV
_COPY_CHUNK = 1 << 20
_SPACES = (WORKSPACE, "/tmp", "/dev/shm")
_INODES = 4200


class Refused(Exception):
    """The request cannot be run, which is its sender's fault."""


def build_template(root: str, view: dict[str, Any]) -> None:
    """Mounts the read-only part of the view below ``root``, in this process's own mount namespace.

    Args:
        root: An existing folder; it becomes a tmpfs that no other process sees.
        view: What ``sandmle.sandbox.view.View`` describes, as plain JSON.
    """
    kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", root, "tmpfs", _TMPFS, "mode=755,size=1m,nr_inodes=4096")
    _show_libraries(root, view)
    for target, link in view["symlinks"]:
        os.makedirs(os.path.dirname(root + link), exist_ok=True)  # noqa: PTH103, PTH120
        os.symlink(target, root + link)  # noqa: PTH211
    for path, text in view["files"].items():
        _write(root + path, text.encode())
    for name in ("proc", "tmp", "workspace", "dev/shm"):
        os.makedirs(f"{root}/{name}", exist_ok=True)  # noqa: PTH103
    for name in _DEVICES:
        place = f"{root}/dev/{name}"
        _make_place(f"/dev/{name}", place)
        # A device can be written to on a read-only mount; its times and mode cannot be changed.
        kernel.bind(f"/dev/{name}", place, extra=kernel.MS_NOSUID | kernel.MS_NOEXEC)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{name}")  # noqa: PTH211


def below_fresh_places(view: dict[str, Any]) -> dict[str, Any]:
    """Returns the part of the view that ``complete`` must show again, since it covers /tmp with a fresh one."""

    def is_covered(path: str) -> bool:
        return path.startswith(tuple(f"{place}/" for place in _FRESH))

    return {
        "binds": [pair for pair in view["binds"] if is_covered(pair[1])],
        "mask_folders": list(filter(is_covered, view["mask_folders"])),
        "mask_files": list(filter(is_covered, view["mask_files"])),
    }


def _show_libraries(root: str, view: dict[str, Any]) -> None:
    for source, target in view["binds"]:
        place = root + target
        _make_place(source, place)
        kernel.bind(source, place)
    for folder in view["mask_folders"]:
        kernel.mount("tmpfs", root + folder, "tmpfs", _TMPFS | kernel.MS_RDONLY, "mode=755,size=4k,nr_inodes=2")
    for path in view["mask_files"]:
        kernel.bind("/dev/null", root + path)


def complete(
    root: str, request: dict[str, Any], owner: tuple[int, int], covered: dict[str, Any], *, proc_writable: bool
) -> None:
    """Adds what one execution has for itself: workspace, inputs, /tmp, /dev/shm, /proc.

    Args:
        root: The template.
        request: What to run.
        owner: User and group of the workspace.
        covered: Libraries that lie below /tmp, from ``below_fresh_places``.
        proc_writable: Leave /proc writable.
    """
    size = request["space_bytes"]
    uid, gid = owner
    workspace = root + WORKSPACE
    inodes = f"nr_inodes={_INODES}"
    kernel.mount("tmpfs", workspace, "tmpfs", _TMPFS, f"mode=700,size={size},{inodes},uid={uid},gid={gid}")
    copy_workspace(request["workspace"], workspace, owner)
    if request["inputs"] is not None:
        os.mkdir(root + INPUT)  # noqa: PTH102
        _show_inputs(request["inputs"], root + INPUT)
    for place in _FRESH:
        kernel.mount("tmpfs", root + place, "tmpfs", _TMPFS, f"mode=1777,size={size},{inodes}")
    _show_libraries(root, covered)
    flags = _TMPFS | kernel.MS_NOEXEC | (0 if proc_writable else kernel.MS_RDONLY)
    kernel.mount("proc", root + "/proc", "proc", flags, "hidepid=2")


def hide_processes() -> None:
    """Shows a process in an existing /proc only what it may trace."""
    flags = kernel.MS_REMOUNT | _TMPFS | kernel.MS_NOEXEC
    kernel.mount("proc", "/proc", "proc", flags, "hidepid=2")


def open_spaces(root: str) -> list[int]:
    """Returns descriptors of the places that code may fill, the workspace first.

    They keep the files alive, and tell how full it was, after everything in this namespace is dead.
    """
    return [os.open(root + place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for place in _SPACES]


def copy_workspace(source: str, place: str, owner: tuple[int, int]) -> None:
    """Fills the workspace, but for what the sandbox puts there itself.

    Raises:
        Refused: The host folder does not fit.
    """
    try:
        copy_files(source, place, owner, skip=(SCRIPT_NAME, os.path.basename(INPUT)))  # noqa: PTH119
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EACCES):
            raise Refused(f"the workspace cannot be copied into the sandbox: {error.strerror}") from error
        raise


def _show_inputs(source: str, place: str) -> None:
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    if everyone_may_read(source):
        kernel.bind(source, place, extra=flags)
        return
    # The code runs as a user of its own, who could not read these: show a copy.
    kernel.mount("tmpfs", place, "tmpfs", flags, "mode=755,nr_inodes=65536")
    copy_files(source, place, (0, 0))
    kernel.mount("", place, flags=kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY | flags)


def everyone_may_read(folder: str) -> bool:
    """Looks at the folder and its direct entries; media folders are as open as what they lie beside."""
    modes = [os.stat(folder).st_mode]  # noqa: PTH116
    modes += [entry.stat(follow_symlinks=False).st_mode for entry in os.scandir(folder)]
    folder_bits = stat.S_IROTH | stat.S_IXOTH
    wanted = [folder_bits if stat.S_ISDIR(mode) else stat.S_IROTH for mode in modes]
    return all(mode & bits == bits for mode, bits in zip(modes, wanted, strict=True))


def enter(root: str) -> None:
    """Makes the template this process's root, read-only, and goes to the workspace."""
    kernel.mount("", root, flags=kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY | _TMPFS)
    kernel.pivot_root(root)
    os.chdir(WORKSPACE)


def copy_files(source: str, target: str, owner: tuple[int, int], *, skip: tuple[str, ...] = ()) -> None:
    """Copies regular files and folders; links, devices, the names in ``skip`` and the rest stay behind."""
    for entry in os.scandir(source):
        if entry.name in skip:
            continue
        place = f"{target}/{entry.name}"
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            os.mkdir(place)  # noqa: PTH102
            copy_files(entry.path, place, owner)
        elif stat.S_ISREG(status.st_mode):
            _copy_file(entry.path, place)
        else:
            continue
        os.chown(place, *owner)


def _copy_file(source: str, target: str) -> None:
    reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            while chunk := os.read(reader, _COPY_CHUNK):
                os.write(writer, chunk)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _make_place(source: str, place: str) -> None:
    if os.path.isdir(source):  # noqa: PTH112
        os.makedirs(place, exist_ok=True)  # noqa: PTH103
    else:
        _write(place, b"")


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(data)
