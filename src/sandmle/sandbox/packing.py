"""Folders as bytes, for sandboxes that share no file system with the caller. What comes back is hostile."""

import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sandmle.errors import ConfigError, SandboxError

_MAX_ENTRIES = 4000
_MAX_DEPTH = 32


def pack(folder: Path, *, max_bytes: int | None = None) -> bytes:
    """Returns the regular files and folders below a folder as a tar archive, sorted; links and the rest stay behind.

    Args:
        folder: What is packed.
        max_bytes: More than this in files is refused.

    Raises:
        ConfigError: It holds more than it may, or cannot be read.
    """
    buffer, total = io.BytesIO(), 0
    try:
        # Dereferenced, so that a second name of a file is a file of its own.
        with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
            for path in _entries(folder):
                entry = archive.gettarinfo(path, str(path.relative_to(folder)))
                total += entry.size
                if max_bytes is not None and total > max_bytes:
                    raise ConfigError(f"the workspace {folder} holds more than {max_bytes} bytes; raise file_mb")
                if entry.isdir():
                    archive.addfile(entry)
                else:
                    with path.open("rb") as file:
                        archive.addfile(entry, file)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error}") from error
    return buffer.getvalue()


def _entries(folder: Path) -> Iterator[Path]:
    for place, names, files in os.walk(folder):
        names.sort()
        for name in [*names, *sorted(files)]:
            path = Path(place, name)
            if not path.is_symlink() and (path.is_dir() or path.is_file()):
                yield path


def unpack(data: bytes, folder: Path, *, max_bytes: int | None = None) -> None:
    """Makes a folder hold exactly the regular files and folders of an archive; other entries are left out.

    Raises:
        SandboxError: The archive is broken, names a place outside the folder, or holds too much.
    """
    for old in os.scandir(folder):
        if old.is_dir(follow_symlinks=False):
            shutil.rmtree(old.path)
        else:
            Path(old.path).unlink()
    total = count = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for entry in archive:
                parts = PurePosixPath(entry.name).parts
                total, count = total + entry.size, count + 1
                if not parts or parts[0] == "/" or ".." in parts or len(parts) > _MAX_DEPTH + 1:
                    raise SandboxError(f"the sandbox sent back a file named {entry.name!r}")
                if max_bytes is not None and (total > max_bytes or count > _MAX_ENTRIES):
                    raise SandboxError("the sandbox sent back more files than there may be")
                place = folder.joinpath(*parts)
                if entry.isdir():
                    place.mkdir(parents=True, exist_ok=True)
                elif entry.isreg() and (source := archive.extractfile(entry)) is not None:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with place.open("xb") as file:
                        shutil.copyfileobj(source, file)
    except (tarfile.TarError, OSError, ValueError) as error:
        raise SandboxError(f"the sandbox sent back files that cannot be unpacked: {error}") from error
