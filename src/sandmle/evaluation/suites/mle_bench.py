"""The suites ``mle-bench-lite`` (22 competitions) and ``mle-bench`` (any of the 82), on prepared data."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import yaml

from sandmle.env.feedback import SubmissionGrader
from sandmle.errors import BundleError, ConfigError, SandmleError
from sandmle.evaluation.suites.base import SuiteOptions, SuiteTasks
from sandmle.evaluation.suites.boards import leaderboard_thresholds, place_thresholds
from sandmle.evaluation.suites.competitions import (
    DAY_S,
    CompetitionBundle,
    CompetitionFiles,
    chosen,
    competition_bundle,
    need_folder,
    task_id_of,
)
from sandmle.evaluation.suites.mle_bench_reports import write_grading_reports
from sandmle.evaluation.suites.official import OfficialMleBenchGrader
from sandmle.evaluation.suites.rules import CompetitionRule, builtin_rules, read_scores, user_rules
from sandmle.grading import Grader
from sandmle.grading.answers import ANSWER_CAPS
from sandmle.records import Direction, Leaderboard, SeedRecord, Thresholds
from sandmle.seeds import catalogue
from sandmle.tasks import Bundle

SCORE_DECIMALS = 5
"""MLE-bench rounds a score to 5 decimals before it is held against the leaderboard."""


class MleBenchSuite:
    """Any competitions of MLE-bench, named by the user."""

    name: ClassVar[str] = "mle-bench"
    takes: ClassVar[frozenset[str]] = frozenset({"competitions", "leaderboards", "rules", "grader", "memory_mb"})
    # MLE-bench gives 24 hours; the paper allows 30 turns at test. Scores are never shown, the form of the file is.
    episode: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"feedback": "none", "max_turns": 30, "step_wall_s": DAY_S, "episode_s": DAY_S, "grade_s": 600.0}
    )

    def __init__(self, options: SuiteOptions) -> None:
        self._options = options
        self._records = {record.id: record for record in catalogue()}

    def ids(self) -> tuple[str, ...]:
        """Returns the suite's competitions when the user names none.

        Raises:
            ConfigError: The suite has no list of its own.
        """
        raise ConfigError("suite mle-bench has no list of its own; name competitions with --competition ID or @FILE")

    def load(self) -> SuiteTasks:
        """Reads the prepared competitions; one that is not prepared is named and counts.

        Raises:
            ConfigError: An id is unknown, no competition is prepared, or a file of rules is broken.
        """
        data = self._options.data
        prepare = f"prepare it with `mlebench prepare {self._prepare_option()} --data-dir {data}`"
        need_folder(data, prepare)
        wanted = self._options.competitions
        rules = {**_rules(), **(user_rules(self._options.rules) if self._options.rules else {})}
        ids = chosen(wanted, sorted({*self._records, *rules}), wanted or self.ids(), self.name)
        bundles: dict[str, Bundle] = {}
        missing: dict[str, str] = {}
        for each in ids:
            try:
                bundles[task_id_of(each)] = self._competition(each, rules.get(each))
            except SandmleError as error:
                missing[task_id_of(each)] = str(error)
        if not bundles:
            raise ConfigError(f"no competition of {self.name} can be used: {next(iter(missing.values()))}")
        issues = {task_id_of(each): text for each, text in known_issues().items() if each in ids}
        return SuiteTasks(bundles, missing, self._notes(ids), issues)

    def open_grader(self, bundle: Bundle) -> SubmissionGrader:
        """Returns our grader, or one that asks MLE-bench's own code as well and reports differences."""
        if not isinstance(bundle, CompetitionBundle):
            raise BundleError(f"task {bundle.task_id} is no competition of {self.name}")
        own = Grader(bundle, ANSWER_CAPS, key=bundle.answer_key(), decimals=SCORE_DECIMALS)
        if self._options.grader == "own":
            return own
        return OfficialMleBenchGrader(own, bundle.rule.id, self._options.data)

    def write_reports(self, run: Path) -> Sequence[Path]:
        """Writes ``submission.jsonl`` and a grading report in MLE-bench's form for every policy and attempt."""
        return write_grading_reports(run)

    def _prepare_option(self) -> str:
        return "-c ID"

    def _notes(self, ids: Sequence[str]) -> tuple[str, ...]:
        return (f"{len(ids)} competitions, named by the user",)

    def _competition(self, competition: str, rule: CompetitionRule | None) -> CompetitionBundle:
        data, record = self._options.data, self._records.get(competition)
        if rule is None:
            raise BundleError(f"competition {competition}: no grading rule is known; give one with --rules FILE")
        prepared = data / competition / "prepared"
        files = CompetitionFiles(
            public=prepared / "public",
            answers=prepared / rule.answers,
            sample=prepared / rule.sample,
            description=prepared / "public/description.md",
        )
        if problem := files.problem():
            command = f"mlebench prepare -c {competition} --data-dir {data}"
            raise BundleError(f"competition {competition} is not prepared: {problem}; run `{command}`")
        return competition_bundle(
            data / competition,
            files,
            rule,
            suite=self.name,
            thresholds=self._thresholds(competition, rule.direction, record),
            dna=record.dna if record else None,
            memory_mb=self._options.memory_mb,
            domain=record.modality if record else "",
        )

    def _thresholds(self, competition: str, direction: Direction, record: SeedRecord | None) -> Thresholds:
        folder = self._options.leaderboards
        if folder is None:
            return known_thresholds(competition, record.dna.leaderboard if record else Leaderboard())
        for path in (folder / competition / "leaderboard.csv", folder / f"{competition}.csv"):
            if path.is_file():
                return leaderboard_thresholds(read_scores(path), direction)
        raise BundleError(f"no leaderboard of {competition} in {folder}; add {competition}/leaderboard.csv")


class MleBenchLiteSuite(MleBenchSuite):
    """The 22 competitions of low complexity, which the paper measures on."""

    name: ClassVar[str] = "mle-bench-lite"

    def ids(self) -> tuple[str, ...]:
        """Returns the 22 ids."""
        return tuple(record.id for record in self._records.values() if record.is_lite)

    def _prepare_option(self) -> str:
        return "--lite"

    def _notes(self, ids: Sequence[str]) -> tuple[str, ...]:
        whole = set(ids) == set(self.ids())
        return () if whole else (f"{len(ids)} competitions, not the 22 of MLE-bench-Lite",)


def known_thresholds(competition: str, board: Leaderboard) -> Thresholds:
    """Returns the milestones that the catalogue knows.

    Raises:
        BundleError: It knows none.
    """
    scores = (board.median, board.bronze, board.silver, board.gold)
    median, bronze, silver, gold = scores
    if median is None or bronze is None or silver is None or gold is None:
        raise BundleError(f"competition {competition}: no leaderboard is known; give one with --leaderboards DIR")
    return place_thresholds(median=median, bronze=bronze, silver=silver, gold=gold)


@cache
def known_issues() -> Mapping[str, str]:
    """Returns known leaks and defects by competition."""
    file = resources.files("sandmle.evaluation.suites").joinpath("data/mle_bench_issues.yaml")
    return MappingProxyType(yaml.safe_load(file.read_text(encoding="utf-8")))


@cache
def _rules() -> Mapping[str, CompetitionRule]:
    return builtin_rules("mle_bench_lite")
