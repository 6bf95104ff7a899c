"""Does GRPO here make an agent better? Four arms of one small model, judged on the same tasks of held-out seeds.

    python studies/train_study.py --out runs/study-train --rng-seeds 0

The arms of each rng_seed: ``sft`` (the warm start), ``grpo`` (trained by acting, from the warm start), ``more_sft``
(the warm start goes on for as many seconds as GRPO took), ``shuffled`` (GRPO whose rewards are dealt out anew within
each group). Every stage is a command of the project and can be killed and called again. The last one writes a page.
"""

import argparse
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandmle.evaluation.runs import Episode, Run, read_run
from sandmle.evaluation.statistics import Difference, Estimate, estimate_mean, estimate_share, paired_difference
from sandmle.records import ExecStatus, Medal
from sandmle.rollouts import load_tasks
from sandmle.training.folder import METRICS_FILE, lines_of

TRAINING_SEEDS = (
    "spaceship-titanic,ml2021spring-hw2,us-patent-phrase-to-phrase-matching,"
    "movie-review-sentiment-analysis-kernels-only,lmsys-chatbot-arena,google-quest-challenge"
)
"""Those of ``make demo-train``, whose warm start and GRPO are therefore those of the study's rng_seed 0."""
HELD_OUT_SEEDS = (
    "playground-series-s3e18,jigsaw-unintended-bias-in-toxicity-classification,"
    "learning-agency-lab-automated-essay-scoring-2,champs-scalar-coupling"
)
ENGINEERS = ("sample", "tinkerer")
"""Those whose scripts name no columns, and can be written by a model that cannot copy names from what it has read."""
DEMONSTRATIONS = 4
"""Episodes of each engineer at each training task."""
ARMS = {"sft": "sft", "grpo": "grpo", "more_sft": "more-sft", "shuffled": "shuffled"}
"""Each arm and its folder."""
TITLES = {
    "sft": "SFT",
    "grpo": "SFT, then GRPO",
    "more_sft": "SFT, then more SFT",
    "shuffled": "SFT, then GRPO, shuffled rewards",
}
COMPARED = (("grpo", "sft"), ("grpo", "more_sft"), ("grpo", "shuffled"), ("more_sft", "sft"), ("shuffled", "sft"))
JUDGED_SEED = 1000
NO_SCRIPT = "no script that made a submission"
WRITES = re.compile(r"to_csv\([^)]*(?<!sample_)submission\.csv")
NO_COMMENT = "no comment"
MOST_SCRIPTS, MOST_PARTS = 5, 24


@dataclass(frozen=True)
class Plan:
    """How large the study is."""

    recipe: str
    train_count: int
    held_out_count: int
    attempts: int
    """Episodes of each arm at each held-out task, for each rng_seed."""


def stages(plan: Plan, out: Path, rng_seed: int) -> Iterator[list[str]]:
    """Yields the commands up to the judged run of one rng_seed; those whose result is there are left out."""
    yield from data_stages(plan, out)
    place = out / f"rng-{rng_seed}"
    recipe = [plan.recipe, "--resume", "-o", f"rng_seed={rng_seed}"]
    warm = ["-o", f"model.source={place / 'sft' / 'final'}"]
    demonstrations = ["--data", f"{out / 'demonstrations.jsonl'}"]
    tasks = ["--tasks", f"{out / 'train-tasks'}"]
    if not (place / "sft/final").exists():
        yield ["train", "sft", *recipe, *demonstrations, "--out", f"{place / 'sft'}"]
    if not (place / "grpo/final").exists():
        yield ["train", "grpo", *recipe, *warm, *tasks, "--out", f"{place / 'grpo'}"]
    if not (place / "shuffled/final").exists():
        more = ["-o", "grpo.shuffle_rewards=true", "--out", f"{place / 'shuffled'}"]
        yield ["train", "grpo", *recipe, *warm, *tasks, *more]
    if not (place / "more-sft/final").exists():
        steps = ["-o", f"sft.train_steps={equal_steps(place)}", "--out", f"{place / 'more-sft'}"]
        yield ["train", "sft", *recipe, *warm, *demonstrations, *steps]
    policies = [part for folder in ARMS.values() for part in ("--policy", f"hf:{place / folder / 'final'}")]
    rules = ["--recipe", plan.recipe, "--attempts", f"{plan.attempts}", "--rng-seed", f"{JUDGED_SEED + rng_seed}"]
    yield ["rollout", "--resume", "--tasks", f"{out / 'held-out'}", *policies, *rules, "--out", f"{place / 'judged'}"]


def data_stages(plan: Plan, out: Path) -> Iterator[list[str]]:
    """Yields the commands that make tasks and demonstrations."""
    for name, count, seeds, rng_seed in (
        ("train-tasks", plan.train_count, TRAINING_SEEDS, 0),
        ("held-out", plan.held_out_count, HELD_OUT_SEEDS, 1),
    ):
        folder = out / name
        wanted = ["--count", f"{count}", "--seeds", seeds, "--rng-seed", f"{rng_seed}"]
        resume = ["--resume"] if (folder / "run.json").exists() else []
        if not (folder / "summary.json").exists():
            yield ["generate", *wanted, "--out", f"{folder}", *resume]
    if not (out / "demonstrations.jsonl").exists():
        policies = [part for name in ENGINEERS for part in ("--policy", f"scripted:{name}")]
        save = ["--attempts", f"{DEMONSTRATIONS}", "--recipe", plan.recipe]
        save += ["--save-sft", f"{out / 'demonstrations.jsonl'}"]
        tasks = ["--tasks", f"{out / 'train-tasks'}"]
        yield ["rollout", "--resume", *tasks, *policies, *save, "--out", f"{out / 'demonstrations'}"]


def equal_steps(place: Path) -> int:
    """Returns how many more steps of the warm start take as long as GRPO did, from the times that both logged."""
    grpo_s = math.fsum(line["times"]["wall_s"] for line in lines_of(place / "grpo" / METRICS_FILE))
    steps_s = [line["wall_s"] for line in lines_of(place / "sft" / METRICS_FILE)]
    return max(1, math.ceil(grpo_s / (math.fsum(steps_s) / len(steps_s))))


def seeds_of(out: Path) -> dict[str, str]:
    """Returns the seed of each held-out task."""
    tasks = load_tasks(out / "held-out")
    return {task_id: bundle.spec.provenance.seed_id or "-" for task_id, bundle in tasks.items()}


def each_seed(seeds: dict[str, str], pooled: dict[str, list[Episode]]) -> list[str]:
    """Returns the table of mean rewards by held-out seed."""
    text = ["", "Mean reward by held-out seed:", "", f"| seed | tasks | {' | '.join(TITLES.values())} |"]
    text.append(f"|---|---|{'---|' * len(ARMS)}")
    for seed in sorted(set(seeds.values())):
        n_tasks = sum(each == seed for each in seeds.values())
        rewards = {arm: [each.reward or 0.0 for each in pooled[arm] if seeds[each.task_id] == seed] for arm in ARMS}
        means = [f"{math.fsum(found) / len(found):.3f}" if found else "-" for found in rewards.values()]
        text.append(f"| {seed} | {n_tasks} | {' | '.join(means)} |")
    return text


Values = dict[str, list[float]]
"""One number an episode, by task."""

MEASURES: dict[str, Callable[[Episode], float | None]] = {
    "reward": lambda each: each.reward,
    "format": lambda each: each.terms.get("format"),
    "execute": lambda each: each.terms.get("execute"),
    "valid": lambda each: float(each.grade is not None and each.grade.is_valid),
    "above median": lambda each: float(each.grade is not None and each.grade.above_median),
    "bronze or better": lambda each: float(each.medal in (Medal.BRONZE, Medal.SILVER, Medal.GOLD)),
    "silver or better": lambda each: float(each.medal in (Medal.SILVER, Medal.GOLD)),
    "gold": lambda each: float(each.medal is Medal.GOLD),
}
"""What an episode is worth by each measure."""


def judged(out: Path, rng_seed: int) -> Run:
    """Returns the judged run of a rng_seed."""
    return read_run(out / f"rng-{rng_seed}" / "judged")


def arm_of(policy: str) -> str:
    """Returns the arm that a judged policy is."""
    return next(arm for arm, folder in ARMS.items() if policy.endswith(f"/{folder}/final"))


def read_judged(out: Path, rng_seeds: Sequence[int]) -> dict[str, dict[int, list[Episode]]]:
    """Returns the judged episodes by arm and rng_seed."""
    arms: dict[str, dict[int, list[Episode]]] = {arm: {} for arm in ARMS}
    for rng_seed in rng_seeds:
        run = judged(out, rng_seed)
        judged_ones = sum(each.reward is not None for each in run.episodes.values())
        missing = sum(map(len, run.planned.values())) - judged_ones
        if missing:
            raise SystemExit(
                f"{missing} episodes of rng_seed {rng_seed} are not there yet or failed by a fault; call this again"
            )
        for arm in ARMS:
            arms[arm][rng_seed] = [each for each in run.episodes.values() if arm_of(each.policy) == arm]
    return arms


def scripts(out: Path, rng_seeds: Sequence[int]) -> Iterator[tuple[str, Episode, list[str]]]:
    """Yields arm, episode, and the comment lines of the script that made the submission.

    The engineers' scripts say in such lines what they do, so they tell whom the model follows, and what it has chosen.
    """
    for rng_seed in rng_seeds:
        run = judged(out, rng_seed)
        for episode in run.episodes.values():
            steps = run.trajectory(episode).steps
            worked = (step for step in steps if step.exec_status is ExecStatus.OK and step.has_submission)
            codes = [step.code for step in worked if step.code and WRITES.search(step.code)]
            lines = codes[-1].splitlines() if codes else [f"# {NO_SCRIPT}"]
            comments = [line.lstrip("# ") for line in lines if line.startswith("#")]
            yield arm_of(episode.policy), episode, comments or [NO_COMMENT]


def choices(out: Path, rng_seeds: Sequence[int], n_episodes: int) -> list[str]:
    """Returns the tables of what the arms' scripts are, by their first comment, and what is in them, by the others."""
    rewards: dict[str, dict[str, list[float]]] = {}
    parts: dict[str, Counter[str]] = {}
    for arm, episode, comments in scripts(out, rng_seeds):
        rewards.setdefault(comments[0], {}).setdefault(arm, []).append(episode.reward or 0.0)
        for comment in set(comments[1:]):
            parts.setdefault(comment, Counter())[arm] += 1
    head = [f"| | {' | '.join(TITLES.values())} |", f"|---|{'---|' * len(ARMS)}"]
    text = [
        "",
        "The script that made the submission, by its first comment: share of episodes, and their mean reward.",
        "",
    ]
    text += head
    most = sorted(rewards, key=lambda name: -sum(map(len, rewards[name].values())))
    for name in most[:MOST_SCRIPTS]:
        cells = [
            f"{len(found) / n_episodes:.0%}, {math.fsum(found) / len(found):.3f}" if found else "0%"
            for found in (rewards[name].get(arm, []) for arm in ARMS)
        ]
        text.append(f"| {name[:90]} | {' | '.join(cells)} |")
    text += ["", "Episodes whose script has a part of the name, by its other comments:", "", *head]
    for name in sorted(sorted(parts, key=lambda part: -parts[part].total())[:MOST_PARTS]):
        text.append(f"| {name[:90]} | {' | '.join(f'{parts[name][arm] / n_episodes:.0%}' for arm in ARMS)} |")
    return text


def by_task(episodes: Iterable[Episode], measure: str) -> Values:
    """Returns a measure of episodes, by task."""
    found: Values = {}
    for each in episodes:
        found.setdefault(each.task_id, []).append(MEASURES[measure](each) or 0.0)
    return found


def page(plan: Plan, out: Path, rng_seeds: Sequence[int]) -> str:
    """Returns the result as Markdown."""
    arms = read_judged(out, rng_seeds)
    pooled = {arm: [each for part in parts.values() for each in part] for arm, parts in arms.items()}
    n_tasks = len({each.task_id for each in pooled["sft"]})
    text = [
        f"{n_tasks} tasks of {len(HELD_OUT_SEEDS.split(','))} held-out seeds, {plan.attempts} episodes of each arm at "
        f"each task for each of {len(rng_seeds)} rng_seed{'s' * (len(rng_seeds) > 1)}: "
        f"{len(pooled['sft'])} episodes an arm. Intervals are 95 %, over tasks.",
        "",
        f"| arm | {' | '.join(MEASURES)} | training |",
        f"|---|{'---|' * (len(MEASURES) + 1)}",
    ]
    for arm, episodes in pooled.items():
        cells = [_interval(estimate_of(by_task(episodes, measure), measure)) for measure in MEASURES]
        text.append(f"| {TITLES[arm]} | {' | '.join(cells)} | {_training(out, arm, rng_seeds)} |")
    text += ["", "Differences in the same tasks:", "", "| | mean reward | valid share |", "|---|---|---|"]
    for first, second in COMPARED:
        differences = [
            paired_difference(by_task(pooled[first], measure), by_task(pooled[second], measure))
            for measure in ("reward", "valid")
        ]
        text.append(f"| {TITLES[first]} - {TITLES[second]} | {' | '.join(map(_difference, differences))} |")
    text += each_seed(seeds_of(out), pooled)
    text += choices(out, rng_seeds, len(pooled["sft"]))
    if len(rng_seeds) > 1:
        text += ["", "Mean reward of each rng_seed:", "", f"| arm | {' | '.join(map(str, rng_seeds))} |"]
        text.append(f"|---|{'---|' * len(rng_seeds)}")
        for arm, parts in arms.items():
            means = [estimate_mean(by_task(parts[rng_seed], "reward")).mean or 0.0 for rng_seed in rng_seeds]
            text.append(f"| {TITLES[arm]} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return "\n".join(text) + "\n"


def estimate_of(found: Values, measure: str) -> Estimate:
    """Returns the estimate of a mean, or of a share."""
    if measure in ("reward", "format", "execute"):
        return estimate_mean(found)
    return estimate_share({task: [value > 0 for value in each] for task, each in found.items()})


def _training(out: Path, arm: str, rng_seeds: Sequence[int]) -> str:
    """Returns steps and minutes of what an arm had beyond the warm start; of the warm start itself for ``sft``."""
    steps, seconds = 0, 0.0
    for rng_seed in rng_seeds:
        log = lines_of(out / f"rng-{rng_seed}" / ARMS[arm] / METRICS_FILE)
        steps += len(log)
        seconds += math.fsum(line["times"]["wall_s"] if "times" in line else line["wall_s"] for line in log)
    return f"{steps / len(rng_seeds):.0f} steps, {seconds / len(rng_seeds) / 60:.0f} min"


def _interval(estimate: Estimate) -> str:
    if estimate.mean is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.mean:.3f}"
    return f"{estimate.mean:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _difference(difference: Difference) -> str:
    return (
        f"{_interval(difference.estimate)}, better / equal / worse at {difference.wins} / {difference.ties} / "
        f"{difference.losses} tasks"
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Runs what is missing and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/study-train"))
    parser.add_argument("--rng-seeds", default="0", help="one or more, with commas; each takes some two hours")
    parser.add_argument("--recipe", default="cpu-small")
    parser.add_argument("--train-count", type=int, default=96)
    parser.add_argument("--held-out-count", type=int, default=32)
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--page", type=Path, help="where the table goes; OUT/study.md by default")
    given = parser.parse_args(argv)
    try:
        rng_seeds = [int(part) for part in given.rng_seeds.split(",")]
    except ValueError:
        parser.error(f"--rng-seeds {given.rng_seeds}: give whole numbers with commas between them, such as 0,1,2")
    plan = Plan(given.recipe, given.train_count, given.held_out_count, given.attempts)
    for rng_seed in rng_seeds:
        for command in stages(plan, given.out, rng_seed):
            print("sandmle", *command, flush=True)
            status = subprocess.run([sys.executable, "-m", "sandmle.cli.main", *command], check=False).returncode
            if status:  # the command has said why; what is done stays
                raise SystemExit(status)
    result = page(plan, given.out, rng_seeds)
    (given.page or given.out / "study.md").write_text(result, encoding="utf-8")
    print(result)


if __name__ == "__main__":
    main()
