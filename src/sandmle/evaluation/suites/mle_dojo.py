"""The suite ``mle-dojo``: competitions in MLE-Dojo's layout, with places on both human leaderboards (HumanRank)."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from sandmle.env.feedback import Leaderboard, SubmissionGrader
from sandmle.errors import BundleError, ConfigError, SandmleError
from sandmle.evaluation.suites.base import SuiteOptions, SuiteTasks
from sandmle.evaluation.suites.boards import board_rank, leaderboard_thresholds
from sandmle.evaluation.suites.competitions import (
    CompetitionBundle,
    CompetitionFiles,
    chosen,
    competition_bundle,
    need_folder,
    task_id_of,
)
from sandmle.evaluation.suites.official import OfficialDojoGrader, dojo_rule
from sandmle.evaluation.suites.rules import CompetitionRule, builtin_rules, read_scores, user_rules
from sandmle.grading import Grader, SubmissionProblem
from sandmle.grading.answers import ANSWER_CAPS
from sandmle.records import Direction, GradeReport
from sandmle.seeds import catalogue
from sandmle.tasks import Bundle

BOARDS = ("private", "public")
_FOLDERS = {"private/test.csv": "private/test_answer.csv", "private/answers.csv": "private/test_answer.csv"}
DOJO_STEP_S, DOJO_EPISODE_S = 3600.0, 43_200.0


class MleDojoSuite:
    """Competitions of MLE-Dojo; by default a list of 62 that is labelled as not confirmed."""

    name: ClassVar[str] = "mle-dojo"
    takes: ClassVar[frozenset[str]] = frozenset({"competitions", "leaderboards", "rules", "grader", "memory_mb"})
    # 30 steps, as the paper's MLE-Dojo runs (its released scripts); scores are not shown unless the user says so.
    episode: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "feedback": "none",
            "max_turns": 30,
            "step_wall_s": DOJO_STEP_S,
            "episode_s": DOJO_EPISODE_S,
            "grade_s": 600.0,
        }
    )

    def __init__(self, options: SuiteOptions) -> None:
        self._options = options

    def load(self) -> SuiteTasks:
        """Reads the prepared competitions; one that is not prepared is named and counts.

        Raises:
            ConfigError: No competition can be used, or a file of rules is broken.
        """
        data = self._options.data
        need_folder(data, "prepare it with MLE-Dojo's prepare/mle.py and name its data folder")
        own = default_ids()
        rules = {**_rules(), **(user_rules(self._options.rules) if self._options.rules else {})}
        here = [each.name for each in data.iterdir() if os.access(each, os.X_OK) and (each / "data").is_dir()]
        ids = chosen(self._options.competitions, sorted({*own, *rules, *here}), own, self.name)
        bundles: dict[str, Bundle] = {}
        missing: dict[str, str] = {}
        for each in ids:
            try:
                bundles[task_id_of(each)] = self._competition(each, rules.get(each))
            except SandmleError as error:
                missing[task_id_of(each)] = str(error)
        if not bundles:
            raise ConfigError(f"no competition of {self.name} can be used: {next(iter(missing.values()))}")
        note = (
            "62 tasks derived from MLE-Dojo's catalogue; the paper does not name its 62"
            if not self._options.competitions
            else f"{len(ids)} competitions, named by the user"
        )
        return SuiteTasks(bundles, missing, (note,))

    def open_grader(self, bundle: Bundle) -> SubmissionGrader:
        """Returns a grader that also tells the place on both leaderboards."""
        if not isinstance(bundle, CompetitionBundle):
            raise BundleError(f"task {bundle.task_id} is no competition of {self.name}")
        boards = self._boards(bundle.rule.id, bundle.spec.direction)
        if self._options.grader == "official":
            return RankingGrader(OfficialDojoGrader(bundle), boards)
        return RankingGrader(Grader(bundle, ANSWER_CAPS, key=bundle.answer_key()), boards)

    def write_reports(self, run: Path) -> Sequence[Path]:
        """Writes nothing: MLE-Dojo has no report of its own."""
        del run
        return ()

    def _competition(self, competition: str, rule: CompetitionRule | None) -> CompetitionBundle:
        root = self._options.data / competition / "data"
        if rule is None and self._options.grader == "official":
            rule = dojo_rule(competition)
        if rule is None:
            raise BundleError(
                f"competition {competition}: no grading rule is known; give --rules FILE or --grader official"
            )
        files = CompetitionFiles(
            public=root / "public",
            answers=root / _FOLDERS.get(rule.answers, rule.answers),
            sample=root / "public/sample_submission.csv",
            description=root / "public/description.txt",
        )
        if problem := files.problem():
            raise BundleError(
                f"competition {competition} is not prepared: {problem}; run MLE-Dojo's prepare/mle.py for it"
            )
        boards = self._boards(competition, rule.direction)
        return competition_bundle(
            self._options.data / competition,
            files,
            rule,
            suite=self.name,
            thresholds=leaderboard_thresholds(boards["private"], rule.direction),
            dna=None,
            memory_mb=self._options.memory_mb,
            domain="MLE-Dojo",
        )

    def _boards(self, competition: str, direction: Direction) -> dict[str, list[float]]:
        folder = self._options.leaderboards
        place = folder / competition if folder else self._options.data / competition / "data/private"
        boards = {}
        for board in BOARDS:
            scores = read_scores(place / f"{board}_leaderboard.csv")
            if not scores:
                raise BundleError(f"competition {competition}: {board}_leaderboard.csv in {place} holds no scores")
            boards[board] = sorted(scores, reverse=direction is Direction.MAXIMIZE)
        return boards


class RankingGrader:
    """Adds places on human leaderboards to another grader's reports."""

    def __init__(self, grader: SubmissionGrader, boards: Mapping[str, Sequence[float]]) -> None:
        """Takes the grader and the scores of each board, best first."""
        self._grader, self._boards = grader, boards

    def check(self, submission: bytes | None) -> SubmissionProblem | None:
        """Returns what is wrong with the form of a submission."""
        return self._grader.check(submission)

    def grade(self, submission: bytes | None, *, leaderboard: Leaderboard = "private") -> GradeReport:
        """Grades a submission and says where its score would stand."""
        report = self._grader.grade(submission, leaderboard=leaderboard)
        score = report.score
        if score is None:
            return report
        ranks = tuple(board_rank(name, score, scores, report.direction) for name, scores in self._boards.items())
        return report.replace(board_ranks=ranks)


def default_ids() -> tuple[str, ...]:
    """Returns the default list of 62 competitions, which is derived and labelled so."""
    text = resources.files("sandmle.evaluation.suites").joinpath("data/mle_dojo_62.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


@cache
def _rules() -> Mapping[str, CompetitionRule]:
    shared = {record.id for record in catalogue() if record.in_mle_dojo}
    lite = {name: rule for name, rule in builtin_rules("mle_bench_lite").items() if name in shared}
    return {**lite, **builtin_rules("mle_dojo")}
