"""The hidden rule itself wins gold, so gold can be won."""

from sandmle.gate.base import Check, Finding, GateContext


def run(context: GateContext) -> Finding:
    """Scores private/oracle.csv, where the author knows the rule, on the private rows."""
    gold = context.spec.thresholds.gold.score
    if context.oracle is None:
        return Finding(True, "there is no private/oracle.csv", None, gold)
    score = context.private_key.score(context.oracle)
    message = (
        "" if context.spec.direction.at_least(score, gold) else f"the oracle scores {score:.6g}, gold is {gold:.6g}"
    )
    return Finding(not message, message, score, gold)


CHECK = Check("oracle_wins_gold", run, needs=frozenset({"calibrated"}))
