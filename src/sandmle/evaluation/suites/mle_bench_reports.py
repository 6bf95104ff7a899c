"""MLE-bench's file formats: ``submission.jsonl`` in and out, and its grading report."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandmle.env.feedback import SubmissionGrader
from sandmle.errors import BundleError, ConfigError, SandmleError
from sandmle.evaluation.suites.base import Suite
from sandmle.evaluation.suites.competitions import CompetitionBundle, task_id_of
from sandmle.evaluation.suites.recording import submission_path
from sandmle.grading.answers import ANSWER_CAPS
from sandmle.grammars.scan import clean_text
from sandmle.parallel import write_text_whole, write_whole
from sandmle.records import Direction, GradeReport, Medal, Trajectory
from sandmle.rollouts import read_trajectories

REPORTS_DIR = "mle-bench"
REPORT_FILE = "grading_report.json"
_DECIMALS = 5
_MOST_ID_CHARS = 200


@dataclass(frozen=True)
class SubmissionLine:
    """One line of ``submission.jsonl``; the path is None where there is no submission."""

    competition_id: str
    submission_path: Path | None


def read_submissions(path: Path) -> list[SubmissionLine]:
    """Reads ``submission.jsonl``; blank lines and those that start with ``#`` or ``//`` are skipped.

    Raises:
        ConfigError: The file cannot be read, or a line is broken; the message names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the submissions {path}; give MLE-bench's submission.jsonl") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.strip().startswith(("#", "//")):
            continue
        try:
            value = json.loads(line)
            name, given = value["competition_id"], value["submission_path"]
            if not isinstance(name, str) or not 0 < len(name) <= _MOST_ID_CHARS:
                raise ConfigError(f"{path}, line {number}: competition_id is no id of a competition")
            found.append(SubmissionLine(clean_text(name), None if given is None else Path(clean_text(given))))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number}: needs competition_id and submission_path") from error
    return found


def write_grading_reports(run: Path) -> list[Path]:
    """Writes the reports of a run directory: one ``submission.jsonl`` and one grading report a policy and attempt.

    Every planned competition has a line, also those without a submission. Of two records of an episode the last counts.

    Raises:
        ConfigError: The disk refuses.
    """
    try:
        return _write_reports(run)
    except OSError as error:
        where = error.filename or run / REPORTS_DIR
        raise ConfigError(
            f"cannot write the reports to {where}: {error.strerror}; the run is kept: mend that and use --resume"
        ) from error


def _write_reports(run: Path) -> list[Path]:
    last = {trajectory.key: _slim(trajectory) for trajectory in read_trajectories(run)}
    groups: dict[tuple[str, int], list[_Graded]] = {}
    for (_, policy, attempt), graded in sorted(last.items()):
        groups.setdefault((policy, attempt), []).append(graded)
    names = sorted({policy for policy, _ in groups})
    written = []
    for (policy, attempt), members in groups.items():
        folder = run / REPORTS_DIR / f"policy-{names.index(policy)}" / f"attempt-{attempt}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [member.line(run) for member in members]
        write_text_whole(folder / "submission.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        reports = [
            competition_report(member.competition_id, member.report, line["submission_path"])
            for member, line in zip(members, lines, strict=True)
            if member.report is not None
        ]
        missing = [member.competition_id for member in members if member.report is None]
        report = {**aggregate(reports), "policy": policy, "attempt": attempt, "competitions_without_grade": missing}
        write_whole(folder / REPORT_FILE, report)
        written += [folder / "submission.jsonl", folder / REPORT_FILE]
    return written


def grade_submissions(suite: Suite, lines: Sequence[SubmissionLine], out: Path) -> dict[str, Any]:
    """Grades the submissions of a list and writes ``grading_report.json``; one that cannot be graded stops no other.

    Args:
        suite: MLE-bench's, or a part of it.
        lines: The list, see :func:`read_submissions`.
        out: Folder for the report; made if missing.

    Returns:
        The report; ``not_graded`` names every competition that has no grade, with the reason.

    Raises:
        SandmleError: Nothing of the suite can be used, or the report cannot be written.
    """
    tasks = suite.load()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write to {out}: {error.strerror}; choose another --out") from error
    graders: dict[str, SubmissionGrader] = {}
    reports: list[dict[str, Any]] = []
    not_graded: list[dict[str, str]] = []
    for line in lines:
        task_id = task_id_of(line.competition_id)
        try:
            bundle = tasks.bundles.get(task_id)
            is_other = isinstance(bundle, CompetitionBundle) and bundle.rule.id != line.competition_id
            if bundle is None or is_other:
                raise BundleError(tasks.missing.get(task_id, f"{line.competition_id} is not in suite {suite.name}"))
            if task_id not in graders:
                graders[task_id] = suite.open_grader(bundle)
            report = graders[task_id].grade(_submission(line.submission_path))
        except SandmleError as error:
            not_graded.append({"competition_id": line.competition_id, "reason": str(error)})
            continue
        given = None if line.submission_path is None else str(line.submission_path)
        reports.append(competition_report(line.competition_id, report, given))
    result = {**aggregate(reports), "not_graded": not_graded}
    try:
        write_whole(out / REPORT_FILE, result)
    except OSError as error:
        raise ConfigError(f"cannot write {out / REPORT_FILE}: {error.strerror}; choose another --out") from error
    return result


def _submission(path: Path | None) -> bytes | None:
    """Returns a submission's bytes; as in MLE-bench there is none unless the path is a file that ends in .csv."""
    if path is None or path.suffix.lower() != ".csv":
        return None
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(ANSWER_CAPS.size_bytes + 1)  # the suites' graders refuse what is longer
    except (OSError, ValueError) as error:  # a name too long for the system, a null byte
        name = str(path) if len(str(path)) <= 200 else f"{str(path)[:200]}..."
        raise BundleError(f"cannot read submission {name!r}: {getattr(error, 'strerror', None) or error}") from error


def competition_report(competition_id: str, report: GradeReport, submission: str | None) -> dict[str, Any]:
    """Returns a grade with the fields of MLE-bench's report; a score is rounded to 5 decimals as there."""
    medal = report.medal
    marks = report.thresholds
    return {
        "competition_id": competition_id,
        "score": None if report.score is None else round(report.score, _DECIMALS),
        "gold_threshold": marks.gold.score,
        "silver_threshold": marks.silver.score,
        "bronze_threshold": marks.bronze.score,
        "median_threshold": marks.median.score,
        "any_medal": medal is not Medal.NONE,
        "gold_medal": medal is Medal.GOLD,
        "silver_medal": medal is Medal.SILVER,
        "bronze_medal": medal is Medal.BRONZE,
        "above_median": report.above_median,
        "submission_exists": report.submission_sha256 is not None,
        "valid_submission": report.is_valid,
        "is_lower_better": report.direction is Direction.MINIMIZE,
        "created_at": datetime.now(UTC).replace(tzinfo=None).isoformat(),
        "submission_path": submission,
        "status": str(report.status),
        "message": report.message,
    }


def aggregate(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns MLE-bench's aggregate of competition reports."""
    return {
        "total_runs": len(reports),
        "total_runs_with_submissions": _count(reports, "submission_exists"),
        "total_valid_submissions": _count(reports, "valid_submission"),
        "total_medals": _count(reports, "any_medal"),
        "total_gold_medals": _count(reports, "gold_medal"),
        "total_silver_medals": _count(reports, "silver_medal"),
        "total_bronze_medals": _count(reports, "bronze_medal"),
        "total_above_median": _count(reports, "above_median"),
        "competition_reports": list(reports),
    }


def _count(reports: Iterable[Mapping[str, Any]], field: str) -> int:
    return sum(bool(report[field]) for report in reports)


@dataclass(frozen=True)
class _Graded:
    task_id: str
    competition_id: str
    report: GradeReport | None

    def line(self, run: Path) -> dict[str, str | None]:
        digest = self.report.submission_sha256 if self.report else None
        path = None if digest is None else str(submission_path(run, self.task_id, digest).resolve())
        return {"competition_id": self.competition_id, "submission_path": path}


def _slim(trajectory: Trajectory) -> _Graded:
    return _Graded(trajectory.task_id, trajectory.seed_id or trajectory.task_id, trajectory.grade)
