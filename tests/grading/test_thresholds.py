import pytest

from sandmle.errors import AuthoringError
from sandmle.grading import calibrated, medal_of, paper, threshold_problems
from sandmle.grading.thresholds import above_median
from sandmle.records import Direction, Ladder, Medal, Rung, Threshold, Thresholds, Tier

UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE
BOTH = pytest.mark.parametrize("direction", [UP, DOWN])


def ladder(direction=UP, *, weak=(0.6, 0.7, 0.66), best=0.9, dummy=0.5, oracle=0.97, error=0.01):
    def rung(name, tier, score):
        return Rung(name=name, tier=tier, score=score if direction is UP else -score, standard_error=error)

    rungs = [rung("constant", Tier.DUMMY, dummy)]
    rungs += [rung(f"weak{number}", Tier.WEAK, score) for number, score in enumerate(weak)]
    rungs += [
        rung("standard", Tier.STANDARD, 0.75),
        rung("tuned", Tier.TUNED, 0.8),
        rung("rule", Tier.RULE_AWARE, best),
    ]
    rungs += [rung("oracle", Tier.ORACLE, oracle)]
    return Ladder(metric="m", direction=direction, n_rows=3000, rungs=tuple(rungs))


def signed(direction, *scores):
    return pytest.approx(tuple(score if direction is UP else -score for score in scores))


@BOTH
def test_median_of_the_weak_and_even_steps_to_gold(direction):
    # median .66, gold .66 + .9 * .24 = .876
    found = calibrated(ladder(direction))
    assert found.preset == "calibrated"
    assert found.scores() == signed(direction, 0.66, 0.732, 0.804, 0.876)
    assert threshold_problems(found, ladder(direction), direction) == []


@BOTH
def test_median_is_at_least_a_fifth_above_the_dummy(direction):
    # Weak solvers at the dummy's level: .5 + .2 * .4 = .58, gold .58 + .9 * .32 = .868
    low = ladder(direction, weak=(0.4, 0.5, 0.51))
    assert calibrated(low).scores() == signed(direction, 0.58, 0.676, 0.772, 0.868)


def test_the_oracle_does_not_set_gold():
    assert calibrated(ladder(oracle=0.97)).scores() == calibrated(ladder(oracle=0.99)).scores()


def test_standard_errors_come_from_the_nearest_rungs():
    rungs = [
        Rung(name="d", tier=Tier.DUMMY, score=0.0, standard_error=0.04),
        Rung(name="w", tier=Tier.WEAK, score=0.5, standard_error=0.02),
        Rung(name="b", tier=Tier.RULE_AWARE, score=1.0, standard_error=0.01),
        Rung(name="o", tier=Tier.ORACLE, score=1.5),
    ]
    found = calibrated(Ladder(metric="m", direction=UP, n_rows=9, rungs=tuple(rungs)))
    assert found.median.standard_error == pytest.approx(0.02)
    assert found.gold.score == pytest.approx(0.95)
    assert found.gold.standard_error == pytest.approx(0.011)


@pytest.mark.parametrize(("tier", "word"), [(Tier.DUMMY, "dummy"), (Tier.WEAK, "weak")])
def test_a_ladder_without_dummy_or_weak_rungs_gives_none(tier, word):
    whole = ladder()
    part = whole.replace(rungs=tuple(rung for rung in whole.rungs if rung.tier is not tier))
    with pytest.raises(AuthoringError, match=word):
        calibrated(part)


@BOTH
def test_paper_takes_scores_of_progressively_better_baselines(direction):
    # Solvers: .6 .66 .7 .75 .8 .9, four at even steps
    found = paper(ladder(direction))
    assert found.preset == "paper"
    assert found.scores() == signed(direction, 0.6, 0.7, 0.75, 0.9)
    assert threshold_problems(found, ladder(direction), direction) == []


def test_paper_needs_four_distinct_scores():
    with pytest.raises(AuthoringError, match="2 distinct scores"):
        paper(ladder().replace(rungs=ladder().rungs[:3]))


@BOTH
def test_paper_problems(direction):
    def at(*scores):
        four = [Threshold(score=score if direction is UP else -score) for score in scores]
        return Thresholds(preset="paper", median=four[0], bronze=four[1], silver=four[2], gold=four[3])

    steps = ladder(direction)
    assert threshold_problems(at(0.1, 0.2, 0.3, 0.6), steps, direction) == []  # only the hardest must beat the dummy
    assert "not better than the dummy" in threshold_problems(at(0.1, 0.2, 0.3, 0.4), steps, direction)[0]
    assert threshold_problems(at(0.6, 0.7, 0.7, 0.8), steps, direction)[0].startswith("silver")
    assert len(threshold_problems(at(0.9, 0.8, 0.7, 0.6), steps, direction)) == 3


@BOTH
def test_calibrated_gaps_must_exceed_two_standard_errors(direction):
    steps = ladder(direction, error=0.04)
    problems = threshold_problems(calibrated(steps), steps, direction)
    assert [problem.split(" is ")[0] for problem in problems] == ["bronze", "silver", "gold"]
    assert "0.072 better than median, which is not more than 0.08" in problems[0]


@BOTH
def test_gold_must_stay_below_the_oracle(direction):
    steps = ladder(direction, oracle=0.87)
    problems = threshold_problems(calibrated(steps), steps, direction)
    assert len(problems) == 1
    assert problems[0].startswith("oracle is -0.006 better than gold")


def test_a_ladder_without_oracle_or_errors_is_a_problem():
    steps = ladder()
    bare = steps.replace(rungs=steps.rungs[:-1])
    assert threshold_problems(calibrated(bare), bare, UP) == ["the ladder has no oracle rung"]
    blind = steps.replace(rungs=tuple(rung.replace(standard_error=None) for rung in steps.rungs))
    assert "no standard error" in threshold_problems(calibrated(blind), blind, UP)[0]


@BOTH
def test_g38_borders_are_inclusive_and_unrounded_and_the_median_is_strict(direction):
    sign = 1 if direction is UP else -1

    def at(score):
        return Threshold(score=sign * score)

    borders = Thresholds(preset="paper", median=at(0.8), bronze=at(0.84), silver=at(0.87), gold=at(0.9))
    for score, medal in (
        (0.9, Medal.GOLD),
        (0.9000000001, Medal.GOLD),
        (0.899996, Medal.SILVER),
        (0.87, Medal.SILVER),
        (0.84, Medal.BRONZE),
        (0.8399999, Medal.NONE),
    ):
        assert medal_of(sign * score, borders, direction) is medal
    assert not above_median(sign * 0.8, borders, direction)
    assert above_median(sign * 0.8000001, borders, direction)
