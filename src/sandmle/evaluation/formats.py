"""How a report's numbers are written. One place, so that terminal, Markdown and HTML say the same."""

from collections.abc import Mapping

from sandmle.evaluation.schema import Comparison, PolicyReport, TokenTotals
from sandmle.evaluation.statistics import Estimate, Spread

NOTHING = "–"  # noqa: RUF001 - an en dash reads as "none" in a table


def number_text(value: float | None, digits: int = 2) -> str:
    """Writes a number with fixed digits, a dash for None."""
    if value is None:
        return NOTHING
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def score_text(value: float | None) -> str:
    """Writes a score with four significant digits."""
    return NOTHING if value is None else f"{value:.4g}"


def interval_text(estimate: Estimate, digits: int = 2) -> str:
    """Writes a mean with its 95 % interval, and without one where there is none (never a made-up zero width)."""
    mean = number_text(estimate.mean, digits)
    if estimate.low is None or estimate.high is None:
        return mean
    return f"{mean} [{number_text(estimate.low, digits)}, {number_text(estimate.high, digits)}]"


def error_text(estimate: Estimate, digits: int = 2) -> str:
    """Writes a mean with its standard error; no error is written where there is none (case Q04)."""
    mean = number_text(estimate.mean, digits)
    return mean if estimate.standard_error is None else f"{mean} ± {number_text(estimate.standard_error, digits)}"


def percent_text(estimate: Estimate) -> str:
    """Writes a share as a whole percentage; only a true 0 or 1 is written as 0 % or 100 %."""
    if estimate.mean is None:
        return NOTHING
    percent = round(100 * estimate.mean)
    if percent == 0 and estimate.mean > 0:
        return "<1 %"
    if percent == 100 and estimate.mean < 1:
        return ">99 %"
    return f"{percent} %"


def percent_interval_text(estimate: Estimate) -> str:
    """Writes a share with its 95 % interval in percent."""
    if estimate.low is None or estimate.high is None:
        return percent_text(estimate)
    return f"{percent_text(estimate)} [{round(100 * estimate.low)}, {round(100 * estimate.high)}]"


def seconds_text(spread: Spread) -> str:
    """Writes mean, median and 95th percentile of seconds."""
    if not spread.n:
        return NOTHING
    return " / ".join(number_text(value) for value in (spread.mean, spread.median, spread.p95))


def counts_text(counts: Mapping[str, int]) -> str:
    """Writes counts by name, most first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered) or NOTHING


def medals_text(report: PolicyReport) -> str:
    """Writes the episodes by highest medal, best first."""
    counts = [(name, report.highest[name]) for name in ("gold", "silver", "bronze")]
    return ", ".join(f"{count} {name}" for name, count in counts if count) or "no medal"


def plural(count: int, noun: str) -> str:
    """Writes a count with its noun: 1 task, 2 tasks, 2 policies."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("y") else f"{count} {noun}s"


def episodes_text(report: PolicyReport) -> str:
    """Writes finished and planned episodes; a lone number would hide the missing ones (case Q02)."""
    return f"{report.n_finished}/{report.n_planned}"


def cost_text(tokens: TokenTotals, n_episodes: int) -> str:
    """Writes the cost, and for how many episodes it is known if not for all."""
    if tokens.cost_usd is None:
        return NOTHING
    known = "" if tokens.n_cost_known == n_episodes else f" ({tokens.n_cost_known} of {n_episodes} known)"
    return f"${tokens.cost_usd:.2f}{known}"


def suite_text(report: PolicyReport) -> str:
    """Writes what benchmarks ask for beyond the table: any of k attempts, HumanRank; nothing where there is neither."""
    parts = []
    if report.n_attempts > 1:
        any_of = report.any_of_attempts
        parts.append(
            f"any of {report.n_attempts} attempts: valid {percent_text(any_of['valid'])}, "
            f"medal {percent_interval_text(any_of['bronze'])}, gold {percent_text(any_of['gold'])}"
        )
    if report.human_rank:
        ranks = ", ".join(f"{interval_text(value, 3)} ({name})" for name, value in report.human_rank.items())
        parts.append(f"HumanRank {ranks}")
    return "; ".join(parts)


def policy_text(report: PolicyReport, *, with_run: bool) -> str:
    """Writes who a row is about; a policy that saw hidden scores is marked."""
    name = f"{report.policy} ({report.run})" if with_run else report.policy
    return f"{name} [ORACLE]" if report.is_oracle else name


def comparison_text(comparison: Comparison, *, with_run: bool) -> str:
    """Writes one paired comparison as a line."""
    first, second = (
        f"{policy} ({run})" if with_run else policy
        for policy, run in (
            (comparison.first, comparison.first_run),
            (comparison.second, comparison.second_run),
        )
    )
    difference = comparison.difference
    estimate = difference.estimate
    if estimate.mean is None:
        return f"{first} minus {second}: no task in common"
    interval = f" [{estimate.low:+.2f}, {estimate.high:+.2f}]" if None not in (estimate.low, estimate.high) else ""
    return (
        f"{first} minus {second}: {estimate.mean:+.2f}{interval} over {estimate.n_tasks} tasks "
        f"(better on {difference.wins}, equal on {difference.ties}, worse on {difference.losses})"
    )
