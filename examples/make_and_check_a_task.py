"""Make one task from a seed, put it through the gate, and look at what came out.

Run: python examples/make_and_check_a_task.py [OUT_FOLDER]
"""

import sys
import tempfile
from pathlib import Path

from sandmle.authoring.procedural.author import ProceduralAuthor
from sandmle.gate import run_gate
from sandmle.sandbox import open_sandbox
from sandmle.seeds import load_seed
from sandmle.tasks import write_bundle


def main(out: Path) -> None:
    """Makes the task below ``out``."""
    author = ProceduralAuthor()
    seed = load_seed("spaceship-titanic")
    bundle = write_bundle(author.propose(seed, rng_seed=1), out)
    with open_sandbox() as sandbox:
        report = run_gate(bundle, sandbox=sandbox, regenerate=lambda: author.regenerate(seed, rng_seed=1))
    print(f"{bundle.task_id}: {bundle.spec.title} ({bundle.spec.metric}, {bundle.spec.direction})")
    print(f"gate: {report.verdict}, {len(report.checks)} checks, {len(report.losses())} not passed")
    for name in ("median", "bronze", "silver", "gold"):
        print(f"  {name:<7} {getattr(bundle.spec.thresholds, name).score:.4f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()))
