"""``run_gate``: puts all questions to one bundle and writes down the answers. It never raises for a bad bundle."""

import math
import threading
from collections.abc import Sequence

from threadpoolctl import threadpool_limits

from sandmle.gate.base import Check, Finding, GateContext, Regenerate
from sandmle.gate.checks import STANDARD_CHECKS
from sandmle.records import CheckResult, GateReport, ThresholdPreset, Verdict
from sandmle.sandbox.base import Sandbox
from sandmle.tasks import Bundle

_DECIMALS = 6


def run_gate(
    bundle: Bundle,
    *,
    sandbox: Sandbox | None = None,
    regenerate: Regenerate | None = None,
    checks: Sequence[Check] | None = None,
    preset: ThresholdPreset | None = None,
) -> GateReport:
    """Judges a bundle. Equal bundles give equal reports, byte for byte.

    Args:
        bundle: The task; hand-made ones and those of other authors are as welcome as generated ones.
        sandbox: Where the independent solver runs; None leaves out the checks that need one.
        regenerate: Makes the data files again; None leaves out the check of determinism.
        checks: What to ask; None for the standard checks.
        preset: ``calibrated`` asks for everything. ``paper`` holds thresholds to the paper's rule alone and leaves out
            the checks of what solvers, oracles and trivial submissions score. None takes the bundle's own.

    Returns:
        The verdicts in the order of the checks. When the first check finds that the bundle is broken as a bundle, the
        others are not asked, since their answers would mean nothing.
    """
    context = GateContext(bundle, preset or bundle.spec.thresholds.preset, sandbox, regenerate)
    results: list[CheckResult] = []
    with threadpool_limits(1):  # sums over threads depend on their number
        for check in STANDARD_CHECKS if checks is None else checks:
            if not check.needs <= context.have:
                continue
            results.append(_ask(check, context))
            if check.decides and results[-1].verdict is not Verdict.VALID:
                break
    return GateReport(
        task_id=bundle.task_id,
        task_hash=bundle.spec.task_hash,
        verdict=_overall(results),
        checks=tuple(results),
    )


def _ask(check: Check, context: GateContext) -> CheckResult:
    """Runs a check in a thread of its own, so that one that hangs can be left behind."""
    answers: list[Finding | Exception] = []

    def run() -> None:
        try:
            answers.append(check.run(context))
        except Exception as error:  # a check that breaks is a verdict, never the end of the gate
            answers.append(error)

    thread = threading.Thread(target=run, name=f"gate-{check.name}", daemon=True)
    thread.start()
    thread.join(check.time_limit_s)
    if not answers:
        message = f"the check took more than {check.time_limit_s:g} s"
        return CheckResult(check=check.name, verdict=Verdict.TIMEOUT, limit=check.time_limit_s, message=message)
    answer = answers[0]
    if isinstance(answer, Exception):
        text = str(answer) or "no message"
        return CheckResult(check=check.name, verdict=Verdict.ERROR, message=f"{type(answer).__name__}: {text}")
    verdict = Verdict.VALID if answer.passed else Verdict.INVALID
    return CheckResult(
        check=check.name,
        verdict=verdict,
        value=_rounded(answer.value),
        limit=_rounded(answer.limit),
        message=answer.message,
    )


def _rounded(value: float | None) -> float | None:
    """Returns a number that looks the same on every machine; None for one that JSON cannot hold."""
    if value is None or not math.isfinite(value):
        return None
    if value == 0 or abs(value) >= 1:
        return round(float(value), _DECIMALS)
    return float(f"{value:.{_DECIMALS}g}")


def _overall(results: Sequence[CheckResult]) -> Verdict:
    verdicts = {result.verdict for result in results}
    for verdict in (Verdict.INVALID, Verdict.ERROR, Verdict.TIMEOUT):
        if verdict in verdicts:
            return verdict
    return Verdict.VALID
