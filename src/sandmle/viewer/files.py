"""Writing what a viewer made: whole or not at all."""

import os
from pathlib import Path

from sandmle.errors import ConfigError


def write_file(content: bytes, out: Path) -> Path:
    """Writes a file beside its place and then moves it there; returns its path.

    Raises:
        ConfigError: The file cannot be written.
    """
    scratch = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            scratch.write_bytes(content)
            scratch.replace(out)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {out}: {error.strerror}; choose another file") from error
    return out
