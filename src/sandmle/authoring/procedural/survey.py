"""Measures the author: ``python -m sandmle.authoring.procedural.survey --count 200``.

Draws tasks over all seeds and reports how many have certifiable thresholds, what a tuned solver on raw columns wins,
and the CPU seconds of authoring, by medium, kind and metric. What engineers win is for `sandmle rollout` to say.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from sandmle.authoring.procedural.author import ProceduralAuthor
from sandmle.authoring.procedural.substitution import media_of
from sandmle.errors import AuthoringError
from sandmle.grading import medal_of, threshold_problems
from sandmle.records import Ladder, Tier
from sandmle.seeds import load_seed, seed_ids


def survey(count: int, first: int, difficulty: str) -> Iterator[dict[str, Any]]:
    """Yields one line of figures a task; seeds take turns."""
    author = ProceduralAuthor(difficulty=difficulty)
    seeds = seed_ids()
    for number in range(first, first + count):
        seed = load_seed(seeds[number % len(seeds)])
        start = time.process_time()
        try:
            draft = author.propose(seed, number)
        except AuthoringError as error:
            yield {"seed": seed.id, "rng_seed": number, "ok": False, "problems": [str(error)]}
            continue
        cpu_s = time.process_time() - start
        spec = draft.spec
        ladder = Ladder.model_validate_json(draft.files["provenance/ladder.json"])
        problems = threshold_problems(spec.thresholds, ladder, spec.direction)
        tuned_rung = ladder.best(Tier.TUNED)
        names = [rung.name.removeprefix("knows_").rsplit("_", 1)[0] for rung in ladder.of(Tier.RULE_AWARE)]
        yield {
            "seed": seed.id,
            "rng_seed": number,
            "task": spec.task_id,
            "domain": spec.domain,
            "metric": spec.metric,
            "kind": spec.task_kind.value,
            "media": "+".join(media_of(spec.dna)),
            "families": sorted(set(names) - {"all"}),
            "ok": not problems,
            "problems": problems,
            "cpu_s": round(cpu_s, 3),
            "n_files": len(draft.files),
            "raw": _prize(tuned_rung.score, spec),
            "rungs": [[r.name, round(r.score, 4)] for r in ladder.rungs],
            "thresholds": [round(score, 4) for score in spec.thresholds.scores()],
        }


def _prize(score: float, spec: Any) -> str:
    medal = medal_of(score, spec.thresholds, spec.direction).value
    if medal == "none" and spec.direction.better(score, spec.thresholds.median.score):
        return "median"
    return medal


def main() -> None:
    """Runs the survey and prints its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="tasks to draw")
    parser.add_argument("--first", type=int, default=0, help="first rng_seed")
    parser.add_argument("--difficulty", default="medium", help="easy, medium, hard, or from 0 to 1")
    parser.add_argument("--json", action="store_true", help="one JSON line a task instead of tables")
    options = parser.parse_args()
    lines = []
    for line in survey(options.count, options.first, options.difficulty):
        lines.append(line)
        if options.json:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    if not options.json:
        sys.stdout.write("\n".join(report(lines)) + "\n")


def report(lines: list[dict[str, Any]]) -> list[str]:
    """Returns the survey's tables as lines of text."""
    made = [line for line in lines if "cpu_s" in line]
    passed = sum(line["ok"] for line in lines)
    out = [f"tasks {len(lines)}, certifiable {passed} ({passed / len(lines):.1%})"]
    if made:
        seconds = [line["cpu_s"] for line in made]
        out.append(f"CPU seconds a task: mean {sum(seconds) / len(seconds):.2f}, worst {max(seconds):.2f}")
        prizes = [line["raw"] for line in made]
        counts = {prize: prizes.count(prize) for prize in ("none", "median", "bronze", "silver", "gold")}
        out.append(
            "tuned on raw columns: " + ", ".join(f"{prize} {n / len(prizes):.0%}" for prize, n in counts.items())
        )
    for name in ("media", "kind", "metric"):
        out.append("")
        for value in sorted({line[name] for line in made}):
            group = [line for line in made if line[name] == value]
            mean = sum(line["cpu_s"] for line in group) / len(group)
            ok = sum(line["ok"] for line in group)
            no_median = sum(line["raw"] == "none" for line in group)
            out.append(f"{name} {value}: {ok}/{len(group)} ok, raw below median {no_median}, {mean:.2f} s")
    out += ["", *(f"{line['seed']} {line['rng_seed']}: {line['problems'][0]}" for line in lines if not line["ok"])]
    return out


if __name__ == "__main__":
    main()
