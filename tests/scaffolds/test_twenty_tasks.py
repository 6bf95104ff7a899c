"""Scripted engineers through all four scaffolds on 20 synthetic tasks, with real code in a real sandbox."""

import resource
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from sandmle.authoring.pipeline import GenerateRequest, chosen_seeds, generate
from sandmle.records import Trajectory
from sandmle.rollouts import load_tasks, plan, read_trajectories, run_rollouts
from sandmle.sandbox import open_backend

N_TASKS = 20
SETTINGS: dict[str, tuple[dict[str, Any], int]] = {
    "react": ({}, 20),
    "mle_agent": ({}, 20),
    "aide": ({"num_drafts": 3}, 6),
    "aira": ({"num_drafts": 3}, 6),
}


def run_of(tasks: Path, out: Path, scaffold: str) -> dict[str, Trajectory]:
    options, max_turns = SETTINGS[scaffold]
    bundles = load_tasks(tasks)
    config = plan(
        bundles,
        ["scripted:explorer"],
        scaffold=scaffold,
        scaffold_options=options,
        rng_seed=1,
        episode={"max_turns": max_turns, "feedback": "none"},
    )
    with open_backend("forkserver") as sandbox:
        run_rollouts(config, bundles, out, sandbox=sandbox)
    return {made.task_id: made for made in read_trajectories(out)}


def milestones(made: Trajectory) -> float:
    """Returns how many of median, bronze, silver and gold were reached."""
    return sum(made.terms[name] for name in ("median", "bronze", "silver", "gold"))


@pytest.mark.slow
@pytest.mark.sandbox
def test_four_scaffolds_on_twenty_tasks(tmp_path: Path, needs_sandbox: None) -> None:
    request = GenerateRequest(seeds=chosen_seeds(["all"]), count=N_TASKS, rng_seed=7)
    generate(request, tmp_path / "set", workers=2)
    tasks = tmp_path / "set" / "tasks"
    began_s, began_cpu_s = time.monotonic(), _cpu_s()
    runs = {name: run_of(tasks, tmp_path / name, name) for name in SETTINGS}
    wall_s, own_cpu_s = time.monotonic() - began_s, _cpu_s() - began_cpu_s
    n_steps = sum(len(made.steps) for run in runs.values() for made in run.values())
    for name, run in runs.items():
        made = list(run.values())
        code_s = sum(step.exec_cpu_s or 0.0 for each in made for step in each.steps)
        print(
            f"{name}: valid {sum(each.terms['execute'] for each in made):.0f} of {len(made)}, "
            f"mean reward {statistics.fmean(each.reward or 0.0 for each in made):.3f}, "
            f"milestones {statistics.fmean(milestones(each) for each in made):.2f}, code {code_s:.0f} CPU s"
        )
        assert all(each.grade is not None and each.grade.is_valid for each in made)
    print(f"four scaffolds in {wall_s:.0f} s; {1000 * own_cpu_s / n_steps:.1f} ms of CPU a step beside the code")
    for name in ("aide", "aira"):
        gains = [milestones(made) - milestones(runs["react"][task]) for task, made in runs[name].items()]
        error = statistics.stdev(gains) / len(gains) ** 0.5
        print(f"{name} against react: {statistics.fmean(gains):+.2f} milestones a task, standard error {error:.2f}")
        assert statistics.fmean(gains) >= -error


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
