"""What the gate found out about a bundle."""

from enum import StrEnum
from typing import Literal

from sandmle.records.base import Record


class Verdict(StrEnum):
    """The four outcomes of a check, and of the gate."""

    VALID = "valid"
    INVALID = "invalid"
    ERROR = "error"
    """The check itself broke."""
    TIMEOUT = "timeout"


class CheckResult(Record):
    """One check's verdict with the number it rests on."""

    check: str
    verdict: Verdict
    value: float | None = None
    """The measured number; None where there is none, or where it would differ between two runs of the gate."""
    limit: float | None = None
    """The number that ``value`` was held against."""
    message: str = ""
    """One sentence, naming the file, column or row."""


class GateReport(Record):
    """All verdicts on one bundle. The task is valid only if every check is."""

    schema_version: Literal[1] = 1
    task_id: str
    task_hash: str
    verdict: Verdict
    checks: tuple[CheckResult, ...]

    def losses(self) -> tuple[CheckResult, ...]:
        """Returns the checks that were not passed."""
        return tuple(check for check in self.checks if check.verdict is not Verdict.VALID)
