"""A prepared competition of another benchmark as a bundle: its own folders, with a spec made from facts and answers."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError
from typing_extensions import override

import sandmle
from sandmle.errors import BundleError, ConfigError
from sandmle.evaluation.suites.rules import CompetitionRule, first_problem
from sandmle.grading import AnswerKey, TableError, read_table
from sandmle.grading.answers import ANSWER_CAPS, check_rule
from sandmle.grading.table import count_rows, read_header, write_table
from sandmle.records import Provenance, StructuralDNA, TaskKind, TaskLimits, TaskSpec, Thresholds
from sandmle.records.dna import Modality
from sandmle.tasks import Bundle

DAY_S = 86_400.0
_SHOWN_CHARS = 200


@dataclass(frozen=True)
class CompetitionFiles:
    """Where the parts of a prepared competition lie.

    Attributes:
        public: The folder that agents see.
        answers: The hidden answers.
        sample: The sample submission.
        description: What the agent reads.
    """

    public: Path
    answers: Path
    sample: Path
    description: Path

    def problem(self) -> str:
        """Returns what is missing, or nothing.

        Raises:
            BundleError: A folder or a name cannot be used.
        """
        try:
            if not self.public.is_dir() or not any(self.public.iterdir()):
                return f"{self.public} is missing or empty"
            for path in (self.answers, self.sample, self.description):
                if not path.is_file():
                    return f"{path} is {'no file' if path.exists() else 'missing'}"
        except OSError as error:
            where = str(error.filename or self.public)[:_SHOWN_CHARS]
            raise BundleError(f"cannot read {where}: {error.strerror}") from error
        return ""


@dataclass(frozen=True)
class CompetitionBundle(Bundle):
    """A competition that stays where its own tool put it. Nothing is copied, and nothing is hashed but small files."""

    files: CompetitionFiles
    rule: CompetitionRule

    @property
    @override
    def public_dir(self) -> Path:
        return self.files.public

    @property
    @override
    def answers_path(self) -> Path:
        return self.files.answers

    @override
    def description(self) -> str:
        return _read(self.files.description).decode(errors="replace")

    @override
    def public_paths(self) -> list[str]:
        return list(self._public_paths)

    @cached_property
    def _public_paths(self) -> tuple[str, ...]:
        found = (Path(folder) / name for folder, _, names in os.walk(self.files.public) for name in names)
        return tuple(sorted(path.relative_to(self.files.public).as_posix() for path in found))

    def answer_key(self) -> AnswerKey:
        """Reads the answers.

        Raises:
            BundleError: They are broken.
        """
        return AnswerKey.parse(
            self.rule.scoring_rule(self.spec.target), scored_answers(_read(self.files.answers), self.rule)
        )


def competition_bundle(
    root: Path,
    files: CompetitionFiles,
    rule: CompetitionRule,
    *,
    suite: str,
    thresholds: Thresholds,
    dna: StructuralDNA | None,
    memory_mb: int,
    domain: str = "",
) -> CompetitionBundle:
    """Returns a competition as a bundle.

    Args:
        root: The competition's folder.
        files: Where its parts are.
        rule: How it is graded.
        suite: The benchmark, as the author in the provenance.
        thresholds: Its milestones.
        dna: Its structure, where the catalogue knows it.
        memory_mb: Memory of one execution.
        domain: A few words on the data.

    Raises:
        BundleError: The answers cannot be read.
    """
    data = _read(files.answers)
    try:
        header = read_header(data, ANSWER_CAPS)
        n_rows = count_rows(data, ANSWER_CAPS)
    except TableError as error:
        raise BundleError(f"competition {rule.id}: its answers cannot be read: {error}") from error
    if n_rows == 0:
        raise BundleError(f"competition {rule.id}: {files.answers} holds no answers; prepare the competition again")
    if not rule.id_column:
        rule = rule.replace(id_column=header[0])
    try:
        target = rule.target(header)
    except ValidationError as error:
        raise BundleError(f"competition {rule.id}: its answers fit no rule: {first_problem(error)}") from error
    for name in (rule.id_column, *target.columns, *rule.answer_columns):
        if header.count(name) != 1:
            found = "no column" if name not in header else "several columns"
            raise BundleError(
                f"competition {rule.id}: {files.answers} has {found} {name!r}; "
                "mend the columns of its rule, or prepare it again"
            )
    try:
        check_rule(rule.scoring_rule(target))
    except ConfigError as error:
        raise BundleError(f"competition {rule.id}: its grading rule cannot be used: {error}") from error
    known = dna or StructuralDNA(
        modalities=(Modality.TABULAR,),
        task_kind=TaskKind.REGRESSION,
        prediction_kind=rule.kind,
        metric=rule.metric,
        direction=rule.direction,
    )
    hashes = {
        f"private/{files.answers.name}": sha256(data).hexdigest(),
        f"public/{files.description.name}": sha256(_read(files.description)).hexdigest(),
    }
    fields = dict(
        task_id=task_id_of(rule.id),
        title=rule.id,
        domain=domain,
        modalities=known.modalities,
        task_kind=known.task_kind,
        metric=rule.metric,
        metric_params=rule.metric_params,
        direction=rule.direction,
        id_column=rule.id_column,
        target=target,
        columns=(),
        answer_columns=rule.answer_columns,
        n_train=0,
        n_public=0,
        n_private=n_rows,
        thresholds=thresholds,
        limits=TaskLimits(step_wall_s=DAY_S, memory_mb=memory_mb),
        dna=known,
        provenance=Provenance(author=suite, author_version=sandmle.__version__, rng_seed=0, seed_id=rule.id),
        files=hashes,
    )
    try:
        spec = TaskSpec.model_validate(fields)
    except ValidationError as error:
        raise BundleError(f"competition {rule.id}: its grading rule cannot be used: {first_problem(error)}") from error
    return CompetitionBundle(root=root, spec=spec, files=files, rule=rule)


def task_id_of(competition: str) -> str:
    """Returns a competition's id as a task's id: lower case, hyphens."""
    return re.sub(r"[^a-z0-9-]+", "-", competition.lower()).strip("-")[:100]


def scored_answers(data: bytes, rule: CompetitionRule) -> bytes:
    """Returns answers in which rows that do not count are told by a ``leaderboard`` column, as our own tasks do.

    Raises:
        BundleError: The answers are no table, or lack the rule's columns.
    """
    if rule.unscored is None:
        return data
    try:
        table = read_table(data, ANSWER_CAPS)
        columns = {name: table.column(name) for name in (rule.id_column, *rule.target(table.header).columns)}
    except TableError as error:
        raise BundleError(f"competition {rule.id}: its answers cannot be read: {error}") from error
    except KeyError as error:
        raise BundleError(f"competition {rule.id}: its answers have no column {error}") from error
    targets = [name for name in columns if name != rule.id_column]
    left_out = [rule.unscored in row for row in zip(*(columns[name] for name in targets), strict=True)]
    for name in targets:
        columns[name] = ["0" if out else cell for cell, out in zip(columns[name], left_out, strict=True)]
    columns["leaderboard"] = ["public" if out else "private" for out in left_out]
    return write_table(columns)


def chosen(wanted: Sequence[str], known: Sequence[str], own: Sequence[str], suite: str) -> tuple[str, ...]:
    """Returns the competitions to use: what the user named, else the suite's own list.

    Raises:
        ConfigError: A named id is none of the benchmark's, or two ids make one task id.
    """
    from sandmle.errors import unknown_name

    for each in wanted:
        if each not in known:
            raise unknown_name(f"competition of {suite}", each, known)
    ids = tuple(dict.fromkeys(wanted or own))
    by_task: dict[str, str] = {}
    for each in ids:
        other = by_task.setdefault(task_id_of(each), each)
        if other != each:
            raise ConfigError(f"competitions {other} and {each} have one task id, {task_id_of(each)}; name one of them")
        if not task_id_of(each):
            raise ConfigError(f"competition {each!r} makes no task id; give its folder a name with letters or digits")
    return ids


def need_folder(data: Path, hint: str) -> None:
    """Passes when there is a data folder.

    Raises:
        ConfigError: There is none; ``hint`` says how to make it.
    """
    if not data.is_dir():
        raise ConfigError(f"no folder {data}; {hint}")
    try:
        next(data.iterdir(), None)
    except OSError as error:
        raise ConfigError(f"cannot read {data}: {error.strerror}; make it readable") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror}") from error
