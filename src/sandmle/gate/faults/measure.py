"""Tries faults on a task and counts what the gate said."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sandmle.gate.base import GateContext
from sandmle.gate.checks import STANDARD_CHECKS
from sandmle.gate.faults.base import Fault, Injection
from sandmle.gate.faults.catalogue import FAULTS
from sandmle.gate.faults.copy import WorkingCopy
from sandmle.gate.gate import run_gate
from sandmle.grading import MetricUndefined
from sandmle.records import Record, Verdict
from sandmle.tasks import Bundle

STRENGTHS = (0.25, 0.5, 0.75, 1.0)
CLEAN = "none"
"""Stands for the task without a fault."""
_SANDBOXED = frozenset(check.name for check in STANDARD_CHECKS if "sandbox" in check.needs)


class Trial(Record):
    """What the gate said of one task with one fault, or without any."""

    task_id: str
    fault: str
    strength: float
    must_find: bool
    """A cheater wins bronze or better, or the task is spoilt for certain."""
    cheat_score: float | None = None
    cheat_medal_share: float | None = None
    """How far the cheater comes from the median to gold; 1/3 is bronze."""
    found_by: tuple[str, ...] = ()
    """Checks that failed here and not on the task without the fault."""

    @property
    def is_found(self) -> bool:
        """True when the task is not accepted."""
        return bool(self.found_by)


def try_faults(
    bundle: Bundle, *, faults: Sequence[str] = tuple(FAULTS), strengths: Sequence[float] = STRENGTHS, rng_seed: int = 0
) -> list[Trial]:
    """Judges a task without a fault by all checks, and with each fault by the checks that are there for it.

    Args:
        bundle: A sound task.
        faults: Names of :data:`FAULTS`.
        strengths: From 0 to 1.
        rng_seed: Says which rows leak.

    Returns:
        One trial for the task itself, and one for each fault that it has a place for.
    """
    clean = [loss.check for loss in run_gate(bundle).losses()]
    trials = [Trial(task_id=bundle.task_id, fault=CLEAN, strength=0.0, must_find=False, found_by=tuple(clean))]
    context = GateContext(bundle, bundle.spec.thresholds.preset)
    with tempfile.TemporaryDirectory(prefix="sandmle-fault-") as folder:
        copy = WorkingCopy(bundle, Path(folder))
        for number, name in enumerate(faults):
            for strength in strengths:
                rng = np.random.default_rng([rng_seed, number, round(1000 * strength)])
                injection = FAULTS[name].inject(context, strength, rng)
                if injection is not None:
                    trials.append(_judge(context, copy, FAULTS[name], strength, injection, frozenset(clean)))
    return trials


def summarize_trials(trials: Iterable[Trial]) -> dict[str, Any]:
    """Returns rates as plain JSON types: by fault and strength, and false alarms by check."""
    trials = list(trials)
    clean = [trial for trial in trials if trial.fault == CLEAN]
    alarms = Counter(check for trial in clean for check in trial.found_by)
    rows = []
    for name in FAULTS:
        own = [trial for trial in trials if trial.fault == name]
        for strength in sorted({trial.strength for trial in own}):
            here = [trial for trial in own if trial.strength == strength]
            must = [trial for trial in here if trial.must_find]
            by = Counter(check for trial in here for check in trial.found_by)
            rows.append(
                {
                    "fault": name,
                    "strength": strength,
                    "n_tasks": len(here),
                    "n_found": sum(trial.is_found for trial in here),
                    "n_must": len(must),
                    "n_must_found": sum(trial.is_found for trial in must),
                    "found_by": dict(sorted(by.items(), key=lambda pair: (-pair[1], pair[0]))),
                }
            )
    must = [trial for trial in trials if trial.must_find]
    return {
        "n_clean": len(clean),
        "n_clean_refused": sum(trial.is_found for trial in clean),
        "false_alarms": {check.name: alarms[check.name] for check in STANDARD_CHECKS if check.name not in _SANDBOXED},
        "n_must": len(must),
        "n_must_found": sum(trial.is_found for trial in must),
        "missed": [trial.to_dict() for trial in must if not trial.is_found],
        "faults": rows,
    }


def _judge(
    context: GateContext,
    copy: WorkingCopy,
    fault: Fault,
    strength: float,
    injection: Injection,
    clean: frozenset[str],
) -> Trial:
    bundle = context.bundle
    with copy.spoilt(injection) as spoilt:
        checks = [check for check in STANDARD_CHECKS if check.name in fault.checks]
        report = run_gate(spoilt, sandbox=injection.sandbox, regenerate=injection.regenerate, checks=checks)
    score, share = _cheated(context, injection)
    return Trial(
        task_id=bundle.task_id,
        fault=fault.name,
        strength=strength,
        must_find=injection.must_find or (share is not None and share >= 1 / 3),
        cheat_score=score,
        cheat_medal_share=share,
        # A check that ran out of time says something of the machine, not of the fault.
        found_by=tuple(
            loss.check for loss in report.losses() if loss.check not in clean and loss.verdict is not Verdict.TIMEOUT
        ),
    )


def _cheated(context: GateContext, injection: Injection) -> tuple[float | None, float | None]:
    if injection.cheat is None:
        return None, None
    spec = context.spec
    try:
        score = context.private_key.score(injection.cheat)
    except MetricUndefined:
        return None, None
    span = spec.direction.gain(spec.thresholds.gold.score, spec.thresholds.median.score)
    if spec.direction.at_least(score, spec.thresholds.bronze.score):  # exact at the border, whatever the division gives
        return score, max(1 / 3, spec.direction.gain(score, spec.thresholds.median.score) / span)
    return score, min(0.333, spec.direction.gain(score, spec.thresholds.median.score) / span)
