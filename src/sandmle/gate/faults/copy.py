"""A copy of a task that faults are put into and taken out of: its thousands of files are written once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandmle.gate.faults.base import Injection
from sandmle.tasks import Bundle, BundleDraft, write_bundle
from sandmle.tasks.bundle import FILE_TIME_S, SPEC_FILE, dump_spec


class WorkingCopy:
    """A bundle in a folder of its own.

    Attributes:
        contents: The files of the sound task, by path in the bundle.
    """

    def __init__(self, bundle: Bundle, folder: Path) -> None:
        """Writes the copy.

        Raises:
            BundleError: A file was changed since the task was loaded, or the disk refuses.
        """
        self.contents = {path: bundle.read(path) for path in bundle.spec.files}
        self._sound = write_bundle(BundleDraft(bundle.spec, self.contents), folder)

    @contextmanager
    def spoilt(self, injection: Injection) -> Iterator[Bundle]:
        """Puts a fault in, and takes it out when the block ends.

        Raises:
            OSError: The disk refuses.
        """
        root = self._sound.root
        changed = {path: data for path, data in injection.files.items() if self.contents.get(path) != data}
        contents = {path: data for path, data in (self.contents | changed).items() if data is not None}
        spec = BundleDraft(injection.spec or self._sound.spec, contents).sealed_spec()
        try:
            for path, data in {**changed, SPEC_FILE: dump_spec(spec)}.items():
                _put(root / path, data)
            if injection.after is not None:
                injection.after(root)
            yield Bundle(root=root, spec=spec)
        finally:
            for path in changed:
                _put(root / path, self.contents.get(path))
            _put(root / SPEC_FILE, dump_spec(self._sound.spec))
            if injection.after is not None:
                for path in self.contents:
                    os.utime(root / path, (FILE_TIME_S, FILE_TIME_S))


def _put(target: Path, data: bytes | None) -> None:
    """Writes a file with the time of all files of a bundle; None removes it."""
    if data is None:
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    os.utime(target, (FILE_TIME_S, FILE_TIME_S))
