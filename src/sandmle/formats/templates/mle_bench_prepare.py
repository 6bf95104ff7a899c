"""The task is synthetic: nothing is downloaded, and its prepared data come with it.

To prepare it anew, give a raw folder that holds such a ``public`` and ``private`` folder.
"""

import shutil


def prepare(raw, public, private):
    """Copies ``raw/public`` and ``raw/private`` to where MLE-bench wants them."""
    for source, target in ((raw / "public", public), (raw / "private", private)):
        if not source.is_dir():
            raise FileNotFoundError(f"{source} is missing; copy the exported prepared/{source.name} folder there")
        shutil.copytree(source, target, dirs_exist_ok=True)
