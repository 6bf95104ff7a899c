"""The ladder of a role's own baselines, run by us on the calibration draw, joined with our dummy and our solver."""

import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sandmle.authoring.randomness import rng_for
from sandmle.authoring.roles.draws import Draw
from sandmle.authoring.roles.outputs import Scripts, TaskIdea, baseline_file
from sandmle.authoring.roles.publish import arrange, data_files
from sandmle.authoring.roles.reading import Complaint
from sandmle.authoring.roles.scoring import Sample, Scoring, read_scored, rung_of
from sandmle.authoring.roles.workbench import run_baseline, run_solver
from sandmle.errors import AuthoringError
from sandmle.gate.solving import SOLVABLE, solver_program
from sandmle.grading import (
    AnswerKey,
    MetricUndefined,
    SubmissionProblem,
    calibrated,
    paper,
    read_submission,
    threshold_problems,
)
from sandmle.records import Ladder, Rung, ThresholdPreset, Thresholds, Tier
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.bundle import ANSWERS_FILE

RNG_SEEDS = (0, 1, 2)
"""Every baseline runs with each; the median score counts."""


def climb(
    idea: TaskIdea,
    scripts: Scripts,
    draws: Mapping[str, Draw],
    scoring: Scoring,
    sample: Sample,
    sandbox: Sandbox,
) -> Ladder:
    """Returns the scores of all baselines, fitted on the task's training rows and scored on the calibration rows.

    Raises:
        Complaint: A baseline failed, or the metric is undefined on the calibration rows.
        AuthoringError: Our own solver broke.
        SandboxError: The sandbox itself failed.
    """
    answers = draws["calibration"].test
    n_rows = len(next(iter(answers.values())))
    stage = Draw(draws["task"].train, answers, draws["calibration"].oracle, draws["task"].media)
    media_shift = len(draws["task"].media)
    stage = _joined(idea, draws, stage, media_shift)
    order = arrange(idea.n_train, n_rows, 0, 1, rng_for("roles", "ladder", idea.digest()))
    files = data_files(idea, stage, order, sample)
    key = AnswerKey.parse(scoring.rule(idea), files[ANSWERS_FILE], scoring.metric)
    try:
        with tempfile.TemporaryDirectory(prefix="sandmle-ladder-") as folder:
            inputs = _written(Path(folder), files)
            rungs = [_constant_rung(idea, key, files, sample)]
            rungs += [_rung(idea, scripts, key, at, inputs, sandbox) for at in range(len(idea.baselines))]
            rungs += _solver_rung(idea, scoring, key, inputs, sandbox)
        oracle = read_scored(key, files["private/oracle.csv"], "the table 'oracle'")
        rungs.append(rung_of(key, "hidden_rule", Tier.ORACLE, oracle, n_rows=idea.n_private))
    except MetricUndefined as error:
        raise Complaint("data_script", f"{scoring.name} is undefined on the calibration rows: {error}") from error
    ladder = Ladder(metric=scoring.name, direction=scoring.direction, n_rows=n_rows, rungs=tuple(rungs))
    _refuse_flat(ladder)
    return ladder


def _joined(idea: TaskIdea, draws: Mapping[str, Draw], stage: Draw, shift: int) -> Draw:
    """Returns the stage with the media of both draws."""
    test = dict(stage.test)
    for name in idea.path_columns:
        test[name] = [str(int(cell) + shift) for cell in test[name]]
    return Draw(stage.train, test, stage.oracle, (*stage.media, *draws["calibration"].media))


def _written(folder: Path, files: Mapping[str, bytes]) -> Path:
    inputs = folder / "public"
    for path, data in files.items():
        if path.startswith("public/"):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    return inputs


def _constant_rung(idea: TaskIdea, key: AnswerKey, files: Mapping[str, bytes], sample: Sample) -> Rung:
    found = read_scored(key, files["public/sample_submission.csv"], "the constant")
    return rung_of(key, "constant", Tier.DUMMY, found, n_rows=idea.n_private)


def _rung(idea: TaskIdea, scripts: Scripts, key: AnswerKey, at: int, inputs: Path, sandbox: Sandbox) -> Rung:
    plan = idea.baselines[at]
    first = run_baseline(sandbox, scripts, plan.name, inputs, RNG_SEEDS[0])
    predictions = read_scored(key, first, baseline_file(plan.name))
    scores = [key.score(predictions)]
    for rng_seed in RNG_SEEDS[1:]:
        again = run_baseline(sandbox, scripts, plan.name, inputs, rng_seed)
        if again == first and len(scores) == 1:
            break  # it fixes its own seeds; more runs would tell nothing
        scores.append(key.score(read_scored(key, again, baseline_file(plan.name))))
    return rung_of(key, plan.name, Tier(plan.tier), predictions, n_rows=idea.n_private, score=statistics.median(scores))


def _solver_rung(idea: TaskIdea, scoring: Scoring, key: AnswerKey, inputs: Path, sandbox: Sandbox) -> list[Rung]:
    """Returns the rung of our own solver, which knows nothing of the rule; none where it cannot play.

    Raises:
        AuthoringError: The solver broke.
        SandboxError: The sandbox itself failed.
    """
    if idea.target.kind not in SOLVABLE:
        return []
    submission = run_solver(sandbox, solver_program(idea.target, scoring.name, idea.id_column), inputs)
    if submission is None:
        return []
    found = read_submission(key, submission)
    if isinstance(found, SubmissionProblem):
        raise AuthoringError(f"our own solver's submission is refused: {found.message}", lost_to="solver")
    return [rung_of(key, "our_solver", Tier.STANDARD, found, n_rows=idea.n_private)]


def _refuse_flat(ladder: Ladder) -> None:
    """Refuses a ladder whose best rung is no better than its dummy: there is nothing to find."""
    dummy, oracle = ladder.best(Tier.DUMMY), ladder.best(Tier.ORACLE)
    if not ladder.direction.better(oracle.score, dummy.score):
        raise Complaint(
            "thresholds",
            f"the hidden rule itself scores {oracle.score:.6g}, no better than a constant ({dummy.score:.6g})",
            _scores(ladder),
        )


def thresholds_of(ladder: Ladder, preset: ThresholdPreset) -> Thresholds:
    """Returns the milestones of a ladder.

    Raises:
        Complaint: They do not rise far enough apart.
    """
    try:
        thresholds = calibrated(ladder) if preset == "calibrated" else paper(ladder)
    except AuthoringError as error:
        raise Complaint("thresholds", str(error), f"{error}\n\n{_scores(ladder)}") from error
    problems = threshold_problems(thresholds, ladder, ladder.direction)
    if problems:
        raise Complaint("thresholds", problems[0], "\n".join([*problems, "", _scores(ladder)]))
    return thresholds


def _scores(ladder: Ladder) -> str:
    lines = [
        f"- {rung.name} ({rung.tier.value}): {rung.score:.6g}"
        + ("" if rung.standard_error is None else f", standard error {rung.standard_error:.4g}")
        for rung in ladder.rungs
    ]
    return "\n".join(
        [
            f"Scores on {ladder.n_rows} fresh rows of the same rule, {ladder.metric}, to {ladder.direction.value}:",
            *lines,
            "Wanted: constant < weak < ... < rule-aware < hidden_rule, with clear gaps.",
        ]
    )
