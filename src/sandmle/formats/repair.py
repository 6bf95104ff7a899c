"""Tasks of the published SandMLE release, made safe: answers and evaluator leave the public folder.

The release scores by a script a task. Its metric is found by behaviour: the script runs in the sandbox on probe
submissions, and the registered metric that gives the same scores on all of them takes its place. A script that agrees
with none is refused, since nothing else could tell what its scores mean.
"""

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sandmle.errors import BundleError
from sandmle.formats.probing import Match, Probe, matching, probes_for
from sandmle.formats.release import ANSWER_FILE, EVALUATOR_FILE, EVALUATOR_PARTS
from sandmle.grading import Table, TableError, read_table, write_table
from sandmle.records import (
    ColumnSpec,
    Direction,
    ExecStatus,
    Limits,
    Modality,
    PredictionKind,
    Provenance,
    StructuralDNA,
    TargetSpec,
    TaskKind,
    TaskSpec,
    Threshold,
    Thresholds,
)
from sandmle.records.task import MILESTONES, ColumnType
from sandmle.sandbox import ExecRequest, Sandbox
from sandmle.tasks import BundleDraft

_RUN_LIMITS = Limits(wall_s=120.0, memory_mb=2048)
_RESULT_FILE = "results.json"
_MOST_LEVELS = 30
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"})
_SOUNDS = frozenset({".wav", ".flac", ".mp3", ".ogg"})
_KINDS = {
    PredictionKind.PROBABILITY: TaskKind.BINARY,
    PredictionKind.CLASS_PROBABILITIES: TaskKind.MULTICLASS,
    PredictionKind.LABEL_PROBABILITIES: TaskKind.MULTILABEL,
    PredictionKind.LABEL_SET: TaskKind.MULTILABEL,
    PredictionKind.TEXT: TaskKind.SEQ2SEQ,
}
# Runs the evaluator in the folder that holds it, as the release's own tools do, once for each probe.
_RUNNER = """
import contextlib, io, json, os, runpy, sys
here = os.getcwd()
os.chdir("input")
results = []
for number in range({n_probes}):
    sys.argv = ["evaluator.py", "--submission_path", f"{{here}}/probe_{{number}}.csv"]
    said, code = io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_path("evaluator.py", run_name="__main__")
    except SystemExit as stop:
        code = stop.code
    except BaseException as error:
        code = f"{{type(error).__name__}}: {{error}}"
    results.append({{"said": said.getvalue()[-20000:], "code": None if code in (0, None) else str(code)[:300]}})
with open(f"{{here}}/{result}", "w") as file:
    json.dump(results, file)
"""


@dataclass(frozen=True)
class Repaired:
    """A repaired task, and what the user should know of it."""

    draft: BundleDraft
    notes: tuple[str, ...]


def repair(root: Path, task_id: str, sandbox: Sandbox) -> Repaired:
    """Reads a task of the release.

    Args:
        root: The folder that holds the tasks.
        task_id: The task's folder.
        sandbox: Where its evaluator runs.

    Raises:
        BundleError: A file is missing or broken, or the evaluator agrees with no registered metric.
        SandboxError: The sandbox failed.
    """
    public = root / task_id / "prepared" / "public"
    contents = {path.relative_to(public).as_posix(): path for path in sorted(public.rglob("*")) if path.is_file()}
    needed = ("description.md", "train.csv", "test.csv", "sample_submission.csv", EVALUATOR_FILE, ANSWER_FILE)
    missing = [name for name in needed if name not in contents]
    if missing:
        raise BundleError(f"{task_id}: {missing[0]} is missing, so the task cannot be repaired")
    train, test, sample, answers = (
        _table(task_id, contents[name]) for name in ("train.csv", "test.csv", "sample_submission.csv", ANSWER_FILE)
    )
    answers = _in_form(task_id, answers, sample)
    probes = probes_for(answers, sample)
    outputs = _run_evaluator(task_id, public, probes, sandbox)
    scored = [(probe, output) for probe, output in zip(probes, outputs, strict=True) if output is not None]
    if len(scored) < 3 or len({output["score"] for _, output in scored}) < 2:
        raise BundleError(
            f"{task_id}: {EVALUATOR_FILE} scored {len(scored)} of {len(probes)} probes, too few to know it"
        )
    lines = scored[0][1]
    direction = Direction.MINIMIZE if lines["is_lower_better"] else Direction.MAXIMIZE
    matches = matching(answers, train, [(probe, output["score"]) for probe, output in scored], direction)
    if not matches:
        raise BundleError(
            f"{task_id}: {EVALUATOR_FILE} agrees with no registered metric, so its scores have no meaning here"
        )
    kept = {f"public/{name}": path.read_bytes() for name, path in contents.items() if name not in EVALUATOR_PARTS}
    kept["description.md"] = kept.pop("public/description.md")
    board = {name: answers.column(name) for name in answers.header}
    kept["private/answers.csv"] = write_table({**board, "leaderboard": ["private"] * len(answers.rows)})
    kept["provenance/release_evaluator.py"] = contents[EVALUATOR_FILE].read_bytes()
    spec = _spec(task_id, matches[0], lines, train, test, answers, list(contents))
    return Repaired(
        BundleDraft(spec, kept), _notes(matches, len(scored), kept["description.md"].decode(errors="replace"))
    )


def _table(task_id: str, path: Path) -> Table:
    try:
        return read_table(path.read_bytes())
    except TableError as error:
        raise BundleError(f"{task_id}: {path.name} cannot be read: {error}") from error


def _in_form(task_id: str, answers: Table, sample: Table) -> Table:
    """Returns the answers with the columns and in the order of the sample submission; labels become indicators."""
    id_column, *targets = sample.header
    if id_column not in answers.header or set(answers.column(id_column)) != set(sample.column(id_column)):
        raise BundleError(f"{task_id}: the ids of {ANSWER_FILE} are not those of sample_submission.csv")
    others = [name for name in answers.header if name != id_column]
    if set(targets) <= set(others):
        columns = {name: answers.column(name) for name in targets}
    elif len(others) == 1 and len(targets) > 1 and set(answers.column(others[0])) <= set(targets):
        labels = answers.column(others[0])
        columns = {name: [str(int(label == name)) for label in labels] for name in targets}
    elif len(others) == 1 and len(targets) == 1:
        columns = {targets[0]: answers.column(others[0])}
    else:
        raise BundleError(f"{task_id}: {ANSWER_FILE} lacks the column {next(t for t in targets if t not in others)!r}")
    at = {row_id: row for row, row_id in enumerate(answers.column(id_column))}
    order = [at[row_id] for row_id in sample.column(id_column)]
    ordered = {id_column: sample.column(id_column)}
    ordered.update({name: [cells[row] for row in order] for name, cells in columns.items()})
    return read_table(write_table(ordered))


def _run_evaluator(
    task_id: str, public: Path, probes: Sequence[Probe], sandbox: Sandbox
) -> list[dict[str, Any] | None]:
    """Returns what the evaluator printed for each probe; None where it printed no usable score."""
    with tempfile.TemporaryDirectory(prefix="sandmle-import-") as folder:
        workspace = Path(folder)
        for number, probe in enumerate(probes):
            (workspace / f"probe_{number}.csv").write_bytes(probe.data)
        request = ExecRequest(
            code=_RUNNER.format(n_probes=len(probes), result=_RESULT_FILE),
            workspace=workspace,
            inputs=public,
            limits=_RUN_LIMITS,
            collect=(_RESULT_FILE,),
        )
        result = sandbox.execute(request)
    data = result.file(_RESULT_FILE)
    if result.status is not ExecStatus.OK or data is None:
        raise BundleError(f"{task_id}: {EVALUATOR_FILE} ended with {result.status.value} in the sandbox")
    try:
        return [_output(line) for line in json.loads(data)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BundleError(f"{task_id}: {EVALUATOR_FILE} spoilt the record of its own run") from error


def _output(line: dict[str, Any]) -> dict[str, Any] | None:
    if line["code"] is not None:
        return None
    try:
        said = json.loads(line["said"].strip().splitlines()[-1] if "\n{" in line["said"] else line["said"])
        found = {f"{name}_threshold": float(said[f"{name}_threshold"]) for name in MILESTONES}
        lower = said["is_lower_better"]
        is_lower = lower.strip().lower() in ("true", "1", "yes") if isinstance(lower, str) else bool(lower)
        return {"score": float(said["score"]), "is_lower_better": is_lower, **found}
    except (ValueError, TypeError, KeyError, IndexError):
        return None


def _spec(
    task_id: str, match: Match, lines: dict[str, Any], train: Table, test: Table, answers: Table, names: list[str]
) -> TaskSpec:
    target: TargetSpec = match.rule.target
    modality = _modality(test, names)
    kind = _KINDS.get(
        target.kind, TaskKind.REGRESSION if len(target.columns) == 1 else TaskKind.MULTI_TARGET_REGRESSION
    )
    if target.kind is PredictionKind.LABEL:
        kind = TaskKind.BINARY if len(target.labels) == 2 else TaskKind.MULTICLASS
    dna = StructuralDNA(
        modalities=(modality,),
        task_kind=kind,
        prediction_kind=target.kind,
        n_classes=len(target.labels) or None,
        n_targets=len(target.columns),
        metric=match.rule.metric,
        direction=match.rule.direction,
    )
    hidden = {*target.columns, *(name for name in train.header if name not in test.header)}
    named = [name for name in test.header if name not in hidden]
    thresholds = {name: Threshold(score=lines[f"{name}_threshold"]) for name in MILESTONES}
    try:
        return TaskSpec(
            task_id=re.sub(r"[^a-z0-9]+", "-", task_id.lower()).strip("-")[:100],
            title=task_id,
            domain="",
            modalities=(modality,),
            task_kind=kind,
            metric=match.rule.metric,
            direction=match.rule.direction,
            id_column=match.rule.id_column,
            target=target,
            columns=tuple(_column(name, test, match.rule.id_column, set(names)) for name in named),
            n_train=len(train.rows),
            n_public=0,
            n_private=len(answers.rows),
            thresholds=Thresholds(preset="paper", **thresholds),
            dna=dna,
            provenance=Provenance(author="sandmle-release", author_version="1", rng_seed=0),
        )
    except ValidationError as error:
        raise BundleError(f"{task_id}: {error.errors()[0]['msg']}") from error


def _modality(test: Table, names: Sequence[str]) -> Modality:
    suffixes = {Path(name).suffix.lower() for name in names}
    if suffixes & _PICTURES:
        return Modality.IMAGE
    if suffixes & _SOUNDS:
        return Modality.AUDIO
    longest = max(
        (sum(len(cell.split()) for cell in test.column(name)) / max(1, len(test.rows)) for name in test.header),
        default=0.0,
    )
    return Modality.TEXT if longest > 4 else Modality.TABULAR


def _column(name: str, test: Table, id_column: str, names: set[str]) -> ColumnSpec:
    cells = [cell for cell in test.column(name) if cell]
    kind: ColumnType
    if name == id_column:
        kind = "id"
    elif cells and all(cell in names for cell in cells):
        kind = "path"
    elif all(_is_number(cell) for cell in cells):
        kind = "number"
    else:
        kind = "category" if len(set(cells)) <= _MOST_LEVELS else "text"
    return ColumnSpec(name=name, type=kind)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _notes(matches: Sequence[Match], n_probes: int, description: str) -> tuple[str, ...]:
    names = list(dict.fromkeys(match.rule.metric for match in matches))
    also = f" (so do {', '.join(names[1:])})" if len(names) > 1 else ""
    notes = [f"the evaluator agrees with {names[0]} on {n_probes} probes{also}; all rows count as private"]
    notes += [f"description.md names {part}" for part in (EVALUATOR_FILE, ANSWER_FILE) if part in description]
    return tuple(notes)
