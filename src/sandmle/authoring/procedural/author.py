"""``ProceduralAuthor``: makes tasks offline, without any model. Its four roles are plain code."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version as version_of

import numpy as np
import yaml
from threadpoolctl import threadpool_limits

from sandmle.authoring.plan import Evaluation, Facts, TaskPlan
from sandmle.authoring.procedural.dataset import TRAIN, Dataset
from sandmle.authoring.procedural.developer import develop
from sandmle.authoring.procedural.difficulty import named_difficulty
from sandmle.authoring.procedural.ladder import best_constant_option
from sandmle.authoring.procedural.mlops import LEAST_LEAD, evaluate, lead_of
from sandmle.authoring.procedural.publish import (
    ORACLE_FILE,
    Published,
    arrange,
    data_files,
    metric_params,
    sample_submission,
)
from sandmle.authoring.procedural.strategist import make_plan
from sandmle.authoring.procedural.writer import describe
from sandmle.authoring.randomness import rng_for
from sandmle.errors import AuthoringError
from sandmle.grading import MetricUndefined
from sandmle.records import PredictionKind, Provenance, SeedRecord, TaskLimits, TaskSpec, ThresholdPreset
from sandmle.tasks.bundle import DESCRIPTION_FILE, SAMPLE_FILE, BundleDraft

VERSION = "4"
_ATTEMPTS = 8
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "lightgbm", "pillow")


@dataclass(frozen=True)
class Draw:
    """A plan, its rows, the order in which they are published, and how many draws came before."""

    plan: TaskPlan
    dataset: Dataset
    order: Published
    attempt: int


class ProceduralAuthor:
    """Draws tasks from families of hidden rules.

    Attributes:
        name: Name in the provenance.
        version: Changes whenever the same seed would give other bytes.
    """

    name = "procedural"
    version = VERSION

    def __init__(self, preset: ThresholdPreset = "calibrated", difficulty: str | float = "medium") -> None:
        """Sets up the author.

        Args:
            preset: How thresholds come from the ladder.
            difficulty: easy, medium, hard, or a number from 0 to 1: how much raw columns give away, how many insights
                there are, how much noise and how many training rows.

        Raises:
            ConfigError: There is no such difficulty.
        """
        self.preset: ThresholdPreset = preset
        self.difficulty = named_difficulty(difficulty)
        # So that a task just proposed is made again without its baselines; without it the result is the same.
        self._settled: dict[tuple[str, int], int] = {}

    def propose(self, seed: SeedRecord, rng_seed: int) -> BundleDraft:
        """Returns a whole task with its thresholds.

        Raises:
            AuthoringError: No usable data after a few draws, or the ladder gives no thresholds.
        """
        with threadpool_limits(1):
            draw, evaluation = self._settle(seed, rng_seed)
            dataset, order, plan = draw.dataset, draw.order, draw.plan
            files = data_files(dataset, order)
            files[SAMPLE_FILE] = evaluation.sample_submission
            files[ORACLE_FILE] = evaluation.oracle_submission
        limits = TaskLimits()
        files[DESCRIPTION_FILE] = describe(plan, _facts(dataset, evaluation.sample_submission), limits).encode()
        dna = {"seed": seed.dna.to_dict(), "drawn": plan.dna.to_dict(), "substitutions": list(plan.substitutions)}
        files["provenance/dna.yaml"] = yaml.safe_dump(dna, sort_keys=False).encode()
        files["provenance/rule.md"] = dataset.rule.encode()
        files["provenance/plan.json"] = (plan.model_dump_json(indent=2) + "\n").encode()
        files["provenance/ladder.json"] = (evaluation.ladder.model_dump_json(indent=2) + "\n").encode()
        spec = TaskSpec(
            task_id=plan.task_id,
            title=plan.title,
            domain=plan.domain,
            modalities=plan.dna.modalities,
            task_kind=plan.dna.task_kind,
            metric=plan.metric,
            metric_params=metric_params(plan),
            direction=plan.direction,
            id_column=plan.id_column,
            target=plan.target,
            columns=dataset.specs,
            answer_columns=tuple(side.name for side in plan.side_columns),
            n_train=plan.n_train,
            n_public=plan.n_public,
            n_private=plan.n_private,
            thresholds=evaluation.thresholds,
            limits=limits,
            dna=plan.dna,
            provenance=Provenance(
                author=self.name,
                author_version=self.version,
                rng_seed=rng_seed,
                seed_id=seed.id,
                settings={} if self.difficulty == "medium" else {"difficulty": self.difficulty},
                versions={library: version_of(library) for library in _LIBRARIES},
            ),
        )
        return BundleDraft(spec=spec, files=files)

    def regenerate(self, seed: SeedRecord, rng_seed: int) -> Mapping[str, bytes]:
        """Returns train, test, answers, sample submission and media of the same task again, without baselines.

        Raises:
            AuthoringError: As in ``propose``.
        """
        with threadpool_limits(1):
            if (seed.id, rng_seed) in self._settled:
                draw = self.draw(seed, rng_seed, self._settled[seed.id, rng_seed])
            else:
                draw, _ = self._settle(seed, rng_seed)
            files = data_files(draw.dataset, draw.order)
            files[SAMPLE_FILE] = sample_submission(draw.dataset, draw.order, best_constant_option(draw.dataset))
        return files

    def _settle(self, seed: SeedRecord, rng_seed: int) -> tuple[Draw, Evaluation]:
        """Draws until solvers who know nothing of the rule get past the median; else takes the draw that came closest.

        Raises:
            AuthoringError: As in ``propose``.
        """
        best: tuple[float, Draw, Evaluation] | None = None
        problem: AuthoringError | None = None
        first = 0
        while first < _ATTEMPTS and (best is None or best[0] < LEAST_LEAD):
            try:
                draw = self.draw(seed, rng_seed, first)
            except AuthoringError as error:
                problem = error
                break
            first = draw.attempt + 1
            try:
                evaluation = evaluate(draw.dataset, draw.order, self.preset)
            except MetricUndefined as error:
                problem = AuthoringError(f"{draw.plan.metric} is undefined on the drawn rows: {error}")
                continue
            except AuthoringError as error:
                problem = error
                continue
            lead = lead_of(evaluation.thresholds, evaluation.ladder)
            if best is None or lead > best[0]:
                best = lead, draw, evaluation
        if best is None:
            raise problem or AuthoringError(f"no usable data for {seed.id} with rng_seed {rng_seed}")
        _, draw, evaluation = best
        self._settled[seed.id, rng_seed] = draw.attempt
        return draw, evaluation

    def draw(self, seed: SeedRecord, rng_seed: int, first: int = 0) -> Draw:
        """Returns plan and data, drawn until they are usable.

        Args:
            seed: The seed.
            rng_seed: Tells tasks of one seed apart.
            first: Number of the draw to begin with.

        Raises:
            AuthoringError: They never were.
        """
        reason = ""
        for attempt in range(first, _ATTEMPTS):
            key = (self.version, seed.id, rng_seed, self.difficulty, attempt)
            plan = make_plan(seed, rng_seed, version=self.version, difficulty=self.difficulty, attempt=attempt)
            try:
                dataset = develop(plan, ("data", *key))
            except AuthoringError as error:
                reason = str(error)
                continue
            return Draw(plan=plan, dataset=dataset, order=arrange(dataset, rng_for("order", *key)), attempt=attempt)
        raise AuthoringError(f"no usable data for {seed.id} with rng_seed {rng_seed} in {_ATTEMPTS} draws: {reason}")


def _facts(dataset: Dataset, sample: bytes) -> Facts:
    """Returns what the description may tell: realised figures of the training rows (case N05)."""
    plan, y = dataset.plan, dataset.y[dataset.where(TRAIN)]
    shares: dict[str, float] = {}
    ranges: dict[str, tuple[float, float]] = {}
    if plan.n_pieces > 1:
        pass
    elif plan.target.kind is PredictionKind.VALUES:
        cells = dataset.head.answers(y)
        columns = plan.target.columns[:1] if plan.metric == "laplace_log_likelihood" else plan.target.columns
        ranges = {name: (float(np.min(cells[name])), float(np.max(cells[name]))) for name in columns}
    elif dataset.head.mode == "classes":
        counts = np.bincount(y, minlength=len(plan.target.labels)) / len(y)
        shares = dict(zip(plan.target.labels, counts.tolist(), strict=True))
    elif dataset.head.mode == "labels":
        shares = dict(zip(plan.target.labels, y.mean(axis=0).tolist(), strict=True))
    else:
        counts = np.bincount(y[:, 0].astype(int), minlength=len(plan.label_shares)) / len(y)
        shares = dict(zip(plan.target.labels, counts.tolist(), strict=False))
    return Facts(
        columns=dataset.specs,
        label_shares=shares,
        sample_head="\n".join(sample.decode().splitlines()[:4]),
        value_range=ranges,
        files=tuple((media.folder, media.column, media.words) for media in dataset.files),
    )
