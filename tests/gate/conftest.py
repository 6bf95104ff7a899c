from collections.abc import Callable
from pathlib import Path

import pytest

from sandmle.gate import STANDARD_CHECKS, GateContext, run_gate
from sandmle.records import CheckResult
from sandmle.tasks import BundleDraft
from tests import bundles

Ask = Callable[..., CheckResult]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Puts one standard check to a draft; keyword arguments go to ``run_gate``."""

    def put(draft: BundleDraft, name: str, **settings: object) -> CheckResult:
        check = next(check for check in STANDARD_CHECKS if check.name == name)
        report = run_gate(bundles.saved(draft, tmp_path), checks=[check], **settings)  # type: ignore[arg-type]
        return report.checks[0]

    return put


@pytest.fixture
def context(tmp_path: Path) -> Callable[[BundleDraft], GateContext]:
    def make(draft: BundleDraft) -> GateContext:
        return GateContext(bundles.saved(draft, tmp_path), "calibrated")

    return make
