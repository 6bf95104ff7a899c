"""Harbor: a folder a task, the answers in a verifier of its own that the agent's container never holds.

::

    OUT/<id>/
      task.toml instruction.md
      environment/        Dockerfile, input/ (what the agent sees)
      tests/              Dockerfile, test.sh, grade.py, grader.zip, bundle/ (all that is hidden)
      solution/           the reference submission, where the task has one

The verifier is declared separate, so ``tests/`` is the build context of another image; only ``submission.csv`` goes
there. Layout: harborframework.com, tasks, schema version 1.1.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandmle.formats.portable import GRADER_FILE, GRADER_NEEDS, grader_zip, template
from sandmle.tasks import Bundle
from sandmle.tasks.bundle import DESCRIPTION_FILE

_IMAGE = "python:3.12-slim"
_AGENT_NEEDS = ("numpy", "pandas", "scipy", "scikit-learn", "lightgbm", "pillow")
_AGENT_TIMEOUT_S = 3600.0
_VERIFIER_TIMEOUT_S = 300.0
_BUILD_TIMEOUT_S = 1200.0
_STORAGE_MB = 4096
_WORKING = """
## Working here

The files are in `/app/input/`. Write your predictions to `/app/submission.csv`; there is no network.
"""


class Harbor:
    """The layout."""

    name = "harbor"
    warning = ""
    options: Mapping[str, str] = {}

    def place(self, task_id: str, path: str) -> str:
        """Returns where a file lies."""
        if path.startswith("public/"):
            return f"{task_id}/environment/input/{path.removeprefix('public/')}"
        return f"{task_id}/tests/bundle/{path}"

    def folders(self, task_id: str) -> tuple[str, ...]:
        """Returns the task's one folder."""
        return (task_id,)

    def encode(self, path: str, data: bytes) -> bytes:
        """Returns the bytes as they are."""
        return data

    def decode(self, path: str, data: bytes) -> bytes:
        """Returns the bytes as they are."""
        return data

    def extras(self, bundle: Bundle) -> Mapping[str, bytes]:
        """Returns configuration, instruction, images, verifier and solution."""
        root = bundle.task_id
        made = {
            f"{root}/task.toml": _task_toml(bundle).encode(),
            f"{root}/instruction.md": bundle.read(DESCRIPTION_FILE) + _WORKING.encode(),
            f"{root}/environment/Dockerfile": _dockerfile(_AGENT_NEEDS, "COPY input/ /app/input/"),
            f"{root}/tests/Dockerfile": _dockerfile(GRADER_NEEDS, "COPY . /tests/"),
            f"{root}/tests/test.sh": template("harbor_test.sh"),
            f"{root}/tests/grade.py": template("harbor_grade.py"),
            f"{root}/tests/{GRADER_FILE}": grader_zip(),
        }
        if "private/oracle.csv" in bundle.spec.files:
            made[f"{root}/solution/oracle.csv"] = bundle.read("private/oracle.csv")
            made[f"{root}/solution/solve.sh"] = template("harbor_solve.sh")
        return made

    def shared(self, task_ids: Sequence[str]) -> Mapping[str, bytes]:
        """Returns nothing: a folder of tasks is a data set."""
        return {}

    def find(self, root: Path) -> list[str]:
        """Returns the ids of the task folders."""
        return sorted(path.parent.name for path in root.glob("*/task.toml"))


def _dockerfile(needs: Sequence[str], copy: str) -> bytes:
    return f"FROM {_IMAGE}\nRUN pip install --no-cache-dir {' '.join(needs)}\nWORKDIR /app\n{copy}\n".encode()


def _task_toml(bundle: Bundle) -> str:
    spec = bundle.spec
    machine = f"""build_timeout_sec = {_BUILD_TIMEOUT_S}
cpus = 1
memory_mb = {spec.limits.memory_mb}
storage_mb = {_STORAGE_MB}
allow_internet = false
"""
    return f"""schema_version = "1.1"
artifacts = ["/app/submission.csv"]

[task]
name = "sandmle/{spec.task_id}"
description = {json.dumps(spec.title)}
keywords = {json.dumps([spec.task_kind.value, spec.metric, *(each.value for each in spec.modalities)])}

[metadata]
category = "machine-learning"
domain = {json.dumps(spec.domain)}
task_hash = "{spec.task_hash}"

[agent]
timeout_sec = {_AGENT_TIMEOUT_S}

[verifier]
environment_mode = "separate"
timeout_sec = {_VERIFIER_TIMEOUT_S}

[verifier.environment]
{machine}
[environment]
{machine}"""
