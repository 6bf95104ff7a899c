"""The bundle on disk: layout, content hashes, reading and writing. Nothing here executes anything."""

from sandmle.tasks.bundle import (
    Bundle,
    BundleDraft,
    check_bundle,
    find_bundles,
    load_bundle,
    write_bundle,
)

__all__ = ["Bundle", "BundleDraft", "check_bundle", "find_bundles", "load_bundle", "write_bundle"]
