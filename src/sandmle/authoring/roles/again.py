"""Makes the data of a drafted task once more, from the script that its bundle keeps."""

from collections.abc import Mapping

from sandmle.authoring.randomness import rng_for
from sandmle.authoring.roles.machine import VERSION, draw_requests
from sandmle.authoring.roles.outputs import DATA_SCRIPT, TaskIdea
from sandmle.authoring.roles.publish import N_PUBLIC, arrange, data_files
from sandmle.authoring.roles.reading import Complaint
from sandmle.authoring.roles.workbench import run_data_script
from sandmle.errors import AuthoringError
from sandmle.records import SeedRecord
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.bundle import SAMPLE_FILE

PLAN_FILE = "provenance/plan.json"
SCRIPT_FILE = f"provenance/{DATA_SCRIPT}"


def data_again(seed: SeedRecord, rng_seed: int, plan: bytes, script: bytes, sandbox: Sandbox) -> Mapping[str, bytes]:
    """Returns the data files of a task by their path in the bundle, without the sample submission.

    Args:
        seed: The seed.
        rng_seed: The task's.
        plan: Contents of ``PLAN_FILE``.
        script: Contents of ``SCRIPT_FILE``.
        sandbox: Where the script runs.

    Raises:
        AuthoringError: The script no longer does what it did.
        SandboxError: The sandbox itself failed.
    """
    idea = TaskIdea.model_validate_json(plan)
    request = draw_requests(seed.id, rng_seed, idea)[0]
    try:
        draw = run_data_script(sandbox, script.decode(), idea, [request])[request.name]
    except Complaint as complaint:
        raise AuthoringError(complaint.summary, lost_to=complaint.kind) from complaint
    rng = rng_for("roles", VERSION, "order", seed.id, rng_seed)
    order = arrange(idea.n_train, N_PUBLIC + idea.n_private, N_PUBLIC, seed.dna.n_id_parts, rng)
    made = data_files(idea, draw, order, dict.fromkeys(idea.target.columns, ""))
    del made[SAMPLE_FILE]  # it needs the metric, and no random numbers
    return made
